#include "base/aside_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/files.h"

namespace cautious::base {
namespace {

void sync_all(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const auto status = std::filesystem::symlink_status(at->path(), ignored);
    if (std::filesystem::is_directory(status)) sync_all(at->path());
    if (std::filesystem::is_regular_file(status)) sync_path(at->path());
  }
  if (error) fail_at(folder, "list the directory", error.message());
  sync_path(folder);
}

}  // namespace

AsideFolder::AsideFolder(std::filesystem::path path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), 0777) != 0) fail_at(path_, "make the directory", errno);
}

AsideFolder::~AsideFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void AsideFolder::sync() const { sync_all(path_); }

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_at(from, fmt::format("rename to {}", to.filename().string()), errno);
}

// Some file systems know no fsync() and say EINVAL; nothing more can be done there.
void sync_path(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_at(path, "open", errno);
  int error = 0;
  while (::fsync(file) != 0 && (error = errno) == EINTR) error = 0;
  ::close(file);
  if (error != 0 && error != EINVAL) fail_at(path, "sync", error);
}

}  // namespace cautious::base
