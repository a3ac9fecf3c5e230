// `cautious study`: every run of a plan, matched by seed, and what they say.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/checks.h"
#include "cli/program.h"
#include "cli/study.h"
#include "cli/verbs.h"
#include "data/sets/catalog.h"
#include "model/config.h"
#include "run/directory.h"
#include "run/run_data.h"
#include "study/claims.h"
#include "study/progress.h"
#include "study/report.h"
#include "study/reproduce.h"
#include "study/runner.h"

namespace cautious::cli {
namespace {

struct StudyArguments {
  std::string plan, out, shard;
  int jobs = default_jobs();
  bool dry_run = false, quiet = false;
};

study::Shard shard_of(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto number = base::parsed<std::size_t>(text.substr(0, slash));
  const auto count = base::parsed<std::size_t>(text.substr(std::min(slash + 1, text.size())));
  constexpr std::size_t kMost = 100000;
  if (number && count && *number >= 1 && *number <= *count && *count <= kMost) return {*number, *count};
  throw Error(Fault::usage, fmt::format("--shard is {}; valid: I/N with I from 1 to N and N at most {}, as in --shard 2/4",
                                        base::in_quotes(text), kMost));
}

int run(const StudyArguments& args) {
  const study::Shard shard = shard_of(args.shard);
  study::Plan plan = study::read_plan(args.plan);
  study::settle_paths(plan, std::filesystem::path(args.plan).parent_path());
  std::vector<study::PlannedRun> runs = study::expand(plan);
  check_study_out(args.out);
  if (args.dry_run) {
    check_data(runs, args.plan);
    return list_runs(plan, std::move(runs), args.jobs, args.out, shard);
  }
  if (args.out.empty()) throw Error(Fault::usage, "--out is missing; give a directory for the study");
  std::string again = fmt::format("cautious study {} --out {}", base::shell_word(args.plan), base::shell_word(args.out));
  if (args.jobs != default_jobs()) again += fmt::format(" --jobs {}", args.jobs);
  if (!args.shard.empty()) again += " --shard " + args.shard;
  return run_and_report(plan, std::move(runs), args.out,
                        {.jobs = args.jobs, .quiet = args.quiet, .again = again, .plan = args.plan, .shard = shard})
      .code;
}

using study::FinishedRun;
using study::RunStatus;

// What an error is to a verb that has more to do: said at once.
void complain(const std::string& message) { base::tell(base::error_line(message)); }

int complain_of_failed(const study::Results& results, const StudyOptions& options) {
  const auto failed = std::ranges::count(results.runs, RunStatus::failed, &FinishedRun::status);
  if (failed == 0) return 0;
  const auto first = std::ranges::find(results.runs, RunStatus::failed, &FinishedRun::status);
  complain(fmt::format("{} of {} runs failed, the first: {}; to try again: {}", failed, results.runs.size(),
                       one_line(ending_of(*first)), options.again));
  return 1;
}

// Whether a shard that has made all it can leaves something to others, which is said.
bool leaves_rest(const study::Results& results, const StudyOptions& options) {
  std::vector<study::PlannedRun> planned;
  for (const FinishedRun& run : results.runs) planned.push_back(run.run);
  const std::vector<bool> own = in_shard(planned, options.shard);
  bool open = false, awaited = false;  // of its own, of others
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const RunStatus status = results.runs[i].status;
    if (status == RunStatus::waiting || status == RunStatus::running) (own[i] ? open : awaited) = true;
  }
  if (!open && !awaited) return false;
  if (options.quiet) return true;
  base::tell(fmt::format("shard {}/{} has made {}; copy the folders runs/ of all shards together, then: {}\n",
                         options.shard.number, options.shard.count,
                         open ? "all of its runs but those that need results of others" : "all of its runs", options.again));
  return true;
}

using Progress = std::function<void(const std::string& what, double fraction)>;

void open_data_of(const run::RunConfig& config, const Progress& progress) {
  if (config.task == run::TaskKind::image) {
    (void)run::open_image_data(config, progress);
  } else if (config.task == run::TaskKind::instruct) {
    (void)run::open_lessons(config);
  } else {
    data::check_length(run::open_data(config, progress).corpus, run::sequence_length(config));
  }
  if (!config.eval.tasks.empty()) (void)run::benchmark_files(config);
}

// The paths of a plan are looked for beside it, then here.
void check_paths(const run::RunConfig::Data& data, const std::filesystem::path& folder) {
  for (const auto& [key, names] : {std::pair("data.path", &data.path), std::pair("data.val_path", &data.val_path)}) {
    for (const std::string& name : *names) {
      std::error_code error;
      if (!data::is_path(name) || std::filesystem::exists(name, error)) continue;
      const bool one_place = folder.empty() || std::filesystem::path(name).is_absolute();
      throw Error(Fault::data,
                  fmt::format("{}: no file or folder {}{}", key, base::in_quotes(name),
                              one_place ? "" : fmt::format(", neither in {} nor here", base::in_quotes(folder.string()))));
    }
  }
}

// Calls `look` with every configuration whose data no run before has. An Error begins with the plan's file, if it has one.
void for_each_data(const std::vector<study::PlannedRun>& runs, const std::filesystem::path& plan,
                   const std::function<void(const run::RunConfig& config)>& look) {
  std::set<std::tuple<std::vector<std::string>, std::vector<double>, std::vector<std::string>, double, std::int64_t,
                      std::int64_t, std::string, std::string, std::string, std::int64_t, std::int64_t>>
      seen;
  for (const study::PlannedRun& run : runs) {
    run::RunConfig config = run.config;
    const run::RunConfig::Data& data = config.data;
    if (data.path.empty()) continue;  // refused by run_study, which names the arm
    const bool image = config.task == run::TaskKind::image;
    const std::int64_t holds = image ? model::classes(config.model.image) : config.model.shape.vocab;
    if (!seen.insert({data.path, data.weights, data.val_path, data.val_fraction, data.train_tokens, data.train_images,
                      data.field, data.tokenizer, data.cache, holds, image ? 0 : run::sequence_length(config)})
             .second)
      continue;
    config.train.threads = default_jobs();
    if (plan.empty()) {
      look(config);
    } else {
      base::with_context(plan.string(), [&] {
        check_paths(config.data, plan.parent_path());
        look(config);
      });
    }
  }
}

// All data of the plan is looked at, and text tokenized, before the first run: what is wrong with it is said once, and runs
// side by side find it ready.
void prepare_data(const std::vector<study::PlannedRun>& runs, const StudyOptions& options, const Interruptible& interruptible) {
  base::LiveLine line(options.quiet ? base::LiveLine::Style::quiet : base::LiveLine::Style::automatic);
  for_each_data(runs, options.plan, [&](const run::RunConfig& config) {
    open_data_of(config, [&](const std::string& what, double fraction) {
      interruptible.check();
      line.show_fraction(fraction, what);
    });
  });
}

// A study while it runs: on a terminal a table that is redrawn in place, elsewhere a line when a run ends and now and then one
// about all of them.
class StudyTable {
 public:
  StudyTable(bool quiet, int jobs) : quiet_(quiet), jobs_(jobs) {}

