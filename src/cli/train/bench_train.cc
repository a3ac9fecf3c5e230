// cautious bench train: training speed next to plain libtorch and the machine's own matrix product.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "base/text.h"
#include "bench/train_grid.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "linear/blas.h"
#include "model/config.h"

namespace cautious::cli {
namespace {

struct BenchTrainArguments {
  bool json = false;
  bench::TrainGrid grid;
};

std::string json_of(const bench::TrainRow& row) {
  const nlohmann::ordered_json object{{"preset", row.preset},
                                      {"batch", row.batch},
                                      {"sequence", row.sequence},
                                      {"threads", row.threads},
                                      {"tokens_per_s", row.tokens_per_s},
                                      {"plain_tokens_per_s", row.plain_tokens_per_s},
                                      {"speedup", row.speedup},
                                      {"gflops", row.gflops},
                                      {"sgemm_gflops", row.sgemm_gflops},
                                      {"fraction", row.fraction},
                                      {"optimizer_fraction", row.optimizer_fraction},
                                      {"peak_rss_mb", row.peak_rss_mb}};
  return object.dump();
}

std::string line_of(const bench::TrainRow& row) {
  return fmt::format("{:<10} {:>5} x {:<4} {:>9.0f} {:>9.0f} {:>7.2f} {:>8.1f} {:>7.1f} {:>7.0f}% {:>8.1f}% {:>8.0f}",
                     row.preset, row.batch, row.sequence, row.tokens_per_s, row.plain_tokens_per_s, row.speedup, row.gflops,
                     row.sgemm_gflops, 100 * row.fraction, 100 * row.optimizer_fraction, row.peak_rss_mb);
}

int run(const BenchTrainArguments& given) {
  check(given.grid);
  for (const std::string& name : given.grid.presets) model::preset(name);
  base::tell(fmt::format("{}\nBLAS: {}\n", machine_line(), linear::blas_name()));
  const BenchRows rows(given.json,
                       fmt::format("{:<10} {:>12} {:>9} {:>9} {:>7} {:>8} {:>7} {:>8} {:>9} {:>8}", "preset", "batch", "tok/s",
                                   "plain", "speedup", "GFLOP/s", "sgemm", "fraction", "optimizer", "RSS MB"));
  bench::run_train_grid(
      given.grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::TrainRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

}  // namespace

void add_options(CLI::App& verb, bool& json, bench::ModelGrid& grid) {
  verb.add_flag("--json", json, "One JSON object per line on standard output");
  verb.add_option("--presets", grid.presets, fmt::format("Models (default: {})", fmt::join(grid.presets, ",")))
      ->delimiter(',')
      ->type_name("NAMES")
      ->expected(1, 64);
  verb.add_option("--threads", grid.threads, "Threads (default: 2)")->type_name("NUMBER");
  verb.add_option("--rounds", grid.rounds, "Interleaved rounds, the median of which is reported; valid: [1, 1000] (default: 9)")
      ->type_name("NUMBER");
}

void check(const bench::ModelGrid& grid) {
  base::check_range("--rounds", grid.rounds, {1, 1000, false, false});
  base::check_range("--threads", grid.threads, {1, 1024, false, false});
}

void add_bench_train(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<BenchTrainArguments>();
  CLI::App& verb = *bench.add_subcommand("train", kBenchTrainLine);
  verb.footer(
      "  cautious bench train\n"
      "  cautious bench train --presets nano-10m --rounds 21 --json");
  add_options(verb, args->json, args->grid);
  verb.add_flag("--recompute", args->grid.recompute, "Recompute activations in our model");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
