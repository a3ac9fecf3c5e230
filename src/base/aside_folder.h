// A folder that is written aside and appears under its name by one rename, complete or not at all.
#pragma once

#include <filesystem>

namespace cautious::base {

// Made by the constructor, removed with all that is in it by the destructor, unless it was renamed before. Every failure is an
// Error(Fault::failure) with the path and the system's reason.
class AsideFolder {
 public:
  explicit AsideFolder(std::filesystem::path path);
  ~AsideFolder();
  AsideFolder(const AsideFolder&) = delete;
  AsideFolder& operator=(const AsideFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Waits until all files are on the disk; to be called before the rename.
  void sync() const;

 private:
  std::filesystem::path path_;
};

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);
// A folder's own entries, or a file, to the disk.
void sync_path(const std::filesystem::path& path);

}  // namespace cautious::base
