#include "cli/study_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/terminal.h"
#include "cli/forward.h"
#include "cli/interrupt.h"
#include "cli/one_line.h"
#include "cli/study_table.h"
#include "run/run_data.h"
#include "study/progress_rows.h"
#include "study/report.h"
#include "study/runner.h"
#include "study/statistics.h"
#include "study/verdict.h"

namespace cautious::cli {
namespace {

using study::FinishedRun;
using study::RunStatus;

std::vector<double> without_missing(std::vector<double> losses) {
  std::erase_if(losses, [](double loss) { return std::isnan(loss); });
  return losses;
}

std::string losses_table(const study::Results& results) {
  std::size_t width = 3;
  for (const FinishedRun& run : results.runs) width = std::max(width, study::name_of(run.run.arm, run.run.point).size());
  std::string text = fmt::format("{:<{}} {:>4} {:>10} {:>10}\n", "arm", width, "n", "mean", "sd");
  for (const study::Arm& arm : results.plan.arms) {
    for (const study::Overrides& point : points_of(results, arm.name)) {
      const study::Spread spread = study::spread_of(without_missing(losses_of(results, arm.name, point)));
      const std::string mean = spread.n > 0 ? fmt::format("{:.4f}", spread.mean) : "-";
      const std::string sd = spread.n > 1 ? fmt::format("{:.4f}", spread.sd) : "-";
      text += fmt::format("{:<{}} {:>4} {:>10} {:>10}\n", study::name_of(arm.name, point), width, spread.n, mean, sd);
    }
  }
  return text;
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error(Fault::failure, "cannot write to standard output");
  }
}

void report(const study::Results& results, bool quiet) {
  const std::filesystem::path page = study::write_report(results);
  if (quiet) return;
  print(fmt::format("{}\n{}\nreport: {}\n", losses_table(results), study::verdict_of(results).sentence, page.string()));
}

int complain_of_failed(const study::Results& results, const StudyOptions& options) {
  const auto failed = std::ranges::count(results.runs, RunStatus::failed, &FinishedRun::status);
  if (failed == 0) return 0;
  const auto first = std::ranges::find(results.runs, RunStatus::failed, &FinishedRun::status);
  fmt::print(stderr, "cautious: {} of {} runs failed, the first: {}; to try again: {}\n", failed, results.runs.size(),
             one_line(ending_of(*first)), options.again);
  return 1;
}

// Every text of the plan is looked at and tokenized before the first run: what is wrong with it is said once, and runs side by
// side find it ready.
void prepare_data(const study::Plan& plan, bool quiet, const Interruptible& interruptible) {
  base::LiveLine line(quiet ? base::LiveLine::Style::quiet : base::LiveLine::Style::automatic);
  std::set<std::tuple<std::vector<std::string>, std::vector<std::string>, double, std::string, std::string, std::int64_t>> seen;
  for (const study::PlannedRun& run : study::expand(plan)) {
    run::RunConfig config = run.config;
    const run::RunConfig::Data& data = config.data;
    if (data.path.empty()) continue;  // refused by run_study, with the plan's words
    if (!seen.insert({data.path, data.val_path, data.val_fraction, data.tokenizer, data.cache, config.model.shape.vocab})
             .second)
      continue;
    config.train.threads = default_jobs();
    run::open_data(config, [&](const std::string& what, double part) {
      interruptible.check();
      line.show_fraction(part, what);
    });
  }
}

}  // namespace

int default_jobs() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

int run_and_report(const study::Plan& plan, const std::filesystem::path& out, const StudyOptions& options) {
  const Interruptible interruptible;
  prepare_data(plan, options.quiet, interruptible);
  StudyTable table(options.quiet, options.jobs);
  const bool finished = study::run_study(
      plan, out,
      {.program = sibling_program("cautious-train"),
       .jobs = options.jobs,
       .stop = [&] { return interruptible.noted() != 0; },
       .watch = [&](const std::vector<FinishedRun>& runs,
                    const std::vector<double>& progress) { table.show(runs, progress, interruptible.noted() != 0); }});
  if (!finished) {
    fmt::print(stderr, "cautious: interrupted; to continue: {}\n", options.again);
    return 128 + interruptible.noted();
  }
  const study::Results results = study::read_results(out);
  report(results, options.quiet);
  return complain_of_failed(results, options);
}

}  // namespace cautious::cli
