// A folder that is written aside and appears under its name by one rename, complete or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace cautious::base {

// Made by the constructor as ".<name of the target>.tmp-<process>" beside the target, and removed with all that is in it by the
// destructor, unless it was renamed before. What a killed process left of the same target goes. Every failure is an
// Error(Fault::failure) with the path and the system's reason.
class AsideFolder {
 public:
  explicit AsideFolder(const std::filesystem::path& target);
  ~AsideFolder();
  AsideFolder(const AsideFolder&) = delete;
  AsideFolder& operator=(const AsideFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Waits until all files are on the disk; to be called before the rename.
  void sync() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // tells others that it is not a stray one
};

// The name that the constructor gives.
std::filesystem::path aside_of(const std::filesystem::path& target);
// Removes the folders that were written aside for targets whose names begin like this, and whose process is gone.
void remove_stray_folders(const std::filesystem::path& parent, std::string_view beginning);

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace cautious::base
