// `cautious bench scale`: runs of `cautious train` with one and with several ranks on this machine, interleaved, and what their
// own records say: weak and strong scaling, how much of the communication is hidden, bytes against the least possible, memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/aside_folder.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "bench/rounds.h"
#include "cli/local_ranks.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "model/config.h"
#include "run/metrics.h"
#include "run/scale.h"

namespace cautious::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ScaleArguments {
  bool json = false;
  std::string preset = "nano-10m";
  std::vector<int> ranks{2};
  int threads = 1, rounds = 3;
  std::int64_t batch = 4;
};

constexpr int kWarmup = 2, kSteps = 8;

// Of one run: medians and means over its steps.
struct Measured {
  double step = 0;                      // seconds
  double communicated = 0, waited = 0;  // seconds per step
  double sent = 0;                      // bytes per step, of the first rank
  double optimizer = 0, peak = 0;       // bytes, of the first rank
};

// Letters without meaning: the speed does not depend on them.
void write_text(const std::filesystem::path& file) {
  constexpr std::uint64_t kBytes = 1 << 20;
  std::string text(kBytes, ' ');
  for (std::uint64_t i = 0; i < kBytes; ++i) text[i] = static_cast<char>('a' + base::mix64(i) % 26);
  std::ofstream(file) << text;
}

class Runs {
 public:
  Runs(const ScaleArguments& args, const Interruptible& interruptible) : args_(args), interruptible_(interruptible) {
    write_text(scratch_.path() / "text");
  }

  Measured run(int ranks, std::int64_t batch) {
    const std::filesystem::path out = scratch_.path() / "run", log = scratch_.path() / "log";
    std::filesystem::remove_all(out);
    const std::vector<std::string> command{sibling_program("cautious-train").string(),
                                           "train",
                                           "--preset",
                                           args_.preset,
                                           fmt::format("--data.path={}", (scratch_.path() / "text").string()),
                                           fmt::format("--data.cache={}", (scratch_.path() / "cache").string()),
                                           fmt::format("--train.steps={}", kSteps),
                                           fmt::format("--train.batch_size={}", batch),
                                           fmt::format("--train.threads={}", args_.threads),
                                           "--eval.every=0",
                                           "--eval.tokens=1",
                                           "--log.every=1",
                                           "--log.tensorboard=false",
                                           "--checkpoint.every=0",
                                           "--quiet",
                                           "--out",
                                           out.string()};
    std::vector<base::Process> processes;
    const int port = free_port();
    for (int rank = 0; rank < ranks; ++rank) {
      processes.emplace_back(command, environment_of_rank(rank, ranks, port), fmt::format("{}{}", log.string(), rank));
    }
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      std::optional<int> status;
      while (!(status = processes[rank].ended())) {
        interruptible_.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (*status != 0) throw Error(Fault::failure, base::last_message_in(fmt::format("{}{}", log.string(), rank)));
    }
    return measured(out);
  }

 private:
  static Measured measured(const std::filesystem::path& out) {
    std::vector<double> seconds;
    double before = 0;
    for (const run::MetricsRow& row : run::read_metrics(out / "metrics.jsonl")) {
      std::map<std::string, double> values(row.values.begin(), row.values.end());
      if (row.step > kWarmup) seconds.push_back((values["tokens"] - before) / values["tokens_per_s"]);
      before = values["tokens"];
    }
    const Json summary = Json::parse(std::ifstream(out / "summary.json"));
    const Json traffic = summary.value("traffic", Json::object());
    return {bench::median(seconds),
            traffic.value("seconds_per_step", 0.0),
            traffic.value("waited_seconds_per_step", 0.0),
            traffic.value("sent_bytes_per_step", 0.0),
            summary.at("optimizer_bytes").get<double>(),
            summary.at("peak_rss_bytes").get<double>()};
  }

  const ScaleArguments& args_;
  const Interruptible& interruptible_;
  base::AsideFolder scratch_{std::filesystem::temp_directory_path() / "cautious-bench"};
};

struct ScaleRow {
  int ranks;
  double step, weak, strong;             // seconds of one process; efficiency; speedup
  double predicted;                      // weak, by the model of run/scale.h
  double communication, hidden;          // fraction of the weak step; of that
  double sent, bound;                    // bytes per step
  double optimizer, optimizer_fraction;  // bytes in a rank; of one process
  double peak;
};

Json json_of(const ScaleArguments& args, const ScaleRow& row) {
  return {{"preset", args.preset},
          {"threads", args.threads},
          {"batch_per_rank", args.batch},
          {"ranks", row.ranks},
          {"step_seconds_of_one", row.step},
          {"weak_efficiency", row.weak},
          {"predicted_weak_efficiency", row.predicted},
          {"strong_speedup", row.strong},
          {"communication", row.communication},
          {"hidden", row.hidden},
          {"sent_bytes_per_step", row.sent},
          {"bound_bytes_per_step", row.bound},
          {"optimizer_bytes_per_rank", row.optimizer},
          {"optimizer_fraction", row.optimizer_fraction},
          {"peak_rss_bytes_per_rank", row.peak}};
}

std::string line_of(const ScaleRow& row) {
  constexpr double kMiB = 1024.0 * 1024;
  return fmt::format(
      "{:>5} {:>9.3f} {:>7.1f}% {:>8.1f}% {:>7.2f}x {:>8.1f}% {:>7.0f}% {:>9.1f} {:>9.1f} {:>9.1f} {:>7.1f}% {:>9.0f}",
      row.ranks, row.step, 100 * row.weak, 100 * row.predicted, row.strong, 100 * row.communication, 100 * row.hidden,
      row.sent / kMiB, row.bound / kMiB, row.optimizer / kMiB, 100 * row.optimizer_fraction, row.peak / kMiB);
}

