#include "base/aside_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/files.h"

namespace cautious::base {
namespace {

constexpr std::string_view kAside = ".tmp-";

void sync_all(const std::filesystem::path& folder) {
  for (const auto& entry : entries_of(folder)) {
    std::error_code ignored;
    const auto status = entry.symlink_status(ignored);
    if (std::filesystem::is_directory(status)) sync_all(entry.path());
    if (std::filesystem::is_regular_file(status)) sync_path(entry.path());
  }
  sync_path(folder);
}

}  // namespace

std::filesystem::path aside_of(const std::filesystem::path& target) {
  return target.parent_path() / fmt::format(".{}{}{}", target.filename().string(), kAside, ::getpid());
}

// One that can be locked has no process that writes it.
void remove_stray_folders(const std::filesystem::path& parent, std::string_view beginning) {
  std::error_code ignored;
  for (const auto& entry : entries_of(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(fmt::format(".{}", beginning)) || name.find(kAside) == name.npos) continue;
    const int folder = open_file(entry.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (folder < 0) continue;
    if (::flock(folder, LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
    ::close(folder);
  }
}

AsideFolder::AsideFolder(const std::filesystem::path& target) : path_(aside_of(target)) {
  remove_stray_folders(target.parent_path(), target.filename().string());
  if (::mkdir(path_.c_str(), 0777) != 0) fail_at(path_, "make the directory", errno);
  lock_ = open_file(path_, O_RDONLY | O_DIRECTORY);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);  // where there are no locks, nothing is stray
}

AsideFolder::~AsideFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void AsideFolder::sync() const { sync_all(path_); }

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  while (::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != EINTR) fail_at(from, fmt::format("rename to {}", to.filename().string()), errno);
  }
}

}  // namespace cautious::base
