#include "base/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <cautious/error.h>
#include "base/text.h"

namespace cautious::base {
namespace {

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path, int error) {
  throw Error(Fault::failure,
              fmt::format("out: cannot {} {}: {}", what, in_quotes(path.string()), std::generic_category().message(error)));
}

std::string holder(int file) {
  std::array<char, 32> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  const std::string number(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const bool sound = !number.empty() && number.back() == '\n' && number.find_first_not_of("0123456789") == number.size() - 1;
  return sound ? "process " + number.substr(0, number.size() - 1) : "another process";
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  const auto path = directory / ".lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail("open", path, errno);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    const std::string who = error == EWOULDBLOCK ? holder(file) : "";
    ::close(file);
    if (who.empty()) fail("lock", path, error);
    throw Error(Fault::failure, fmt::format("out: {} is in use by {}; wait for its end or choose another directory",
                                            in_quotes(directory.string()), who));
  }
  const std::string number = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    const int error = errno;
    ::close(file);
    fail("write", path, error);
  }
  file_ = file;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace cautious::base
