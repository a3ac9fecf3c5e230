// --dry-run of `study`, `compare` and `reproduce`: the runs of a plan, how far they are, and what the rest takes.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/study.h"
#include "run/config.h"
#include "study/directory.h"
#include "study/reproduce.h"
#include "study/results.h"

namespace cautious::cli {
namespace {

enum class Standing { planned, candidate, done, left_out };

// Where each run of the plan is, with what a study in `out` has made already, if there is one.
std::vector<Standing> standings_in(const std::filesystem::path& out, const study::Plan& plan,
                                   const std::vector<study::PlannedRun>& runs) {
  const bool begun = !out.empty() && std::filesystem::exists(out / "plan.toml");
  std::vector<study::FinishedRun> known;
  for (const study::PlannedRun& run : runs) {
    study::FinishedRun& one = known.emplace_back();
    one.run = run;
    if (begun) one = study::read_run(out / "runs" / run.folder, run);
  }
  const auto choices = study::settle(plan, known);
  std::vector<Standing> standings;
  for (const study::FinishedRun& one : known) {
    const bool done = one.status == study::RunStatus::done || one.status == study::RunStatus::diverged;
    standings.push_back(one.status == study::RunStatus::left_out                ? Standing::left_out
                        : done                                                  ? Standing::done
                        : one.run.candidate && !choices.at(one.run.arm).decided ? Standing::candidate
                                                                                : Standing::planned);
  }
  return standings;
}

// An arm whose point the tuning seeds choose, and the seeds that it is then run on.
struct Choice {
  std::string arm;
  std::set<std::uint64_t> seeds = {};
};

void add_candidate(std::vector<Choice>& choices, const study::PlannedRun& run) {
  auto choice = std::ranges::find(choices, run.arm, &Choice::arm);
  if (choice == choices.end()) choice = choices.insert(choice, {run.arm});
  choice->seeds.insert(run.seed);
}

}  // namespace

std::string duration_text(double hours) {
  if (hours < 1) return fmt::format("{:.0f} min", std::max(1.0, hours * 60));
  if (hours < 100) return fmt::format("{:.1f} h", hours);
  if (hours < 24 * 365) return fmt::format("{:.0f} days", hours / 24);
  return fmt::format("{:.2g} years", hours / 24 / 365);
}

int list_runs(const study::Plan& plan, std::vector<study::PlannedRun> runs, int jobs, const std::filesystem::path& out,
              const study::Shard& shard) {
  study::StudyDirectory::check(out, plan, runs);
  std::size_t width = 3;
  for (const study::PlannedRun& run : runs) width = std::max(width, run.folder.size());
  const bool external = runs.front().config.task == run::TaskKind::external;  // their size is not known
  const std::string_view unit = run::unit_of(runs.front().config.task);
  double all = 0, count = 0;
  std::size_t done = 0;
  std::vector<Choice> choices;
  std::set<std::string> counted;
  std::string text = external ? "run\n" : fmt::format("{:<{}} {:>9} {:>11} {:>9}\n", "run", width, "steps", "parameters", unit);
  const std::vector<Standing> standings = standings_in(out, plan, runs);
  const std::vector<bool> listed = in_shard(runs, shard);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    study::PlannedRun& run = runs[i];
    const bool candidate = standings[i] == Standing::candidate;
    const bool made = !candidate && standings[i] != Standing::left_out && listed[i] && counted.insert(run.folder).second;
    if (!candidate || !listed[i]) run.share = made ? 1 : 0;
    if (run.share == 0) continue;
    const std::int64_t steps = steps_of(run.config);
    const double units = static_cast<double>(steps) * static_cast<double>(run::units_per_step(run.config));
    if (candidate) {
      add_candidate(choices, run);
      all += run.share * units;
      count += run.share;
      continue;
    }
    text += fmt::format("{:<{}}", run.folder, width);
    if (!external) text += fmt::format(" {:>9} {:>11} {:>9}", steps, run::parameters_of(run.config), base::count_text(units));
    text += run.tuning ? "  tuning\n" : "\n";
    if (standings[i] == Standing::done) {
      text.insert(text.size() - 1, "  done");
      run.share = 0;
      ++done;
    }
    all += run.share * units;
    count += run.share;
  }
  for (const auto& [arm, seeds] : choices) {
    text += fmt::format("{}: {} run{} at the point that the tuning seeds choose\n", arm, seeds.size(),
                        seeds.size() == 1 ? "" : "s");
  }
  text += fmt::format("{:.0f} runs", count + static_cast<double>(done));
  if (done > 0) text += fmt::format(", {} of them done", done);
  const bool sized = !external && count > 0;
  if (sized) text += fmt::format(", {} {}{}", base::count_text(all), unit, done > 0 ? " left" : "");
  if (sized && shard.count == 1) {
    text += fmt::format(", about {} with {} at a time", duration_text(study::hours_of(plan, runs, jobs)), jobs);
  }
  base::print(text + (!choices.empty() ? "; one less for each seed and arm that chooses no decay\n" : "\n"));
  return 0;
}

}  // namespace cautious::cli
