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
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "run/config_table.h"

namespace cautious::study {
namespace {

using Json = nlohmann::json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 3> kOutcomes{"done", "diverged", "stopped"};
constexpr std::array kProvenance{"version", "git", "compiler", "cpu", "blas", "threads"};
constexpr std::array kCounts{"parameters",  "steps",      "horizon", "best_step", "tokens",          "images",
                             "val_targets", "val_images", "threads", "ranks",     "optimizer_bytes", "peak_rss_bytes"};
constexpr Range kPercent{0, 100, false, false};
constexpr std::string_view kScore = "eval/", kScoreError = "_stderr";

struct SummaryNumber {
  const char* key;
  Range valid;
};
constexpr std::array<SummaryNumber, 11> kNumbers{{{"objective", kFinite},
                                                  {"val_loss", kFinite},
                                                  {"best_val_loss", kFinite},
                                                  {"val_bpb", kFinite},
                                                  {"val_accuracy", kFraction},
                                                  {"val_error", kPercent},
                                                  {"best_val_error", kPercent},
                                                  {"val_top5_error", kPercent},
                                                  {"decay_budget", kFinite},
                                                  {"seconds", kNonnegative},
                                                  {"seed", kNonnegative}}};

[[noreturn]] void refuse_summary(const std::filesystem::path& file, std::string_view why) {
  throw Error(Fault::data, fmt::format("{}; remove the file to repeat the run", why), {.where = file.string()});
}

// null is a number that was not finite.
double number_in(const Json& json, const std::filesystem::path& file, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end()) refuse_summary(file, fmt::format("'{}' is missing", key));
  if (found->is_null()) return kUnknown;
  if (!found->is_number()) refuse_summary(file, fmt::format("'{}' is {}, not a number", key, base::in_quotes(found->dump())));
  const auto number = found->get<double>();
  if (!kFinite.contains(number)) {
    refuse_summary(file, fmt::format("'{}' is {}; valid: finite numbers up to {}", key, number, kLargest));
  }
  return number;
}

// 0 where there is none, as of external runs.
double count_in(const Json& json, const std::filesystem::path& file, const std::string& key) {
  if (!json.contains(key)) return 0;
  const double count = number_in(json, file, key);
  if (!(count >= 0)) refuse_summary(file, fmt::format("'{}' is {}, not a count", key, json[key].dump()));
  return count;
}

void check_number(const Json& json, const std::filesystem::path& file, const std::string& key, const Range& valid) {
  const double number = json.contains(key) ? number_in(json, file, key) : kUnknown;
  if (std::isnan(number) || valid.contains(number)) return;
  refuse_summary(file, fmt::format("'{}' is {}; valid: {}", key, number, to_string(valid)));
}

// Those that are there, whether or not anything is computed from them: reports show all.
void check_numbers(const Json& json, const std::filesystem::path& file) {
  for (const char* const key : kCounts) count_in(json, file, key);
  for (const SummaryNumber& number : kNumbers) check_number(json, file, number.key, number.valid);
  for (const auto& [key, value] : json.items()) {
    if (key.starts_with(kScore)) check_number(json, file, key, key.ends_with(kScoreError) ? kNonnegative : kFraction);
  }
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

struct Summary {
  Json json;
  std::string outcome;
};

Summary summary_in(const std::string& text, const std::filesystem::path& file) {
  Json json = base::parse_json<Json>(text);
  if (!json.is_object()) refuse_summary(file, "not a JSON object");
  std::string outcome = outcome_in(json, file);
  check_numbers(json, file);
  return {std::move(json), std::move(outcome)};
}

// Scores of benchmarks, in the order of the summary; those that were not finite are left out.
std::vector<std::pair<std::string, double>> scores_in(const Json& json, const std::filesystem::path& file) {
  std::vector<std::pair<std::string, double>> scores;
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with(kScore) || key.ends_with(kScoreError) || value.is_null()) continue;
    std::string name = key.substr(kScore.size());
    std::ranges::replace(name, '/', ' ');
    scores.emplace_back(std::move(name), number_in(json, file, key));
  }
  return scores;
}

