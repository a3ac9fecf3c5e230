// cautious bench eval: items of multiple choice per second, with common beginnings computed once and without.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "bench/eval_grid.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "linear/blas.h"
#include "model/config.h"

namespace cautious::cli {
namespace {

struct BenchEvalArguments {
  bool json = false;
  bench::EvalGrid grid;
};

std::string json_of(const bench::EvalRow& row) {
  const nlohmann::ordered_json object{{"preset", row.preset},
                                      {"shape", row.shape},
                                      {"items", row.items},
                                      {"threads", row.threads},
                                      {"items_per_s", row.items_per_s},
                                      {"plain_items_per_s", row.plain_items_per_s},
                                      {"speedup", row.speedup},
                                      {"largest_difference", row.largest_difference}};
  return object.dump();
}

std::string line_of(const bench::EvalRow& row) {
  return fmt::format("{:<10} {:<10} {:>9.2f} {:>9.2f} {:>7.2f} {:>10.1e}", row.preset, row.shape, row.items_per_s,
                     row.plain_items_per_s, row.speedup, row.largest_difference);
}

int run(const BenchEvalArguments& given) {
  check(given.grid);
  for (const std::string& name : given.grid.presets) model::preset(name);
  base::tell(fmt::format("{}\nBLAS: {}\n", machine_line(), linear::blas_name()));
  const BenchRows rows(given.json, fmt::format("{:<10} {:<10} {:>9} {:>9} {:>7} {:>10}", "preset", "shape", "items/s", "plain",
                                               "speedup", "difference"));
  bench::run_eval_grid(
      given.grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::EvalRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

}  // namespace

void add_bench_eval(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<BenchEvalArguments>();
  CLI::App& verb = *bench.add_subcommand("eval", kBenchEvalLine);
  verb.footer(
      "  cautious bench eval\n"
      "  cautious bench eval --presets nano-10m --rounds 9 --json");
  add_options(verb, args->json, args->grid);
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