// From the step of one process, and the bandwidth that the ranks had.
double predicted(const Measured& one, const Measured& weak, int ranks, double parameters) {
  const double half = 4 * parameters * (ranks - 1.0) / ranks / (weak.sent / weak.communicated);  // gradients, parameters
  return one.step / (one.step + run::exposed_seconds(one.step, half, half));
}

void check_scale(const ScaleArguments& args) {
  model::preset(args.preset);
  base::check_range("--threads", args.threads, {1, 1024, false, false});
  base::check_range("--rounds", args.rounds, {1, 1000, false, false});
  base::check_range("--batch", static_cast<double>(args.batch), {1, 1e6, false, false});
  for (const int ranks : args.ranks) {
    base::check_range("--ranks", ranks, {2, 1024, false, false});
    if (args.batch % ranks == 0) continue;
    throw Error(Fault::usage,
                fmt::format("--batch is {}, which {} ranks cannot divide among them for strong scaling", args.batch, ranks));
  }
}

int bench_scale(const ScaleArguments& args) {
  check_scale(args);
  const Interruptible interruptible;
  Runs runs(args, interruptible);
  const double parameters = static_cast<double>(size_of(model::preset(args.preset), 1, 1, false).parameters);
  base::tell(fmt::format("{}\n{}, {} sequences per rank, {} thread{} each; one process of as many threads is 1\n",
                         machine_line(), args.preset, args.batch, args.threads, args.threads == 1 ? "" : "s"));
  const BenchRows rows(args.json, fmt::format("{:>5} {:>9} {:>8} {:>9} {:>8} {:>9} {:>8} {:>9} {:>9} {:>9} {:>8} {:>9}",
                                              "ranks", "1: s/step", "weak", "on paper", "strong", "commun.", "hidden",
                                              "sent MiB", "least MiB", "state MiB", "of 1", "RSS MiB"));
  struct Rounds {
    std::vector<double> weak, predicted, strong, communication, hidden;
    Measured last;
  };
  std::map<int, Rounds> of;
  std::vector<double> steps;
  double optimizer = 0;
  for (int round = 0; round < args.rounds; ++round) {
    rows.measuring(fmt::format("round {} of {}", round + 1, args.rounds));
    const Measured one = runs.run(1, args.batch);
    steps.push_back(one.step);
    optimizer = one.optimizer;
    for (const int ranks : args.ranks) {
      const Measured weak = runs.run(ranks, args.batch * ranks), strong = runs.run(ranks, args.batch);
      Rounds& seen = of[ranks];
      seen.weak.push_back(one.step / weak.step);
      seen.predicted.push_back(predicted(one, weak, ranks, parameters));
      seen.strong.push_back(one.step / strong.step);
      seen.communication.push_back(weak.communicated / weak.step);
      seen.hidden.push_back(std::max(0.0, 1 - weak.waited / weak.communicated));
      seen.last = weak;
    }
  }
  for (const auto& [ranks, seen] : of) {
    const double bound = 2 * (ranks - 1.0) / ranks * 4 * parameters;
    const ScaleRow row{ranks,
                       bench::median(steps),
                       bench::median(seen.weak),
                       bench::median(seen.strong),
                       bench::median(seen.predicted),
                       bench::median(seen.communication),
                       bench::median(seen.hidden),
                       seen.last.sent,
                       bound,
                       seen.last.optimizer,
                       seen.last.optimizer / optimizer,
                       seen.last.peak};
    rows.print(json_of(args, row).dump(), line_of(row));
  }
  return 0;
}

}  // namespace

void add_bench_scale(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<ScaleArguments>();
  CLI::App& verb = *bench.add_subcommand("scale", "Measure training with several processes on this machine next to one.");
  verb.footer(
      "  cautious bench scale\n"
      "  cautious bench scale --preset nano-1m --ranks 2,4 --json\n"
      "\n"
      "weak: time of one process over that of n ranks with n times the batch; on paper: the same by the model of\n"
      "'train --dry-run --world', with the bandwidth that was measured. strong: the same batch, divided. commun.: time in\n"
      "which bytes were on their way, as part of a weak step; hidden: the part of it in which the first rank had work.\n"
      "least: 2 (n - 1) / n x 4 bytes x parameters, which a rank must send for gradients and parameters.");
  verb.add_flag("--json", args->json, "One JSON object per line on standard output");
  verb.add_option("--preset", args->preset, "Model, a preset of cautious train")->type_name("NAME")->capture_default_str();
  verb.add_option("--ranks", args->ranks, "Numbers of processes (default: 2)")
      ->delimiter(',')
      ->type_name("NUMBERS")
      ->expected(1, 16);
  verb.add_option("--threads", args->threads, "Threads of each process")->type_name("NUMBER")->capture_default_str();
  verb.add_option("--batch", args->batch, "Sequences per process and step")->type_name("NUMBER")->capture_default_str();
  verb.add_option("--rounds", args->rounds, "Interleaved rounds, the median of which is reported")
      ->type_name("NUMBER")
      ->capture_default_str();
  verb.callback([args, &chosen] { chosen = [args] { return bench_scale(*args); }; });
}

}  // namespace cautious::cli
