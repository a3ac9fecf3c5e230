// `cautious compare`: cautious against plain weight decay for one optimizer, with the controls that tell the mask from the
// amount.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/study.h"
#include "cli/verbs.h"
#include "run/directory.h"
#include "study/compare.h"
#include "study/reproduce.h"

namespace cautious::cli {
namespace {

constexpr const char* kCompareExamples =
    "  cautious compare --optimizer adamw\n"
    "  cautious compare --optimizer muon --data corpus.txt --preset nano-100k --seeds 5 --steps 1000 --out muon\n"
    "  cautious compare --optimizer lion --lambdas 0.5,2,5 --lr 5e-4,1e-3\n"
    "  cautious compare --data.train_tokens=40000 --lambdas 1,3,8 --steps 800\n"
    "  cautious compare --command 'python3 train.py' --lr 1e-3 --lambdas 0.05,0.2,1 --seeds 5 --out mine\n"
    "\n"
    "Every key of a run is an option too: --section.key=value (see cautious train --print-config).\n"
    "A command of your own is started once for each run. It reads its optimizer and seed from CAUTIOUS_RECIPE, CAUTIOUS_LR,\n"
    "CAUTIOUS_DECAY, CAUTIOUS_WEIGHT_DECAY and CAUTIOUS_SEED, and prints its loss, the lower the better, as its last line or\n"
    "writes {\"loss\": NUMBER} to $CAUTIOUS_OUT/result.json. --objective.name, .unit and .target say what the number is.";

struct CompareArguments {
  study::Comparison comparison;
  std::vector<std::string> lambdas, lrs;
  std::string program, seeds, tune_seeds, steps, out;  // program: a command of the user's that makes the runs
  int jobs = 1;
  bool jobs_given = false;
  bool dry_run = false, print_plan = false, quiet = false;