  // `saving`: the runs have been told to save and end.
  void show(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, bool saving);

 private:
  using Clock = std::chrono::steady_clock;
  double left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress);
  void print(const std::vector<FinishedRun>& runs, const std::string& last);

  bool quiet_;
  int jobs_;
  base::LiveTable table_;
  Clock::time_point start_ = Clock::now(), counted_ = start_, printed_ = start_;
  double busy_ = 0;                  // seconds of all processes so far
  std::vector<double> first_;        // progress when this began
  std::vector<RunStatus> statuses_;  // as last seen
  bool idle_ = false;                // others are at work, but not this process
};

void StudyTable::show(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, bool saving) {
  if (quiet_) return;
  const double seconds = left(runs, progress);
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string last =
      fmt::format("{}  {} < {}", study::overall(runs, progress), base::clock_text(passed), base::clock_text(seconds));
  if (saving) last = "interrupted; saving the runs";
  const std::string others = study::elsewhere(runs);
  if (table_.is_terminal()) {
    const base::TerminalSize size = table_.size();
    std::vector<std::string> lines =
        study::progress_rows(runs, progress, size.width, std::max<std::size_t>(size.height, 5) - (others.empty() ? 2 : 3));
    if (!others.empty()) lines.push_back(others);
    lines.push_back(std::move(last));
    table_.draw(lines);
  } else {
    const auto ours = [](const FinishedRun& run) { return run.status == RunStatus::running && run.worker.empty(); };
    const bool was_idle = std::exchange(idle_, !others.empty() && std::ranges::none_of(runs, ours));
    print(runs, others.empty() ? last : fmt::format("{} | {}", last, others));
    if (idle_ && !was_idle) table_.say("waiting: " + others);
  }
}

// Also counts what the processes have done since the last call.
double StudyTable::left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  if (first_.empty()) first_ = progress;
  const Clock::time_point now = Clock::now();
  const auto running = std::ranges::count(runs, RunStatus::running, &FinishedRun::status);
  busy_ += static_cast<double>(running) * std::chrono::duration<double>(now - counted_).count();
  counted_ = now;
  double steps = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    steps += (progress[i] - first_[i]) * static_cast<double>(steps_of(runs[i].run.config));
  }
  const int jobs = std::max(jobs_, static_cast<int>(running));  // others may help
  return study::seconds_left(runs, progress, jobs, steps > 0 ? busy_ / steps : std::numeric_limits<double>::quiet_NaN());
}

