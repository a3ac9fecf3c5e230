// `cautious reproduce`: the paper's experiments by name, at a scale that the machine can manage.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/study.h"
#include "cli/verbs.h"
#include "run/directory.h"
#include "study/reproduce.h"

namespace cautious::cli {
namespace {

using study::Cost;
using study::Experiment;
using study::Scale;

constexpr const char* kReproduceExamples =
    "  cautious reproduce --list\n"
    "  cautious reproduce table-ablation\n"
    "  cautious reproduce fig-lambda --scale day --out night\n"
    "  cautious reproduce table-scales --scale full";

struct ReproduceArguments {
  std::string name, scale = "quick", data, out;
  int jobs = default_jobs();
  bool list = false, dry_run = false, force = false, quiet = false;

  std::filesystem::path folder() const { return out.empty() ? "reproduced/" + scale : out; }
  std::string command() const {
    std::string text = fmt::format("cautious reproduce {} --scale {} --out {}", name, scale, base::shell_word(folder()));
    if (!data.empty()) text += " --data " + base::shell_word(data);
    if (jobs != default_jobs()) text += fmt::format(" --jobs {}", jobs);
    return force ? text + " --force" : text;
  }
};

// What a plan takes; unknown, and why, where the model that it starts from is not here.
struct Priced {
  Cost cost = {};
  std::string unknown = {};
};

Priced price_of(const Experiment& experiment) try { return {.cost = cost_of(experiment)}; } catch (const Error& error) {
  return {.unknown = error.what()};
}

// For several plans, the text before the colon, which they have in common.
std::string title_of(const std::vector<Experiment>& all) {
  const std::string& title = all.front().plan.title;
  return all.size() == 1 ? title : title.substr(0, title.find(':'));
}

int list(const ReproduceArguments& args, Scale scale) {
  constexpr const char* kRow = "{:<16} {:>5} {:>5} {:>13}  {}\n";
  const bool full = scale == Scale::full;
  std::string text = fmt::format(fmt::runtime(kRow), "name", "plans", "runs", full ? "GPU" : "time", "what");
  std::string open;  // what must be fetched before more can be said
  for (const std::string& name : study::reproducible()) {
    const std::vector<Experiment> all = study::experiments(name, scale);
    std::size_t runs = 0;
    double hours = 0;
    std::string time;
    for (const Experiment& experiment : all) {
      const Priced priced = price_of(experiment);
      runs += priced.cost.runs;
      hours += full ? priced.cost.gpu_hours : priced.cost.core_hours / args.jobs;
      if (priced.unknown.empty()) continue;
      time = "unknown";
      open += fmt::format("{}: {}\n", name, priced.unknown);
    }
    if (time.empty()) time = full ? fmt::format("{:.0f} h", hours) : "about " + duration_text(hours);
    text += fmt::format(fmt::runtime(kRow), name, all.size(), runs, time, title_of(all));
  }
  text += open;
  text += full ? "estimated at scale full for one GPU of 989 TFLOP/s in bf16 at 40% utilization\n"
               : fmt::format("estimated at scale {} for {} runs at a time\n", args.scale, args.jobs);
  base::print(text);
  return 0;
}

std::string described(const Experiment& experiment) {
  const auto [cost, unknown] = price_of(experiment);
  if (!unknown.empty()) return fmt::format("# {}: {}\n{}\n", experiment.name, unknown, to_toml(experiment.plan));
  return fmt::format(
      "# {}: {} runs, {:.0f} GPU hours (989 TFLOP/s in bf16 at 40% utilization), at least {:.1f} GiB each in f32\n{}\n",
      experiment.name, cost.runs, cost.gpu_hours, cost.memory / (1 << 30), to_toml(experiment.plan));
}

int describe(const std::vector<Experiment>& all) {
  std::string text;
  for (const Experiment& experiment : all) text += described(experiment);
  base::print(text);
  const std::string line = "nothing was run, because this is the paper's scale; --force runs it on this machine";
  base::tell(base::error_line(line));
  return 0;
}

// A later stage's plan follows from the results of the one before, so that an interrupted search continues where it was.
int run_stages(const Experiment& experiment, study::Plan plan, std::vector<study::PlannedRun> runs,
               const std::filesystem::path& out, StudyOptions options) {
  for (int stage = 1;; ++stage) {
    options.opening +=
        fmt::format("{}: stage {} of {}, {} points\n", experiment.name, stage, experiment.stages, plan.arms.size());
    const StudyReport done = run_and_report(plan, std::move(runs), out / fmt::format("stage-{}", stage), options);
    if (done.code != 0 || stage == experiment.stages) return done.code;
    options.opening.clear();
    plan = study::next_stage(done.results);
    runs = study::expand(plan);
  }
}

study::Plan first_plan(const Experiment& experiment) {
  return experiment.stages > 1 ? study::without_grid(experiment.plan) : experiment.plan;
}

// `data`: whether they are looked at, which are not needed at the scale that is only printed.
int list_runs_of(const std::vector<Experiment>& all, const ReproduceArguments& args, bool data) {
  std::vector<std::vector<study::PlannedRun>> runs;
  for (const Experiment& experiment : all) {
    runs.push_back(study::expand(first_plan(experiment)));
    if (data) check_data(runs.back());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Experiment& experiment = all[i];
    const std::filesystem::path out = args.folder() / experiment.name;
    const study::Plan plan = first_plan(experiment);
    base::print(fmt::format("{}: {}\n", experiment.name, plan.title));
    list_runs(plan, std::move(runs[i]), args.jobs, experiment.stages > 1 ? out / "stage-1" : out);
    if (experiment.stages > 1) {
      base::print(fmt::format("stage 1 of {}; the points of the others follow from its results\n", experiment.stages));
    }
  }
  return 0;
}

int run_one(const Experiment& experiment, const ReproduceArguments& args) {
  const std::filesystem::path out = args.folder() / experiment.name;
  const study::Plan plan = first_plan(experiment);
  std::vector<study::PlannedRun> runs = study::expand(plan);
  const Cost cost = cost_of(experiment, runs);
  const StudyOptions options{.jobs = args.jobs,
                             .quiet = args.quiet,
                             .again = args.command(),
                             .opening = fmt::format("{}: {} runs, about {}, into {}\n", experiment.name, cost.runs,
                                                    duration_text(cost.core_hours / args.jobs), out.string())};
  if (experiment.stages > 1) return run_stages(experiment, plan, std::move(runs), out, options);
  return run_and_report(plan, std::move(runs), out, options).code;
}

int run_all(const std::vector<Experiment>& all, const ReproduceArguments& args) {
  for (const Experiment& experiment : all) {
    if (const int code = run_one(experiment, args); code != 0) return code;
  }
  return 0;
}

void check_outs(const std::vector<Experiment>& all, const std::filesystem::path& folder) {
  check_study_out(folder);
  for (const Experiment& experiment : all) check_study_out(folder / experiment.name);
}

int run(const ReproduceArguments& args) {
  const Scale scale = base::named<Scale>("scale", args.scale);
  base::check_range("jobs", args.jobs, {1, 1024, false, false});
  if (args.list) return list(args, scale);
  if (args.name.empty()) {
    throw Error(Fault::usage, fmt::format("which experiment? choices: {}; 'cautious reproduce --list' describes them",
                                          base::join(study::reproducible())));
  }
  std::vector<Experiment> all = study::experiments(args.name, scale);
  for (Experiment& experiment : all) {
    if (!args.data.empty()) study::train_on(experiment.plan, args.data);
  }
  const bool printed = scale == Scale::full && !args.force;
  if (!printed) check_outs(all, args.folder());
  if (args.dry_run) return list_runs_of(all, args, !printed);
  return printed ? describe(all) : run_all(all, args);
}

}  // namespace

void add_reproduce(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<ReproduceArguments>();
  CLI::App& verb = *app.add_subcommand("reproduce", "Reproduce the paper's figures and tables at the scale of this machine.");
  verb.footer(kReproduceExamples);
  verb.add_option("NAME", args->name, "A figure or table, as printed by 'cautious reproduce --list', or one of its plans")
      ->type_name("");
  verb.add_flag("--list", args->list, "List names, numbers of runs and estimated times");
  verb.add_option(
          "--scale", args->scale,
          "Minutes, overnight, or the paper's own, which is printed but not run; valid: quick, day, full (default: quick)")
      ->type_name("SCALE");
  verb.add_option("--data", args->data, "Train on this text instead of the plan's: a file, a folder or a known set")
      ->type_name("PATH");
  verb.add_option("--out", args->out, "Parent directory of the studies (default: reproduced/SCALE)")->type_name("DIR");
  verb.add_option("--jobs", args->jobs, "Runs at a time, each with one thread (default: one per core)")->type_name("N");
  verb.add_flag("--dry-run", args->dry_run, "List the runs with their sizes and the time they take; nothing is run");
  verb.add_flag("--force", args->force, "Run even at scale full");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
