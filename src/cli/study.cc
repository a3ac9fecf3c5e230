// `cautious study`: every run of a plan, matched by seed, and what they say.
#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "cli/study_run.h"
#include "cli/verbs.h"
#include "model/config.h"
#include "run/directory.h"
#include "study/plan.h"

namespace cautious::cli {
namespace {

struct Arguments {
  std::string plan, out;
  int jobs = default_jobs();
  bool dry_run = false, quiet = false;
};

int list(const study::Plan& plan) {
  const std::vector<study::PlannedRun> runs = expand(plan);
  std::size_t width = 3;
  for (const study::PlannedRun& run : runs) width = std::max(width, run.folder.size());
  double all = 0;
  std::string text = fmt::format("{:<{}} {:>9} {:>11} {:>9}\n", "run", width, "steps", "parameters", "tokens");
  for (const study::PlannedRun& run : runs) {
    const std::int64_t steps = steps_of(run.config);
    const double tokens = static_cast<double>(steps) * static_cast<double>(run.config.train.batch_size) *
                          static_cast<double>(run::sequence_length(run.config));
    text += fmt::format("{:<{}} {:>9} {:>11} {:>9}\n", run.folder, width, steps,
                        size_of(run.config.model.shape, 1, 1, false).parameters, base::count_text(tokens));
    all += tokens;
  }
  text += fmt::format("{} runs, {} tokens\n", runs.size(), base::count_text(all));
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error(Fault::failure, "cannot write to standard output");
  }
  return 0;
}

int run(const Arguments& args) {
  const study::Plan plan = study::read_plan(args.plan);
  if (args.dry_run) return list(plan);
  if (args.out.empty()) throw Error(Fault::usage, "--out is not given: the directory of the study");
  return run_and_report(
      plan, args.out,
      {.jobs = args.jobs,
       .quiet = args.quiet,
       .again = fmt::format("cautious study {} --out {}", run::shell_word(args.plan), run::shell_word(args.out))});
}

}  // namespace

void add_study(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<Arguments>();
  CLI::App& verb = *app.add_subcommand("study", "Run a plan of matched training runs, side by side.");
  verb.footer(
      "  cautious study plan.toml --dry-run\n"
      "  cautious study plan.toml --out studies/cwd\n"
      "\n"
      "The same command goes on with a study that was interrupted. Runs that are done are never repeated, so seeds, arms and\n"
      "points of the grid can be added to the plan later.");
  verb.add_option("PLAN", args->plan, "The plan, TOML")->required()->type_name("");
  verb.add_option("--out", args->out, "Directory of the study; made here, or continued")->type_name("DIR");
  verb.add_option("--jobs", args->jobs, "Runs at once, each with one thread (default: the cores)")->type_name("N");
  verb.add_flag("--dry-run", args->dry_run, "Print the runs with their steps, parameters and tokens; nothing is written");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