void StudyTable::print(const std::vector<FinishedRun>& runs, const std::string& last) {
  constexpr std::chrono::seconds kSeldom{30};
  for (std::size_t i = 0; i < statuses_.size(); ++i) {
    const bool ended = runs[i].status != RunStatus::waiting && runs[i].status != RunStatus::running;
    const bool own = runs[i].run.share > 0 && runs[i].status != RunStatus::left_out;
    if (ended && own && statuses_[i] != runs[i].status) table_.say(one_line(ending_of(runs[i])));
  }
  statuses_.clear();
  for (const FinishedRun& run : runs) statuses_.push_back(run.status);
  const Clock::time_point now = Clock::now();
  if (now - printed_ < kSeldom) return;
  printed_ = now;
  table_.say(last);
}

// A study that another process is changing, or writing the report of, is waited for.
study::WhileWaiting::Call waiting_call(const StudyOptions& options, const Interruptible& interruptible) {
  return [&, told = std::string()](const std::string& who, std::chrono::milliseconds waited) mutable {
    constexpr std::chrono::seconds kLong{1};
    if (interruptible.noted() != 0) throw Interrupted{.signal = interruptible.noted(), .left = "to continue: " + options.again};
    if (options.quiet || waited < kLong || who == told) return;
    base::tell(fmt::format("waiting for {}\n", who));
    told = who;
  };
}

}  // namespace

void check_study_out(const std::filesystem::path& out) {
  check_out(out.string());
  std::error_code error;
  const auto has = [&](const char* file) { return std::filesystem::exists(out / file, error); };
  if (has("config.toml") && !has("plan.toml")) {
    throw Error(Fault::usage,
                fmt::format("--out: {} is a run, not a study; choose another directory", base::in_quotes(out.string())));
  }
}

void check_data(const std::vector<study::PlannedRun>& runs, const std::filesystem::path& plan) {
  for_each_data(runs, plan, [](const run::RunConfig& config) { (void)look_at_data(config, open_data_of); });
}

int default_jobs() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

StudyReport run_and_report(const study::Plan& plan, std::vector<study::PlannedRun> runs, const std::filesystem::path& out,
                           const StudyOptions& options) {
  const Interruptible interruptible;
  prepare_data(runs, options, interruptible);
  if (!options.quiet) base::tell(options.opening);
  StudyTable table(options.quiet, options.jobs);
  const bool ours = runs.front().config.task != run::TaskKind::external;
  const study::WhileWaiting while_waiting(waiting_call(options, interruptible));
  study::StudyEnd end = study::run_study(
      plan, std::move(runs), out,
      {.program = ours ? sibling_program("cautious-train") : "",
       .command = options.command,
       .jobs = options.jobs,
       .stop = [&] { return interruptible.noted() != 0; },
       .watch = [&](const std::vector<FinishedRun>& now,
                    const std::vector<double>& progress) { table.show(now, progress, interruptible.noted() != 0); },
       .shard = options.shard});
  if (!end.finished) {
    complain("interrupted; to continue: " + options.again);
    return {128 + interruptible.noted(), std::move(end.results)};
  }
  if (options.shard.count > 1 && leaves_rest(end.results, options)) {
    const int code = complain_of_failed(end.results, options);
    return {code, std::move(end.results)};
  }
  const study::Conclusion conclusion = study::conclude(end.results);
  if (!options.quiet) base::print(conclusion.text);
  const int code = complain_of_failed(end.results, options);
  return {code, std::move(end.results)};
}

void add_study(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<StudyArguments>();
  CLI::App& verb = *app.add_subcommand("study", "Run a plan of matched training runs and report what they show.");
  verb.footer(
      "  cautious study plan.toml --dry-run\n"
      "  cautious study plan.toml --out studies/cwd\n"
      "  srun --ntasks 16 cautious study plan.toml --out /shared/cwd\n"
      "  cautious study plan.toml --out mine --shard 2/4\n"
      "\n"
      "The same command continues an interrupted study. Finished runs are never repeated, so seeds, arms and grid points\n"
      "can be added to the plan later; the verdict then says after which looks. Started several times at once, also on "
      "several\n"
      "machines that share the directory, it shares the runs out among the processes.");
  verb.add_option("PLAN", args->plan, "The plan, a TOML file")->required()->type_name("");
  verb.add_option("--out", args->out, "Directory of the study, new or to be continued")->type_name("DIR");
  verb.add_option("--jobs", args->jobs, "Runs at a time, each with one thread (default: one per core)")->type_name("N");
  verb.add_option("--shard", args->shard,
                  "Make only the runs of shard I of N, without regard to others; for machines that share no directory")
      ->type_name("I/N");
  verb.add_flag(
      "--dry-run", args->dry_run,
      "Print the runs with their steps, parameters and tokens or images, those in --out that are done, and the time;\n"
      "nothing is written");
  verb.add_flag("--quiet", args->quiet, "Print errors only");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
