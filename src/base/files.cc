// POSIX calls, for their reasons of failure. A file that another process cuts short while it is mapped ends the program
// (cli/program.cc says why); nothing here can prevent that.
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
[[noreturn]] void refuse_reading(const std::filesystem::path& file, Reading reading, int error) {
  if (!is_of_the_name(error)) reading.fault = Fault::failure;
  refuse_reading(file, reading, reason(error));
}

[[noreturn]] void refuse_mapping(const std::filesystem::path& path, const std::string& why, Fault fault = Fault::data) {
  throw Error(fault, fmt::format("{}: cannot open: {}", path.string(), why));
}
[[noreturn]] void refuse_mapping(const std::filesystem::path& path, int error) {
  refuse_mapping(path, reason(error), is_of_the_name(error) ? Fault::data : Fault::failure);
}

[[noreturn]] void fail_locking(std::string_view step, const std::filesystem::path& path, int error) {
  throw Error(Fault::failure, fmt::format("cannot {} {}: {}", step, in_quotes(path.string()), reason(error)), {.where = "out"});
}

std::string read_to_end(int descriptor, const std::filesystem::path& file, const Reading& reading) {
  std::string text;
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(std::max<std::size_t>(std::size_t{1} << 16, 2 * size));
    const auto count = ::read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_reading(file, reading, errno);
    size += static_cast<std::size_t>(count);
    if (size > reading.most) refuse_reading(file, reading, fmt::format("more than {} bytes", reading.most));
    if (count == 0) break;
  }
  text.resize(size);
  return text;
}

std::string holder(int lock) {
  std::array<char, 32> text{};
  const auto size = ::pread(lock, text.data(), text.size(), 0);
  const std::string number(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  const bool sound = !number.empty() && number.back() == '\n' && number.find_first_not_of("0123456789") == number.size() - 1;
  return sound ? "process " + number.substr(0, number.size() - 1) : "another process";
}

template <class Walk>
Entries listed(const std::filesystem::path& folder, std::error_code& error) {
  Entries entries;
  do {
    entries.clear();
    for (Walk at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  } while (error == std::errc::interrupted);
  if (error) entries.clear();
  std::sort(entries.begin(), entries.end());
  return entries;
}

template <class Walk>
Entries listed(const std::filesystem::path& folder) {
  std::error_code error;
  Entries entries = listed<Walk>(folder, error);
  if (error) fail_at(folder, "list the directory", error.message());
  return entries;
}

}  // namespace

bool is_of_the_name(int error) {
  constexpr std::array kOfTheName{ENOENT, ENOTDIR, EACCES, EPERM, EISDIR, ELOOP, ENAMETOOLONG, EINVAL, ENXIO};
  return std::ranges::find(kOfTheName, error) != kOfTheName.end();
}

void refuse_content(const std::string& where, const std::string& message) {
  throw Error(Fault::data, message, {.where = where});
}

void fail_at(const std::filesystem::path& path, std::string_view step, const std::string& why) {
  throw Error(Fault::failure, fmt::format("cannot {}: {}", step, why), {.where = path.string()});
}
void fail_at(const std::filesystem::path& path, std::string_view step, int error) { fail_at(path, step, reason(error)); }

std::optional<std::string> read_file_if_any(const std::filesystem::path& file, const Reading& reading) {
  const Descriptor opened(open_file(file, O_RDONLY | O_NONBLOCK));  // so that a named pipe is not waited for
  if (opened.number < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse_reading(file, reading, errno);
  }
  struct stat status {};
  if (::fstat(opened.number, &status) != 0) refuse_reading(file, reading, errno);
  if (S_ISDIR(status.st_mode)) refuse_reading(file, reading, "is a directory");
  const std::string name = file.string();
  const bool given = S_ISFIFO(status.st_mode) && (name.starts_with("/dev/fd/") || name == "/dev/stdin");
  if (!S_ISREG(status.st_mode) && !given) refuse_reading(file, reading, "not a regular file");
  if (::fcntl(opened.number, F_SETFL, 0) != 0) refuse_reading(file, reading, errno);  // to wait for what comes
  return read_to_end(opened.number, file, reading);
}

std::string read_file(const std::filesystem::path& file, const Reading& reading) {
  auto text = read_file_if_any(file, reading);
  if (!text) refuse_reading(file, reading, ENOENT);
  return *std::move(text);
}

std::string read_end(const std::filesystem::path& file, std::size_t most) {
  const Descriptor opened(open_file(file, O_RDONLY | O_NONBLOCK));
  const off_t size = opened.number < 0 ? 0 : ::lseek(opened.number, 0, SEEK_END);
  if (size <= 0) return "";
  std::string text(std::min(most, static_cast<std::size_t>(size)), '\0');
  const auto count = ::pread(opened.number, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer before it can be refused.
  const Descriptor file(open_file(path, O_RDONLY | O_NONBLOCK));
  if (file.number < 0) refuse_mapping(path, errno);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) refuse_mapping(path, errno);
  if (S_ISDIR(status.st_mode)) refuse_mapping(path, EISDIR);
  if (!S_ISREG(status.st_mode)) refuse_mapping(path, "not a regular file");
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);  // lives on without the descriptor
  if (memory == MAP_FAILED) refuse_mapping(path, reason(errno), Fault::failure);
  data_ = static_cast<const std::byte*>(memory);
  size_ = size;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path) {
  file_ = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK);  // a named pipe that nobody reads is an error
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

