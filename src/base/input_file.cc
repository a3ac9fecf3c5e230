#include "base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <cautious/error.h>

#include "base/files.h"

namespace cautious::base {
namespace {

[[noreturn]] void refuse_input(const std::string& name, const char* step, int error) {
  throw Error(is_of_the_name(error) ? Fault::data : Fault::failure,
              fmt::format("cannot {}: {}", step, std::generic_category().message(error)), {.where = name});
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : name_(path.string()) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  file_ = open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  int error = file_ < 0 || ::fstat(file_, &status) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  const bool regular = S_ISREG(status.st_mode);
  if (error == 0 && regular) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  if (file_ >= 0) ::close(file_);
  if (error != 0) refuse_input(name_, "open", error);
  refuse_content(name_, "cannot open: not a regular file");
}

InputFile InputFile::standard_input(std::function<void()> waiting) {
  InputFile file;
  file.name_ = "standard input";
  file.file_ = STDIN_FILENO;
  file.waiting_ = std::move(waiting);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      waiting_(std::move(other.waiting_)) {}

InputFile::~InputFile() {
  if (file_ > STDIN_FILENO) ::close(file_);
}

void InputFile::wait() const {
  constexpr int kMilliseconds = 200;
  pollfd ready{file_, POLLIN, 0};
  for (int some = 0; waiting_ && some == 0;) {
    some = ::poll(&ready, 1, kMilliseconds);
    if (some < 0 && errno == EINTR) some = 0;
    if (some == 0) waiting_();
  }
}

void InputFile::read(std::uint64_t at, std::span<char> to) const {
  while (!to.empty()) {
    const auto count = ::pread(file_, to.data(), to.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_input(name_, "read", errno);
    if (count == 0) refuse_content(name_, fmt::format("cut short while it was read: no byte {}", at));
    at += static_cast<std::uint64_t>(count);
    to = to.subspan(static_cast<std::size_t>(count));
  }
}

std::size_t InputFile::next(std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    wait();
    const auto count = ::read(file_, to.data() + done, to.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_input(name_, "read", errno);
    if (count == 0) {
      const auto at = ::lseek(file_, 0, SEEK_CUR);
      if (at >= 0 && static_cast<std::uint64_t>(at) < size_)
        refuse_content(name_, fmt::format("cut short while it was read: no byte {}", at));
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  return done;
}

InputStream::InputStream(InputFile file) : file_(std::move(file)) {
  constexpr std::size_t kMagicBytes = 4;
  start_.resize(kMagicBytes);
  start_.resize(file_.next(std::as_writable_bytes(std::span(start_))));
  const auto bytes = std::as_bytes(std::span(start_));
  format_ = is_gzip(bytes) ? Format::gzip : is_zstd(bytes) ? Format::zstd : Format::plain;
  const auto packed = [this](std::span<std::byte> to) { return next_packed(to); };
  if (format_ == Format::gzip) unpacking_ = Unpacking::gzip(packed, file_.name());
  if (format_ == Format::zstd) unpacking_ = Unpacking::zstd(packed, file_.name());
}

std::size_t InputStream::next_packed(std::span<std::byte> to) {
  const std::size_t first = std::min(start_.size(), to.size());
  if (first > 0) std::memcpy(to.data(), start_.data(), first);
  start_.erase(0, first);
  return first + file_.next(to.subspan(first));
}

std::size_t InputStream::next(std::span<char> to) {
  const auto bytes = std::as_writable_bytes(to);
  return unpacking_ ? unpacking_->read(bytes) : next_packed(bytes);
}

}  // namespace cautious::base
