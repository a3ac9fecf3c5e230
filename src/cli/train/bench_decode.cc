// cautious bench decode: sampling speed next to how fast the machine reads the weights.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "bench/decode_grid.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "model/config.h"

namespace cautious::cli {
namespace {

struct BenchDecodeArguments {
  bool json = false;
  bench::ModelGrid grid{{"nano-100k", "nano-10m", "gemma-111m"}};
};

std::string json_of(const bench::DecodeRow& row) {
  const nlohmann::ordered_json object{{"preset", row.preset},
                                      {"parameters", row.parameters},
                                      {"threads", row.threads},
                                      {"tokens_per_s", row.tokens_per_s},
                                      {"limit_tokens_per_s", row.limit_tokens_per_s},
                                      {"ratio", row.ratio}};
  return object.dump();
}

std::string line_of(const bench::DecodeRow& row) {
  return fmt::format("{:<11} {:>11} {:>7} {:>12.0f} {:>18.0f} {:>5.2f}", row.preset, row.parameters, row.threads,
                     row.tokens_per_s, row.limit_tokens_per_s, row.ratio);
}

int run(const BenchDecodeArguments& given) {
  check(given.grid);
  for (const std::string& name : given.grid.presets) (void)model::preset(name);
  base::tell(fmt::format("{}\n", machine_line()));
  const BenchRows rows(given.json, fmt::format("{:<11} {:>11} {:>7} {:>12} {:>18} {:>5}", "preset", "parameters", "threads",
                                               "tokens_per_s", "limit_tokens_per_s", "ratio"));
  bench::run_decode_grid(
      given.grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::DecodeRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

}  // namespace

void add_bench_decode(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<BenchDecodeArguments>();
  CLI::App& verb = *bench.add_subcommand("decode", kBenchDecodeLine);
  verb.footer(
      "  cautious bench decode\n"
      "  cautious bench decode --presets nano-10m --threads 1 --json");
  add_options(verb, args->json, args->grid);
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