// Whether the summary is that of a run that has ended by itself.
bool read_summary(FinishedRun& run, const std::filesystem::path& file, const std::string& text) {
  const auto [json, outcome] = summary_in(text, file);
  const Measure measure = measure_of(run.run);
  run.decay_budget = number_in(json, file, "decay_budget");
  run.seconds = number_in(json, file, "seconds");
  run.parameters = count_in(json, file, "parameters");
  run.seen = count_in(json, file, std::string(run::unit_of(measure.task)));
  for (const char* key : kProvenance) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    run.provenance.emplace_back(key, found->is_string() ? found->get<std::string>() : found->dump());
  }
  if (outcome == "stopped") return false;
  run.status = outcome == "done" ? RunStatus::done : RunStatus::diverged;
  if (run.status != RunStatus::done) return true;
  std::vector<double> numbers;
  for (const Measure::Column& column : measure.columns) numbers.push_back(column.of(number_in(json, file, column.key)));
  run.scores = scores_in(json, file);
  run.loss = numbers[0];
  std::copy(numbers.begin() + 1, numbers.end(), run.beside.begin());
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

std::vector<double> losses_on(const std::vector<std::uint64_t>& seeds, const std::vector<FinishedRun>& runs,
                              const std::string& arm, const Overrides& point) {
  std::vector<double> losses(seeds.size(), kUnknown);
  for (const FinishedRun& run : runs) {
    if (run.run.arm != arm || run.run.point != point || run.status != RunStatus::done) continue;
    const auto seed = std::ranges::find(seeds, run.run.seed);
    if (seed != seeds.end()) losses[static_cast<std::size_t>(seed - seeds.begin())] = run.loss;
  }
  return losses;
}

std::vector<Overrides> points_in(const std::vector<FinishedRun>& runs, const std::string& arm) {
  std::vector<Overrides> points;
  for (const FinishedRun& run : runs) {
    if (run.run.arm == arm && std::ranges::find(points, run.run.point) == points.end()) points.push_back(run.run.point);
  }
  return points;
}

// The first point that none is ahead of.
template <class Losses>
Overrides ahead(const std::vector<Overrides>& points, const Losses& losses_at) {
  Overrides best;
  Standing first;
  for (const Overrides& point : points) {
    const Standing standing = standing_of(losses_at(point));
    if (&point != &points.front() && !standing.ahead_of(first)) continue;
    best = point;
    first = standing;
  }
  return best;
}

// The first or the last of several numbers. No decay at all is not the edge of a grid: nothing lies beyond.
bool is_edge(const Axis& axis, const std::string& value) {
  std::vector<double> numbers;
  for (const std::string& text : axis.values) {
    const std::optional<double> number = base::parsed<double>(text);
    if (!number) return false;
    numbers.push_back(*number);
  }
  const double own = base::parsed<double>(value).value_or(0);
  const auto [low, high] = std::ranges::minmax(numbers);
  if (numbers.size() < 2 || (own == 0 && run::without_section(axis.key) == "weight_decay")) return false;
  return own == low || own == high;
}

}  // namespace

Measure measure_of(const std::vector<FinishedRun>& runs) {
  return runs.empty() ? measure_of(run::TaskKind::text) : measure_of(runs.front().run);
}

std::filesystem::path folder_of(const Results& results, const FinishedRun& run) {
  return results.directory / "runs" / run.run.folder;
}

std::string outcome_of(const std::string& summary, const std::filesystem::path& file) {
  return summary_in(summary, file).outcome;
}

