#include "study/results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"

namespace cautious::study {
namespace {

using Json = nlohmann::json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 3> kOutcomes{"done", "diverged", "stopped"};
constexpr std::array kProvenance{"version", "git", "compiler", "cpu", "blas", "threads"};

[[noreturn]] void refuse_summary(const std::filesystem::path& file, std::string_view why) {
  throw Error(Fault::data, fmt::format("{}; remove the file to repeat the run", why), {.where = file.string()});
}

// null is a number that was not finite.
double number_in(const Json& json, const std::filesystem::path& file, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) refuse_summary(file, fmt::format("'{}' is missing", key));
  if (found->is_null()) return kUnknown;
  if (!found->is_number()) refuse_summary(file, fmt::format("'{}' is {}, not a number", key, base::in_quotes(found->dump())));
  return found->get<double>();
}

std::string outcome_in(const Json& json, const std::filesystem::path& file) {
  const auto found = json.find("status");
  if (found == json.end() || !found->is_string()) refuse_summary(file, "'status' is missing or not a string");
  const auto status = found->get<std::string>();
  if (std::ranges::find(kOutcomes, status) == kOutcomes.end()) {
    refuse_summary(file, fmt::format("'status' is {}; valid: {}", base::in_quotes(status), base::join(kOutcomes)));
  }
  return status;
}

double number_if_any(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_number() ? 0 : found->get<double>();
}

// Whether the summary is that of a run that has ended by itself.
bool read_summary(FinishedRun& run, const std::filesystem::path& file, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) refuse_summary(file, "not a JSON object");
  const std::string outcome = outcome_in(json, file);
  run.decay_budget = number_in(json, file, "decay_budget");
  run.seconds = number_in(json, file, "seconds");
  run.parameters = number_if_any(json, "parameters");
  run.tokens = number_if_any(json, "tokens");
  for (const char* key : kProvenance) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    run.provenance.emplace_back(key, found->is_string() ? found->get<std::string>() : found->dump());
  }
  const double loss = number_in(json, file, "val_loss"), bits = number_in(json, file, "val_bpb"),
               accuracy = number_in(json, file, "val_accuracy");
  if (outcome == "stopped") return false;
  run.status = outcome == "done" ? RunStatus::done : RunStatus::diverged;
  if (run.status != RunStatus::done) return true;
  run.loss = loss;
  run.bits_per_byte = bits;
  run.accuracy = accuracy;
  return true;
}

[[noreturn]] void refuse_directory(const std::filesystem::path& directory, std::string_view why) {
  throw Error(Fault::usage, fmt::format("{} is not a study: {}", base::in_quotes(directory.string()), why));
}

void check_arm(const Results& results, const std::string& arm) {
  std::vector<std::string_view> names;
  for (const Arm& known : results.plan.arms) names.push_back(known.name);
  base::index_of_name("arm", arm, names);
}

}  // namespace

std::filesystem::path folder_of(const Results& results, const FinishedRun& run) {
  return results.directory / "runs" / run.run.folder;
}

FinishedRun read_run(const std::filesystem::path& folder, PlannedRun run) {
  FinishedRun result{.run = std::move(run), .loss = kUnknown, .bits_per_byte = kUnknown, .accuracy = kUnknown, .failure = {}};
  const base::Reading reading{.fault = Fault::failure};
  const auto summary = folder / "summary.json";
  const auto text = base::read_file_if_any(summary, reading);
  if (text && read_summary(result, summary, *text)) return result;
  if (const auto said = base::read_file_if_any(folder / "failure.txt", reading)) {
    result.status = RunStatus::failed;
    result.failure = base::last_message(*said);
  } else if (!text && std::filesystem::exists(folder / "config.toml")) {
    result.status = RunStatus::running;
  }
  return result;
}

Results read_results(const std::filesystem::path& directory) {
  std::error_code error;
  const auto plan = directory / "plan.toml", runs = directory / "runs";
  if (!std::filesystem::is_directory(directory, error)) refuse_directory(directory, "there is no such directory");
  if (!std::filesystem::exists(plan, error)) refuse_directory(directory, "it has no plan.toml");
  if (!std::filesystem::is_directory(runs, error)) refuse_directory(directory, "it has no folder runs");
  Results results{.directory = directory, .plan = read_plan(plan), .runs = {}};
  for (PlannedRun& run : expand(results.plan)) {
    const auto folder = runs / run.folder;
    results.runs.push_back(read_run(folder, std::move(run)));
  }
  return results;
}

std::vector<double> losses_of(const Results& results, const std::string& arm, const Overrides& point) {
  check_arm(results, arm);
  std::vector<double> losses(results.plan.seeds.size(), kUnknown);
  for (const FinishedRun& run : results.runs) {
    if (run.run.arm != arm || run.run.point != point || run.status != RunStatus::done) continue;
    const auto seed = std::ranges::find(results.plan.seeds, run.run.seed);
    if (seed != results.plan.seeds.end()) losses[static_cast<std::size_t>(seed - results.plan.seeds.begin())] = run.loss;
  }
  return losses;
}

std::vector<Overrides> points_of(const Results& results, const std::string& arm) {
  check_arm(results, arm);
  std::vector<Overrides> points;
  for (const FinishedRun& run : results.runs) {
    const bool known = std::ranges::find(points, run.run.point) != points.end();
    if (run.run.arm == arm && !known) points.push_back(run.run.point);
  }
  return points;
}

bool Standing::ahead_of(const Standing& other) const { return done != other.done ? done > other.done : mean < other.mean; }

Standing standing_of(const std::vector<double>& losses, std::ptrdiff_t left_out) {
  double sum = 0;
  std::size_t done = 0;
  for (std::size_t seed = 0; seed < losses.size(); ++seed) {
    if (static_cast<std::ptrdiff_t>(seed) == left_out || std::isnan(losses[seed])) continue;
    sum += losses[seed];
    ++done;
  }
  return {done, done == 0 ? kUnknown : sum / static_cast<double>(done)};
}

Overrides best_point(const Results& results, const std::string& arm) {
  Overrides best;
  Standing first;
  const std::vector<Overrides> points = points_of(results, arm);
  for (const Overrides& point : points) {
    const Standing standing = standing_of(losses_of(results, arm, point));
    if (&point != &points.front() && !standing.ahead_of(first)) continue;
    best = point;
    first = standing;
  }
  return best;
}

std::vector<Overrides> best_points(const Results& results) {
  std::vector<Overrides> points;
  for (const Arm& arm : results.plan.arms) points.push_back(best_point(results, arm.name));
  return points;
}

}  // namespace cautious::study
