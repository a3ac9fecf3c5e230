#include "run/directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <system_error>
#include <vector>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"

namespace cautious::run {
namespace {

[[noreturn]] void fail_out(std::string_view what, const std::filesystem::path& path, const std::string& why) {
  throw Error(Fault::failure, fmt::format("cannot {} {}: {}", what, base::in_quotes(path.string()), why), {.where = "out"});
}

// What is inside, sorted, but for what a killed RunDirectory::create leaves.
std::vector<std::string> names_in(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : base::entries_of(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name != ".lock" && !base::is_written_aside(name)) names.push_back(name);
  }
  if (error) fail_out("list the directory", path, error.message());
  return names;
}

void require_name(const std::filesystem::path& path) {
  if (path.empty())
    throw Error(Fault::usage, "is empty; expected a directory, as in: cautious train --out runs/a", {.where = "out"});
}

void require_empty(const std::filesystem::path& path) {
  const auto names = names_in(path);
  if (names.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string some;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    const std::string name = base::in_quotes(names[i]);
    some += fmt::format("{}{}", i == 0 ? "" : ", ", std::string_view(name).substr(1, name.size() - 2));
  }
  const bool is_run = std::ranges::find(names, "config.toml") != names.end();
  throw Error(
      Fault::usage,
      fmt::format("{} is not empty ({}{}); {}choose another directory", base::in_quotes(path.string()), some,
                  names.size() > kShown ? ", ..." : "",
                  is_run ? fmt::format("to continue it: cautious train --out {} --resume; or ", base::shell_word(path)) : ""),
      {.where = "out"});
}

// What is written into a directory that somebody sent must stay in it.
void refuse_links(const std::filesystem::path& path) {
  constexpr std::array kOwn{"config.toml",     "metrics.jsonl", "metrics.csv", "summary.json", "summary.csv", "log.txt",
                            "decay_trace.bin", "checkpoints",   "tb"};
  for (const char* const name : kOwn) {
    std::error_code error;
    if (!std::filesystem::is_symlink(path / name, error)) continue;
    base::refuse_content((path / name).string(), "a link, where a run has a file or folder of its own; put that in its place");
  }
}

}  // namespace

RunDirectory RunDirectory::create(const std::filesystem::path& path, std::string_view config) {
  require_name(path);
  if (const std::error_code error = base::make_folders(path)) fail_out("make the directory", path, error.message());
  require_empty(path);  // before anything is written into someone's folder
  RunDirectory run(path, base::DirectoryLock(path));
  require_empty(path);  // another process may have been faster
  base::write_atomically(run.config(), config);
  return run;
}

void RunDirectory::check_new(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) require_empty(path);
}

RunDirectory RunDirectory::open(const std::filesystem::path& path) {
  require_name(path);
  std::error_code error;
  const auto status = std::filesystem::status(path / "config.toml", error);
  if (!std::filesystem::is_regular_file(status)) {
    if (!std::filesystem::status_known(status)) fail_out("open", path, error.message());
    throw Error(
        Fault::usage,
        fmt::format("{} is not a run directory: {}; to begin a run: cautious train --out {}", base::in_quotes(path.string()),
                    std::filesystem::is_directory(path, error) ? "it has no config.toml" : "there is no such directory",
                    base::shell_word(path)),
        {.where = "out"});
  }
  refuse_links(path);
  return RunDirectory(path, base::DirectoryLock(path));
}

void RunDirectory::check_there() const {
  if (lock_.holds(path_)) return;
  throw Error(Fault::failure, fmt::format("{} was moved or removed while the run worked", base::in_quotes(path_.string())),
              {.where = "out"});
}

void RunDirectory::log(std::string_view line) const {
  const auto now = fmt::gmtime(std::time(nullptr));
  base::AppendFile(path_ / "log.txt").append(fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}\n", now, line));
}

}  // namespace cautious::run