FinishedRun read_run(const std::filesystem::path& folder, PlannedRun run) {
  FinishedRun result{.run = std::move(run), .loss = kUnknown, .beside = {kUnknown, kUnknown}, .failure = {}};
  base::Reading reading = base::kRecord;
  reading.fault = Fault::failure;
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
  if (!std::filesystem::is_regular_file(plan, error)) refuse_directory(directory, "it has no plan.toml");
  if (!std::filesystem::is_directory(runs, error)) refuse_directory(directory, "it has no folder runs");
  Results results{.directory = directory, .plan = read_plan(plan), .runs = {}};
  for (PlannedRun& run : expand(results.plan)) {
    const auto folder = runs / run.folder;
    results.runs.push_back(read_run(folder, std::move(run)));
  }
  settle(results.plan, results.runs);
  return results;
}

std::vector<double> losses_of(const Results& results, const std::string& arm, const Overrides& point) {
  check_arm(results, arm);
  return losses_on(results.plan.seeds, results.runs, arm, point);
}

std::vector<double> tuning_losses_of(const Results& results, const std::string& arm, const Overrides& point) {
  check_arm(results, arm);
  return losses_on(results.plan.tune_seeds, results.runs, arm, point);
}

std::vector<Overrides> points_of(const Results& results, const std::string& arm) {
  check_arm(results, arm);
  return points_in(results.runs, arm);
}

bool Standing::ahead_of(const Standing& other) const { return done != other.done ? done > other.done : mean < other.mean; }

Standing standing_of(const std::vector<double>& losses) {
  double sum = 0;
  std::size_t done = 0;
  for (const double loss : losses) {
    if (std::isnan(loss)) continue;
    sum += loss;
    ++done;
  }
  return {done, done == 0 ? kUnknown : sum / static_cast<double>(done)};
}

Choice choose(const Plan& plan, const std::vector<FinishedRun>& runs, const std::string& arm) {
  const auto own = std::ranges::find(plan.arms, arm, &Arm::name);
  const std::string& chooser = own->chooser();
  const std::vector<Overrides> points = points_in(runs, chooser);
  if (points.size() == 1) return {.point = points.front(), .edges = {}, .decided = true};
  const auto tunes = [&](const FinishedRun& run) { return run.run.tuning && run.run.arm == chooser; };
  const auto open = [&](const FinishedRun& run) {
    return tunes(run) && run.status != RunStatus::done && run.status != RunStatus::diverged;
  };
  Choice choice;
  choice.decided = std::ranges::any_of(runs, tunes) && std::ranges::none_of(runs, open);
  if (!choice.decided) return choice;
  choice.point = ahead(points, [&](const Overrides& point) { return losses_on(plan.tune_seeds, runs, chooser, point); });
  for (const Axis& axis : axes_of(plan, *own)) {
    const auto value = std::ranges::find(choice.point, axis.key, [](const auto& entry) { return entry.first; });
    if (value != choice.point.end() && is_edge(axis, value->second)) choice.edges.push_back(axis.key);
  }
  return choice;
}

Choice chosen_point(const Results& results, const std::string& arm) {
  check_arm(results, arm);
  return choose(results.plan, results.runs, arm);
}

std::map<std::string, Choice> settle(const Plan& plan, std::vector<FinishedRun>& runs) {
  std::map<std::string, Choice> choices;
  for (const Arm& arm : plan.arms) choices.emplace(arm.name, choose(plan, runs, arm.name));
  for (FinishedRun& run : runs) {
    const bool ended = run.status == RunStatus::done || run.status == RunStatus::diverged;
    if (!run.run.candidate || (ended && run.run.share > 0)) continue;
    const Choice& choice = choices.at(run.run.arm);
    if (choice.decided && choice.point != run.run.point) run.status = RunStatus::left_out;
  }
  return choices;
}

Overrides best_point(const Results& results, const std::string& arm) {
  const Choice choice = chosen_point(results, arm);
  if (choice.decided) return choice.point;
  return ahead(points_of(results, arm), [&](const Overrides& point) { return losses_of(results, arm, point); });
}

std::vector<Overrides> best_points(const Results& results) {
  std::vector<Overrides> points;
  for (const Arm& arm : results.plan.arms) points.push_back(best_point(results, arm.name));
  return points;
}

}  // namespace cautious::study
