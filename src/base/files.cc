// POSIX calls, for their reasons of failure. A file that another process cuts short while it is mapped ends the program;
// nothing here can prevent that.
#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/text.h"

namespace cautious::base {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

// Closed when it goes out of scope.
struct Descriptor {
  int number;
  explicit Descriptor(int n) : number(n) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void refuse_reading(const std::filesystem::path& file, const Reading& reading, const std::string& why) {
  throw Error(reading.fault,
              fmt::format("{}: cannot read{}{}: {}", file.string(), reading.what.empty() ? "" : " ", reading.what, why));
}

[[noreturn]] void refuse_mapping(const std::filesystem::path& path, Fault fault, const std::string& why) {
  throw Error(fault, fmt::format("{}: cannot open: {}", path.string(), why));
}

[[noreturn]] void fail_locking(std::string_view step, const std::filesystem::path& path, int error) {
  throw Error(Fault::failure, fmt::format("out: cannot {} {}: {}", step, in_quotes(path.string()), reason(error)));
}

std::string read_to_end(int descriptor, const std::filesystem::path& file, const Reading& reading) {
  std::string text;
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(std::max<std::size_t>(std::size_t{1} << 16, 2 * size));
    const auto count = ::read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_reading(file, reading, reason(errno));
    size += static_cast<std::size_t>(count);
    if (size > reading.most) refuse_reading(file, reading, fmt::format("more than {} bytes", reading.most));
    if (count == 0) break;
  }
  text.resize(size);
  return text;
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

std::string holder(int lock) {
  std::array<char, 32> text{};
  const auto size = ::pread(lock, text.data(), text.size(), 0);
  const std::string number(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const bool sound = !number.empty() && number.back() == '\n' && number.find_first_not_of("0123456789") == number.size() - 1;
  return sound ? "process " + number.substr(0, number.size() - 1) : "another process";
}

}  // namespace

void refuse_content(const std::string& where, const std::string& message) {
  throw Error(Fault::data, message, {.where = where});
}

void fail_at(const std::filesystem::path& path, std::string_view step, const std::string& why) {
  throw Error(Fault::failure, fmt::format("cannot {}: {}", step, why), {.where = path.string()});
}
void fail_at(const std::filesystem::path& path, std::string_view step, int error) { fail_at(path, step, reason(error)); }

std::optional<std::string> read_file_if_any(const std::filesystem::path& file, const Reading& reading) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse_reading(file, reading, reason(errno));
  }
  if (S_ISDIR(status.st_mode)) refuse_reading(file, reading, "is a directory");
  if (reading.regular_only && !S_ISREG(status.st_mode)) refuse_reading(file, reading, "not a regular file");
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.number < 0) refuse_reading(file, reading, reason(errno));
  return read_to_end(opened.number, file, reading);
}

std::string read_file(const std::filesystem::path& file, const Reading& reading) {
  auto text = read_file_if_any(file, reading);
  if (!text) refuse_reading(file, reading, reason(ENOENT));
  return *std::move(text);
}

std::string read_end(const std::filesystem::path& file, std::size_t most) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = opened.number < 0 ? 0 : ::lseek(opened.number, 0, SEEK_END);
  if (size <= 0) return "";
  std::string text(std::min(most, static_cast<std::size_t>(size)), '\0');
  const auto count = ::pread(opened.number, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) refuse_mapping(path, Fault::data, reason(errno));
  struct stat status {};
  if (::fstat(file.number, &status) != 0) refuse_mapping(path, Fault::data, reason(errno));
  if (S_ISDIR(status.st_mode)) refuse_mapping(path, Fault::data, reason(EISDIR));
  if (!S_ISREG(status.st_mode)) refuse_mapping(path, Fault::data, "not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);  // lives on without the descriptor
  if (memory == MAP_FAILED) refuse_mapping(path, Fault::failure, reason(errno));
  data_ = static_cast<const std::byte*>(memory);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail_at(path, "open", errno);
}

AppendFile::~AppendFile() { ::close(file_); }

// One write() per record where the system allows; after a failure the file is cut back to where the record began.
void AppendFile::append(std::string_view record) {
  struct stat before {};
  if (::fstat(file_, &before) != 0) fail_at(path_, "append", errno);
  const int error = write_all(file_, record);
  if (error == 0) return;
  // Best effort: a record cut short by a full disk must not be glued to the next one.
  [[maybe_unused]] const int cut = S_ISREG(before.st_mode) ? ::ftruncate(file_, before.st_size) : 0;
  fail_at(path_, "append", error);
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  const auto path = directory / ".lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail_locking("open", path, errno);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    const std::string who = error == EWOULDBLOCK ? holder(file) : "";
    ::close(file);
    if (who.empty()) fail_locking("lock", path, error);
    throw Error(Fault::failure, fmt::format("out: {} is in use by {}; wait until it ends or choose another directory",
                                            in_quotes(directory.string()), who));
  }
  const std::string number = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    const int error = errno;
    ::close(file);
    fail_locking("write", path, error);
  }
  file_ = file;
}

bool DirectoryLock::is_held(const std::filesystem::path& directory) {
  const Descriptor lock(::open((directory / ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.number >= 0 && ::flock(lock.number, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace cautious::base