void AppendFile::sync() const {
  if (const int error = sync_file(file_); error != 0) fail_at(path_, "sync", error);
}

int open_file(const std::filesystem::path& path, int flags) {
  int file = -1;
  while ((file = ::open(path.c_str(), flags | O_CLOEXEC, 0666)) < 0 && errno == EINTR) continue;
  return file;
}

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

int sync_file(int file) {
  while (::fsync(file) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL ? 0 : errno;
  }
  return 0;
}

void sync_path(const std::filesystem::path& path) {
  const Descriptor file(open_file(path, O_RDONLY));
  if (file.number < 0) fail_at(path, "open", errno);
  if (const int error = sync_file(file.number); error != 0) fail_at(path, "sync", error);
}

void cut_file(const std::filesystem::path& path, std::uintmax_t bytes) {
  std::error_code error;
  do std::filesystem::resize_file(path, bytes, error);
  while (error == std::errc::interrupted);
  if (error) fail_at(path, "cut the file", error.message());
}

std::error_code make_folders(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return {};
  const std::filesystem::path above = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  if (const std::error_code before = make_folders(above)) return before;
  std::filesystem::create_directories(path, error);
  if (error) return error;
  const Descriptor folder(open_file(above.empty() ? "." : above, O_RDONLY));
  if (folder.number < 0) return errno == EACCES ? std::error_code() : std::error_code(errno, std::generic_category());
  return {sync_file(folder.number), std::generic_category()};
}

Entries entries_of(const std::filesystem::path& folder, std::error_code& error) {
  return listed<std::filesystem::directory_iterator>(folder, error);
}

Entries entries_below(const std::filesystem::path& folder, std::error_code& error) {
  return listed<std::filesystem::recursive_directory_iterator>(folder, error);
}

Entries entries_of(const std::filesystem::path& folder) { return listed<std::filesystem::directory_iterator>(folder); }

Entries entries_below(const std::filesystem::path& folder) {
  return listed<std::filesystem::recursive_directory_iterator>(folder);
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  const auto path = directory / ".lock";
  const int file = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) fail_locking("open", path, errno);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    const std::string who = error == EWOULDBLOCK ? holder(file) : "";
    ::close(file);
    if (who.empty()) fail_locking("lock", path, error);
    throw Error(
        Fault::failure,
        fmt::format("{} is in use by {}; wait until it ends or choose another directory", in_quotes(directory.string()), who),
        {.where = "out"});
  }
  int error = 0;
  while (::ftruncate(file, 0) != 0 && (error = errno) == EINTR) error = 0;
  if (error == 0) error = write_all(file, fmt::format("{}\n", ::getpid()));
  if (error != 0) {
    ::close(file);
    fail_locking("write", path, error);
  }
  file_ = file;
}

bool DirectoryLock::holds(const std::filesystem::path& directory) const {
  struct stat own {};
  struct stat there {};
  return ::fstat(file_, &own) == 0 && ::lstat((directory / ".lock").c_str(), &there) == 0 && own.st_ino == there.st_ino &&
         own.st_dev == there.st_dev;
}

bool DirectoryLock::is_held(const std::filesystem::path& directory) {
  const Descriptor lock(open_file(directory / ".lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return lock.number >= 0 && ::flock(lock.number, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace cautious::base
