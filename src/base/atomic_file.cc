// POSIX only: rename() is atomic within a file system, and fsync() of file and directory make it last.
#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <cautious/error.h>
#include "base/files.h"

namespace cautious::base {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
  throw Error(Fault::failure, fmt::format("{}: cannot write: {}", path.string(), why));
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Short and independent of the target's name, which may already be as long as the file system allows.
std::filesystem::path fresh_name() {
  static std::atomic<unsigned> count = 0;
  return fmt::format(".cautious-{}-{}.tmp", ::getpid(), count++);
}

// The file to replace: behind links, regular or not there yet.
std::filesystem::path resolve(const std::filesystem::path& path) {
  if (!path.has_filename()) refuse(path, "the path names no file");
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) refuse(path, "is a directory");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) refuse(path, "is not a regular file");
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) return path;
  auto target = std::filesystem::canonical(path, error);
  if (error) refuse(path, fmt::format("a symbolic link that leads nowhere: {}", error.message()));
  return target;
}

// A file that is written aside is locked by its process, so one that can be locked was left by a process that is gone. Where
// the file system has no locks, it stays.
void remove_strays(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const auto& entry : entries_of(directory, ignored)) {
    if (!is_written_aside(entry.path().filename().string())) continue;
    const int file = open_file(entry.path(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(file);
  }
}

// Whether the file is ours to write: between open() and flock() another process may have taken it for a stray one.
bool hold(int file) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return true;  // no locks here, and nobody who removes strays
  }
  struct stat status {};
  return ::fstat(file, &status) != 0 || status.st_nlink > 0;
}

}  // namespace

bool is_written_aside(std::string_view name) { return name.starts_with(".cautious-") && name.ends_with(".tmp"); }

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), target_(resolve(path)) {
  const auto directory = directory_of(target_);
  remove_strays(directory);
  while (file_ < 0) {
    auto aside = directory / fresh_name();
    file_ = open_file(aside, O_WRONLY | O_CREAT | O_EXCL);
    if (file_ < 0 && errno != EEXIST) fail(fmt::format("create a file in {}", directory.string()), errno);
    if (file_ >= 0 && !hold(file_)) ::close(std::exchange(file_, -1));
    if (file_ >= 0) aside_ = std::move(aside);
  }
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0) ::fchmod(file_, old.st_mode & 0777);  // where the file system has modes
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (file_ < 0) refuse(path_, "already committed or failed");
  while (!bytes.empty()) {
    constexpr std::size_t limit = std::size_t{1} << 30;  // Linux writes at most 2 GB per call
    const auto written = ::write(file_, bytes.data(), std::min(bytes.size(), limit));
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      fail("write", written == 0 ? ENOSPC : errno);
    }
  }
}

void AtomicFile::commit() {
  if (file_ < 0) refuse(path_, "already committed or failed");
  const auto directory = directory_of(target_);
  const int parent = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (parent < 0) fail(fmt::format("open the directory {}", directory.string()), errno);

  std::string_view step = "sync";
  int error = sync_file(file_);
  // A close that a signal interrupts has closed, and all is on the disk.
  if (error == 0 && (step = "close", ::close(std::exchange(file_, -1)) != 0 && errno != EINTR)) error = errno;
  if (error == 0) {
    step = "rename";
    do error = ::rename(aside_.c_str(), target_.c_str()) == 0 ? 0 : errno;
    while (error == EINTR);
  }
  if (error == 0) {
    aside_.clear();
    step = "sync the directory after renaming";  // the one failure that leaves the new file in place
    error = sync_file(parent);
  }
  ::close(parent);
  if (error != 0) fail(step, error);
}

void AtomicFile::fail(std::string_view step, int error) {
  discard();
  fail_at(path_, step, error);
}

void AtomicFile::discard() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  if (!aside_.empty()) ::unlink(aside_.c_str());
  aside_.clear();
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace cautious::base
