// cautious bench, and its verb step: the time of one optimizer step beside the limit of the machine, measured in the same run.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/step_grid.h"
#include "cli/bench.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "base/text.h"

namespace cautious::cli {
namespace {

struct BenchArguments {
  bool json = false;
  std::vector<double> sizes;
  bench::StepGrid grid;
};

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
  base::check_range("--rounds", grid.rounds, {1, 1000, false, false});
  for (const int threads : grid.threads) base::check_range("--threads", threads, {1, 1024, false, false});
  constexpr std::array<std::string_view, 3> kMeasured{"sgdm", "adamw", "lion"};
  for (const std::string& name : grid.optimizers) base::index_of_name("optimizer in the benchmark", name, kMeasured);
  if (!given.sizes.empty()) grid.sizes.clear();
  for (const double size : given.sizes) {
    base::check_range("--sizes", size, {1, 1e10, false, false});
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
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
  bench->require_subcommand(1);
  bench->footer("  cautious bench step --json");
  CLI::App* step =
      bench->add_subcommand("step", "Time of one optimizer step beside the machine's limit, measured in the same run.");
  step->footer(
      "  cautious bench step\n"
      "  cautious bench step --sizes 1e6 --threads 1 --json\n"
      "  cautious bench step --sizes 3e7 --optimizers adamw,lion --rounds 31");
  auto arguments = std::make_shared<BenchArguments>();
  const auto list = [&](const char* name, auto& values, const char* type, const char* help) {
    return step->add_option(name, values, help)->delimiter(',')->type_name(type)->expected(1, 64);
  };
  step->add_flag("--json", arguments->json, "One JSON object per line on standard output");
  list("--sizes", arguments->sizes, "NUMBERS", "Coordinates (default: 1e4,1e6,3e7,1e8; about five minutes and 4 GB)");
  list("--threads", arguments->grid.threads, "NUMBERS", "Thread counts (default: 1,2)");
  list("--optimizers", arguments->grid.optimizers, "NAMES", "Of sgdm, adamw, lion (default: all)");
  step->add_option("--rounds", arguments->grid.rounds,
                   "Interleaved rounds, of which the median counts; valid: [1, 1000] (default: 15)")
      ->type_name("NUMBER");
  step->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
  add_bench_polar(*bench, chosen);
}

}  // namespace cautious::cli
