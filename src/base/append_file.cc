// One write() per record where the system allows; after a failure the file is cut back to where the record began.
#include "base/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <cautious/error.h>

namespace cautious::base {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view step, int error) {
  throw Error(Fault::failure, fmt::format("{}: cannot {}: {}", path.string(), step, std::generic_category().message(error)));
}

// 0, or the error that kept a part of the record from the file.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      return written == 0 ? ENOSPC : errno;
    }
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(path, "open", errno);
}

AppendFile::~AppendFile() { ::close(file_); }

void AppendFile::append(std::string_view record) {
  struct stat before {};
  if (::fstat(file_, &before) != 0) fail(path_, "append", errno);
  const int error = write_all(file_, record);
  if (error == 0) return;
  // Best effort: a record cut short by a full disk must not be glued to the next one.
  [[maybe_unused]] const int cut = S_ISREG(before.st_mode) ? ::ftruncate(file_, before.st_size) : 0;
  fail(path_, "append", error);
}

}  // namespace cautious::base
