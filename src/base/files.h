// Files of all kinds but the atomic ones (atomic_file.h): read whole, mapped, grown by records; and a directory's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <cautious/error.h>

namespace cautious::base {

struct Reading {
  std::string_view what{};    // "the plan", for the message
  Fault fault = Fault::data;  // of a file that cannot be read
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

// Of a file that a program of ours left.
inline constexpr Reading kRecord{.most = std::size_t{64} << 20};

// All bytes of a regular file, or of a pipe that this process has been given, as in --config <(...): a named one would be
// waited for, and a device need not end. Otherwise an Error: "run.toml: cannot read the plan: No such file or directory".
std::string read_file(const std::filesystem::path& file, const Reading& reading = {});
// Nothing if there is no such file.
std::optional<std::string> read_file_if_any(const std::filesystem::path& file, const Reading& reading = {});

// The last `most` bytes of a file that another process may be writing; none if it cannot be read.
std::string read_end(const std::filesystem::path& file, std::size_t most);

// A file's bytes as memory that the system pages in on demand.
class MappedFile {
 public:
  // A file that cannot be opened is an Error(Fault::data) with the path and the system's reason. An empty file has no bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A file that grows by whole records, so that others can follow it: when append() returns, the record is there; when it throws,
// none of it is. Every failure is an Error(Fault::failure) with the path and the system's reason.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // created if it does not exist
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view record);
  void sync() const;  // returns when all records are on the disk

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// Whether an errno is what the user can mend, the name or the permission; anything else is the machine's.
bool is_of_the_name(int error);

// open() with O_CLOEXEC, again where a signal interrupts it.
int open_file(const std::filesystem::path& path, int flags);
// All bytes, whatever write() takes at a time; 0 or the error.
int write_all(int file, std::string_view bytes);
// fsync(); 0 or the error. Some file systems know none and say EINVAL; nothing more can be done there.
int sync_file(int file);
// A folder's own entries, or a file, to the disk. Failures are an Error(Fault::failure).
void sync_path(const std::filesystem::path& path);
// The file's first bytes remain. Failures are an Error(Fault::failure).
void cut_file(const std::filesystem::path& path, std::uintmax_t bytes);
// The folder and those above it, as far as they are not there; when it returns, their names are on the disk.
std::error_code make_folders(const std::filesystem::path& path);

// What is in the folder, sorted by path; listed anew where a signal interrupts it. Nothing after an error.
using Entries = std::vector<std::filesystem::directory_entry>;
Entries entries_of(const std::filesystem::path& folder, std::error_code& error);
// And what is in the folders below it; links are not followed.
Entries entries_below(const std::filesystem::path& folder, std::error_code& error);
// The same, and an Error(Fault::failure) where the folder cannot be listed.
Entries entries_of(const std::filesystem::path& folder);
Entries entries_below(const std::filesystem::path& folder);

// A directory that one process at a time works on: flock on its .lock. The lock belongs to the open file, so a killed process
// leaves none behind; the number inside .lock is for messages only.
class DirectoryLock {
 public:
  // Held until destroyed. A directory that another process holds is an Error(Fault::failure) with that process's number.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;

  // Whether the directory is still the one that was locked: it may have been moved or removed since.
  bool holds(const std::filesystem::path& directory) const;
  // Whether another process holds it now; nothing changes, and the directory need not be there.
  static bool is_held(const std::filesystem::path& directory);

 private:
  int file_ = -1;
};

// Error(Fault::data) about a file's content: "<where>: <message>"; `where` is the file, or the file and a line.
[[noreturn]] void refuse_content(const std::string& where, const std::string& message);
// Error(Fault::failure): "<path>: cannot <step>: <reason>".
[[noreturn]] void fail_at(const std::filesystem::path& path, std::string_view step, const std::string& reason);
[[noreturn]] void fail_at(const std::filesystem::path& path, std::string_view step, int error);  // of errno

}  // namespace cautious::base
