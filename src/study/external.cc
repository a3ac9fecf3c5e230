#include "study/external.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "run/decay_trace.h"
#include "study/progress.h"

namespace cautious::study {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

std::vector<PlannedRun> external_runs(const Plan& plan) {
  std::vector<PlannedRun> runs = expand(plan);
  for (const PlannedRun& run : runs) {
    if (run.config.task == run::TaskKind::external) continue;
    throw Error(Fault::usage, fmt::format("task of arm '{}' is '{}', but these runs are made by the caller; set task = "
                                          "\"external\"",
                                          run.arm, cautious::name_of(run.config.task)));
  }
  return runs;
}

// Why a control cannot be made; empty if it can.
std::string obstacle_to(const ExternalRun& run) {
  const std::filesystem::path reference = run.density_from.empty() ? run.budget_from : run.density_from;
  if (reference.empty()) return "";
  try {
    if (!run::DecayTrace::read(reference).tensors().empty()) return "";
  } catch (const Error& error) {
    return error.what();
  }
  return fmt::format(
      "its reference run, {}, recorded no decay to repeat: it did not step an optimizer(model), or the parameters "
      "of that one changed on the way",
      reference.filename().string());
}

}  // namespace

ExternalStudy::ExternalStudy(const Plan& plan, const std::filesystem::path& directory)
    : ExternalStudy(plan, external_runs(plan), directory) {}

ExternalStudy::ExternalStudy(Plan plan, std::vector<PlannedRun> runs, const std::filesystem::path& directory)
    : plan_(std::move(plan)), directory_(directory, plan_, runs), agenda_(directory_, plan_, std::move(runs), read_run) {}

std::optional<ExternalRun> ExternalStudy::next() {
  if (current_) end({.interrupted = true});
  agenda_.refresh();
  while ((current_ = agenda_.next())) {
    agenda_.begin(*current_);
    const ExternalRun one = run();
    begin(one, agenda_.config_of(*current_));
    start_ = Clock::now();
    const std::string obstacle = obstacle_to(one);
    if (obstacle.empty()) return one;
    end({.said = obstacle});
  }
  return std::nullopt;
}

ExternalRun ExternalStudy::run() const {
  PlannedRun planned = agenda_.runs()[*current_].run;
  planned.config = agenda_.config_of(*current_);
  return external_run(planned, directory_.run(planned));
}

void ExternalStudy::finish(double objective, double decay_budget) {
  if (!current_) throw Error(Fault::usage, "there is no run to finish; next() gives one out");
  if (!agenda_.holds(*current_)) return end({});
  const ExternalRun one = run();
  if (one.decay_trace && !std::filesystem::exists(one.directory / run::kDecayTrace)) {
    run::DecayTraceWriter(one.directory, {}, 0);  // it will never have one, and so is not made again for its controls
  }
  study::finish(one, {.objective = objective, .seconds = seconds_since(start_), .decay_budget = decay_budget});
  end({});
}

void ExternalStudy::fail(const std::string& why, const std::string& log) {
  if (!current_) throw Error(Fault::usage, "there is no run that could fail; next() gives one out");
  if (agenda_.holds(*current_)) base::write_atomically(directory_.said(agenda_.runs()[*current_].run), log);
  end({.said = base::in_one_line(why)});
}

void ExternalStudy::end(const Agenda::Ending& ending) {
  agenda_.conclude(*current_, ending);
  last_ = std::exchange(current_, std::nullopt);
}

std::string ExternalStudy::progress() const {
  const std::vector<FinishedRun>& runs = agenda_.runs();
  std::vector<double> done;
  for (const FinishedRun& run : runs) done.push_back(run.status == RunStatus::done ? 1 : 0);
  const double left = seconds_left(runs, done, 1, std::numeric_limits<double>::quiet_NaN());
  const std::string all =
      fmt::format("{}  {} < {}", overall(runs, done), base::clock_text(seconds_since(begun_)), base::clock_text(left));
  return last_ ? fmt::format("{} | {}", ending_of(runs[*last_]), all) : all;
}

Conclusion ExternalStudy::conclude() const {
  return study::conclude({.directory = directory_.path(), .plan = plan_, .runs = agenda_.runs()});
}

std::size_t ExternalStudy::count(RunStatus status) const {
  return static_cast<std::size_t>(std::ranges::count(agenda_.runs(), status, &FinishedRun::status));
}

}  // namespace cautious::study
