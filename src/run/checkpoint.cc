// Only rename() makes a name valid or invalid: whatever is half written or half removed has a name that begins with a dot.
#include "run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <system_error>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"

namespace cautious::run {
namespace {

constexpr std::string_view kAside = ".tmp-";  // ".step_00001000.tmp-<process>"

std::string folder_name(std::int64_t step) { return fmt::format("step_{:08}", step); }

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with("step_")) return std::nullopt;
  const auto step = base::parsed<std::int64_t>(name.substr(5));
  return step && *step >= 0 && name == folder_name(*step) ? step : std::nullopt;
}

// Left by a process that is gone. Our own number too: a folder is written by one thread, so it is from an earlier life.
bool stale(std::string_view name) {
  const auto mark = name.rfind(kAside);
  if (!name.starts_with(".step_") || mark == name.npos) return false;
  const auto process = base::parsed<pid_t>(name.substr(mark + kAside.size()));
  return process && *process > 0 && (*process == ::getpid() || (::kill(*process, 0) != 0 && errno == ESRCH));
}

// Nothing if there is no such folder.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    paths.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory) base::fail_at(folder, "list the directory", error.message());
  return paths;
}

void discard(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) base::fail_at(path, "remove", error.message());
}

void move_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) base::fail_at(from, fmt::format("rename to {}", to.filename().string()), errno);
}

// Some file systems know no fsync() and say EINVAL; nothing more can be done there.
void sync(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) base::fail_at(path, "open", errno);
  int error = 0;
  while (::fsync(file) != 0 && (error = errno) == EINTR) error = 0;
  ::close(file);
  if (error != 0 && error != EINVAL) base::fail_at(path, "sync", error);
}

void sync_all(const std::filesystem::path& folder) {
  for (const auto& path : entries(folder)) {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path, error);
    if (std::filesystem::is_directory(status)) sync_all(path);
    if (std::filesystem::is_regular_file(status)) sync(path);
  }
  sync(folder);
}

// A folder to write into, removed at the end unless it was renamed.
class Aside {
 public:
  Aside(const std::filesystem::path& folder, std::int64_t step)
      : path_(folder / fmt::format(".{}{}{}", folder_name(step), kAside, ::getpid())) {
    if (::mkdir(path_.c_str(), 0777) != 0) base::fail_at(path_, "make the directory", errno);
  }
  ~Aside() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// An older checkpoint of the step changes places with the new one, so that there is always one; where the file system cannot
// do that, it goes aside first.
void put_in_place(const std::filesystem::path& aside, const std::filesystem::path& target) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(target, error))) return move_folder(aside, target);
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  const auto old = target.parent_path() / fmt::format(".{}.old{}{}", target.filename().string(), kAside, ::getpid());
  move_folder(target, old);
  move_folder(aside, target);
  discard(old);
}

void remove_oldest(const std::filesystem::path& folder, std::int64_t newest, std::int64_t keep) {
  auto all = list_checkpoints(folder);
  auto excess = static_cast<std::int64_t>(all.size()) - keep;
  for (const CheckpointInfo& old : all) {
    if (excess <= 0) break;
    if (old.step == newest) continue;  // the one just written stays even if others have higher steps
    const auto aside = folder / fmt::format(".{}{}{}", folder_name(old.step), kAside, ::getpid());
    move_folder(old.path, aside);
    discard(aside);
    --excess;
  }
}

bool is_model(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder / "model.safetensors", error) &&
         std::filesystem::is_regular_file(folder / "config.json", error);
}

}  // namespace

std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<CheckpointInfo> found;
  for (const auto& path : entries(folder)) {
    std::error_code error;
    if (const auto step = step_of(path.filename().string()); step && std::filesystem::is_directory(path, error))
      found.push_back({*step, path});
  }
  std::ranges::sort(found, {}, &CheckpointInfo::step);
  return found;
}

void write_checkpoint(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep,
                      const std::function<void(const std::filesystem::path& aside)>& write) {
  base::check_range("the step of a checkpoint", static_cast<double>(step), kNonnegative);
  base::check_range("the number of checkpoints to keep", static_cast<double>(keep), {1, kLargest, false, true});
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) base::fail_at(folder, "make the directory", error.message());
  for (const auto& path : entries(folder))
    if (stale(path.filename().string())) discard(path);

  {
    const Aside aside(folder, step);
    write(aside.path());
    sync_all(aside.path());
    put_in_place(aside.path(), folder / folder_name(step));
    sync(folder);
  }
  remove_oldest(folder, step, keep);
}

std::filesystem::path find_checkpoint(const std::filesystem::path& run) {
  if (is_model(run)) return run;
  const std::string name = base::in_quotes(run.string());
  std::error_code error;
  if (!std::filesystem::is_directory(run, error))
    throw Error(Fault::data, fmt::format("{} is not a directory{}; expected a run directory or a folder with model.safetensors "
                                         "and config.json",
                                         name, error ? ": " + error.message() : ""));
  const auto all = list_checkpoints(run / "checkpoints");
  if (all.empty())
    throw Error(Fault::data, fmt::format("{} holds no checkpoint; looked for checkpoints/step_* (of a run) and for "
                                         "model.safetensors with config.json",
                                         name));
  if (!is_model(all.back().path))
    throw Error(Fault::data,
                fmt::format("{} has no model.safetensors with config.json", base::in_quotes(all.back().path.string())));
  return all.back().path;
}

}  // namespace cautious::run
