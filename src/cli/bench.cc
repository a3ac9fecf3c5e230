// cautious bench step: the time of one optimizer step beside the limit of the machine, measured in the same run.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "bench/step_grid.h"
#include "cli/verbs.h"

namespace cautious::cli {
namespace {

struct BenchArguments {
  bool json = false;
  std::vector<double> sizes;
  bench::StepGrid grid;
};

std::string machine_line() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown CPU", line;
  while (std::getline(info, line)) {
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  return fmt::format("{}, {} cores, compiler {}", model, std::thread::hardware_concurrency(), __VERSION__);
}

void print_json(const bench::StepRow& row) {
  const nlohmann::ordered_json object{{"optimizer", row.optimizer},
                                      {"decay", row.decay},
                                      {"dtype", row.dtype},
                                      {"n", row.n},
                                      {"tensors", row.tensors},
                                      {"threads", row.threads},
                                      {"ns_per_param", row.ns_per_param},
                                      {"bytes_per_param", row.bytes_per_param},
                                      {"limit_ns_per_param", row.limit_ns_per_param},
                                      {"ratio", row.ratio},
                                      {"scenario", row.scenario},
                                      {"reference", row.reference},
                                      {"relative", row.relative}};
  fmt::print("{}\n", object.dump());
  std::fflush(stdout);
}

void print_row(const bench::StepRow& row) {
  fmt::print("{:<11} {:<6} {:<10} {:<5} {:>10} {:>8} {:>8} {:>9.3f} {:>9.3f} {:>7.2f}   {:.2f} of {}\n", row.scenario,
             row.optimizer, row.decay, row.dtype, row.n, row.tensors, row.threads, row.ns_per_param, row.limit_ns_per_param,
             row.ratio, row.relative, row.reference);
  std::fflush(stdout);
}

int run(const BenchArguments& given) {
  bench::StepGrid grid = given.grid;
  if (!given.sizes.empty()) grid.sizes.clear();
  for (const double size : given.sizes) {
    if (!(size >= 1 && size <= 1e10)) throw Error(Fault::usage, fmt::format("--sizes has {}; valid: 1 to 1e10", size));
    grid.sizes.push_back(static_cast<std::size_t>(size));
  }
  fmt::print(stderr, "{}\n", machine_line());
  if (!given.json) {
    fmt::print("{:<11} {:<6} {:<10} {:<5} {:>10} {:>8} {:>8} {:>9} {:>9} {:>7}   relative\n", "scenario", "rule", "decay",
               "type", "n", "tensors", "threads", "ns/param", "limit", "ratio");
  }
  const bool live = isatty(STDERR_FILENO) != 0;
  bench::run_step_grid(
      grid,
      [&](const std::string& what) {
        if (live) fmt::print(stderr, "measuring {}\033[K\r", what);
      },
      [&](const bench::StepRow& row) { given.json ? print_json(row) : print_row(row); });
  if (live) fmt::print(stderr, "\033[K");
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Verb& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  CLI::App* step = bench->add_subcommand("step", "Time of one optimizer step beside the machine's limit");
  auto arguments = std::make_shared<BenchArguments>();
  step->description(
      "Examples:\n"
      "  cautious bench step                                    the whole table (about five minutes, 4 GB)\n"
      "  cautious bench step --sizes 1e6 --threads 1 --json     one size, one object per line\n\n"
      "Time of one optimizer step beside the machine's limit, the larger of the pure traffic of the same\n"
      "streams and one sqrt + div per coordinate; all cases interleaved in one run, medians.");
  step->add_flag("--json", arguments->json, "One JSON object per line on standard output");
  step->add_option("--sizes", arguments->sizes, "Coordinates, default 1e4,1e6,3e7,1e8")->delimiter(',');
  step->add_option("--threads", arguments->grid.threads, "Thread counts, default 1,2")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  step->add_option("--optimizers", arguments->grid.optimizers, "Default sgdm,adamw,lion")
      ->delimiter(',')
      ->check(CLI::IsMember({"sgdm", "adamw", "lion"}));
  step->add_option("--rounds", arguments->grid.rounds, "Interleaved rounds, default 15")->check(CLI::Range(1, 1000));
  step->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace cautious::cli
