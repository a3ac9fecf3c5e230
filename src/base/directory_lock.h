// A directory that one process at a time works on: flock on its .lock. The lock belongs to the open file, so a killed process
// leaves none behind; the number inside .lock is for messages only.
#pragma once

#include <filesystem>
#include <utility>

namespace cautious::base {

class DirectoryLock {
 public:
  // Held until destroyed. A directory that another process holds is an Error(Fault::failure) with that process's number.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;

 private:
  int file_ = -1;
};

}  // namespace cautious::base
