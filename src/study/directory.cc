// Which directory a plan may work in, and how its own is laid out.
#include "study/directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <system_error>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"

namespace cautious::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlan = "plan.toml";
constexpr std::string_view kClaims = "claims";
constexpr std::array<std::string_view, 4> kFolders{"runs", "configs", "logs", kClaims};

[[noreturn]] void fail_to(std::string_view what, const fs::path& path, const std::error_code& error) {
  throw Error(Fault::failure, fmt::format("cannot {} {}: {}", what, base::in_quotes(path.string()), error.message()),
              {.where = "out"});
}

// What is inside, sorted, but for what a killed process leaves.
std::vector<std::string> names_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : base::entries_of(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!base::is_written_aside(name)) names.push_back(name);
  }
  if (error) fail_to("list the directory", path, error);
  return names;
}

bool holds(const fs::path& path, const std::string& plan) {
  return base::read_file_if_any(path / kPlan, {.what = "the plan"}) == plan;
}

// Whether these are the beginnings of a study, which another process is making or was killed at: the plan comes last.
bool is_being_made(const fs::path& path, const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    std::error_code error;
    return name == kClaims || (std::ranges::find(kFolders, name) != kFolders.end() && fs::is_empty(path / name, error));
  });
}

[[noreturn]] void refuse_other_plan(const fs::path& path, std::size_t count) {
  throw Error(Fault::usage,
              fmt::format("{} is the study {}, and none of its {} runs is one of this plan; choose another directory",
                          base::in_quotes(path.string()), base::in_quotes(read_plan(path / kPlan).title), count),
              {.where = "out"});
}

// Throws unless the plan can work in there. Changes nothing.
void check_usable(const fs::path& path, const Plan& plan, const std::vector<PlannedRun>& runs) {
  const std::vector<std::string> names = names_in(path);
  if (is_being_made(path, names)) return;
  // A plan alone may be the user's own file.
  for (const std::string_view part : {kPlan, std::string_view("runs"), std::string_view("configs")}) {
    if (std::ranges::find(names, part) != names.end()) continue;
    throw Error(Fault::usage,
                fmt::format("{} is not empty and not a study: it has {}, but no {}; choose another directory",
                            base::in_quotes(path.string()), base::in_quotes(names.front()), part),
                {.where = "out"});
  }
  if (holds(path, to_toml(plan))) return;
  const std::vector<std::string> known = names_in(path / "runs");
  const auto belongs = [&](const PlannedRun& run) { return std::ranges::binary_search(known, run.folder); };
  if (!known.empty() && std::ranges::none_of(runs, belongs)) refuse_other_plan(path, known.size());
}

void make_directory(const fs::path& path) {
  if (const std::error_code error = base::make_folders(path)) fail_to("make the directory", path, error);
}

// The directory, looked at, with the folder of claims.
fs::path usable(const fs::path& path, const Plan& plan, const std::vector<PlannedRun>& runs) {
  if (path.empty())
    throw Error(Fault::usage, "is empty; expected a directory, as in: cautious study plan.toml --out out", {.where = "out"});
  make_directory(path);
  check_usable(path, plan, runs);  // before anything is written into someone's folder
  make_directory(path / kClaims);
  fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

}  // namespace

StudyDirectory::StudyDirectory(const fs::path& path, const Plan& plan, const std::vector<PlannedRun>& runs, Lease lease,
                               const Worker& worker)
    : path_(usable(path, plan, runs)), plan_(to_toml(plan)), claims_(path_ / kClaims, lease, worker) {
  constexpr const char* kChange = "plan";  // one at a time changes it; a run's folder has a longer name
  claims_.wait_for(kChange);
  check_usable(path_, plan, runs);  // another process may have been faster
  for (const std::string_view folder : kFolders) make_directory(path_ / folder);
  if (!holds(path_, plan_)) {
    const bool known = fs::exists(path_ / kPlan);
    if (const std::string who = known ? claims_.someone_else() : ""; !who.empty()) {
      throw Error(Fault::failure,
                  fmt::format("{} is in use by {} with another plan; wait until it ends or choose another directory",
                              base::in_quotes(path.string()), who),
                  {.where = "out"});
    }
    base::write_atomically(path_ / kPlan, plan_);
    log(known ? "the plan has changed" : "the plan is new");
  }
  claims_.give_back(kChange);
}

void StudyDirectory::check(const fs::path& path, const Plan& plan, const std::vector<PlannedRun>& runs) {
  std::error_code error;
  if (fs::is_directory(path, error)) check_usable(path, plan, runs);
}

void StudyDirectory::check_plan() const {
  if (holds(path_, plan_)) return;
  throw Error(Fault::failure,
              fmt::format("the plan of {} is not this one any more; to see what changed it: tail {}",
                          base::in_quotes(path_.string()), base::shell_word(path_ / "log.txt")),
              {.where = "out"});
}

void StudyDirectory::log(std::string_view line) const {
  const auto now = fmt::gmtime(std::time(nullptr));
  const std::string who = claims_.worker().name();
  base::AppendFile(path_ / "log.txt").append(fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {}\n", now, who, line));
}

}  // namespace cautious::study