  std::string command(const std::string& directory) const {
    std::string text = fmt::format("cautious compare --optimizer {}", comparison.optimizer);
    text += program.empty() ? fmt::format(" --data {} --preset {}", base::shell_word(comparison.data), comparison.preset)
                            : " --command " + base::shell_word(program);
    if (!lambdas.empty()) text += fmt::format(" --lambdas {}", fmt::join(lambdas, ","));
    if (!lrs.empty()) text += fmt::format(" --lr {}", fmt::join(lrs, ","));
    if (!seeds.empty()) text += " --seeds " + seeds;
    if (!tune_seeds.empty()) text += " --tune-seeds " + tune_seeds;
    if (!steps.empty()) text += " --steps " + steps;
    if (jobs_given) text += fmt::format(" --jobs {}", jobs);
    for (const auto& [key, value] : comparison.settings) text += fmt::format(" --{}={}", key, base::shell_word(value));
    return text + " --out " + base::shell_word(directory);
  }
};

study::Comparison comparison_of(const CompareArguments& args) {
  study::Comparison comparison = args.comparison;
  for (const std::string& text : args.lambdas) comparison.lambdas.push_back(base::to_number("lambdas", text, kPositive));
  for (const std::string& text : args.lrs) comparison.lrs.push_back(base::to_number("lr", text, kPositive));
  const auto count = [](std::string_view what, const std::string& text, std::size_t& to) {
    if (!text.empty()) to = static_cast<std::size_t>(base::to_integer(what, text, {1, 10000, false, false}));
  };
  count("seeds", args.seeds, comparison.seeds);
  count("tune-seeds", args.tune_seeds, comparison.tune_seeds);
  if (!args.steps.empty()) comparison.steps = base::to_integer("steps", args.steps, {1, 1e15, false, false});
  return comparison;
}

// What a command decides itself.
void check_command(const CompareArguments& args, const CLI::App& verb) {
  if (args.program.empty()) throw Error(Fault::usage, "--command is empty; give the line that starts a run, as in a shell");
  for (const char* const option : {"--data", "--preset", "--steps"}) {
    if (verb.count(option) == 0) continue;
    throw Error(Fault::usage, fmt::format("{} is for runs of cautious train, but --command makes these; remove one", option));
  }
}

int run(CompareArguments& args, const CLI::App& verb) {
  args.comparison.settings = settings_in(verb);
  args.jobs_given = verb.count("--jobs") > 0;
  const bool external = verb.count("--command") > 0;
  if (external) check_command(args, verb);
  study::Plan plan = external ? study::external_plan(comparison_of(args)) : study::compare_plan(comparison_of(args));
  study::settle_paths(plan, "");
  std::vector<study::PlannedRun> runs = study::expand(plan);
  const int jobs = args.jobs_given ? args.jobs : external ? 1 : default_jobs();
  if (args.print_plan && args.dry_run) throw Error(Fault::usage, "--print-plan and --dry-run are two answers; remove one");
  if (args.print_plan) {
    base::print(to_toml(plan));
    return 0;
  }
  const std::string out = args.out.empty() ? "compare-" + args.comparison.optimizer : args.out;
  check_study_out(out);
  if (args.dry_run) {
    check_data(runs);
    return list_runs(plan, std::move(runs), jobs, out);
  }
  StudyOptions options{.jobs = jobs, .quiet = args.quiet, .again = args.command(out), .command = args.program};
  if (!external) {
    double count = 0;
    for (const study::PlannedRun& run : runs) count += run.share;
    const std::string time = duration_text(study::hours_of(plan, runs, jobs));
    options.opening = fmt::format("{:.0f} runs, about {}, into {}\n", count, time, out);
  }
  return run_and_report(plan, std::move(runs), out, options).code;
}

}  // namespace

void add_compare(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<CompareArguments>();
  CLI::App& verb = *app.add_subcommand("compare", "Compare cautious with plain weight decay on your data, with controls.");
  verb.footer(kCompareExamples);
  study::Comparison& comparison = args->comparison;
  verb.add_option("--optimizer", comparison.optimizer,
                  fmt::format("Its rule; valid: {} (default: adamw)", base::join(recipe_names())))
      ->type_name("NAME");
  verb.add_option("--data", comparison.data, "Text to train on: a file, a folder or a known set (default: gcide)")
      ->type_name("PATH");
  verb.add_option("--preset", comparison.preset, "The model, a preset of cautious train (default: nano-300k)")
      ->type_name("NAME");
  verb.add_option("--command", args->program, "A training program of your own that makes the runs, instead of a model of ours")
      ->type_name("LINE");
  verb.add_option("--seeds", args->seeds, "Number of matched seeds that the arms are judged on (default: 8)")->type_name("N");
  verb.add_option("--tune-seeds", args->tune_seeds, "Number of further seeds, on which lambda and lr are chosen (default: 2)")
      ->type_name("N");
  verb.add_option(
          "--lambdas", args->lambdas,
          "Weight decays to choose from, besides 0; CWD has 2.5 times as much (default: 0.1,0.3,1,3 for AdamW; for others "
          "the same lr * lambda)")
      ->delimiter(',')
      ->type_name("A,B,...");
  verb.add_option("--lr", args->lrs, "Peak learning rate, or several to choose from (default: one that suits the nano presets)")
      ->delimiter(',')
      ->type_name("A,B,...");
  verb.add_option("--steps", args->steps, "Steps per run (default: 20 tokens per parameter, or 5 epochs of images)")
      ->type_name("N");
  verb.add_option("--out", args->out, "Directory of the study, new or to be continued (default: compare-OPTIMIZER)")
      ->type_name("DIR");
  verb.add_option("--jobs", args->jobs, "Runs at a time (default: one per core, with one thread each; of a --command: 1)")
      ->type_name("N");
  verb.add_flag("--dry-run", args->dry_run,
                "Print the runs with their steps, parameters and tokens or images, and the time; nothing is written");
  verb.add_flag("--print-plan", args->print_plan, "Print the plan, to change it and give it to 'cautious study'");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.allow_extras();
  verb.callback([args, &verb, &chosen] { chosen = [args, &verb] { return run(*args, verb); }; });
}

}  // namespace cautious::cli
