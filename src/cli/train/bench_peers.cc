// cautious bench peers: our step next to what one would use instead.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "bench/peers_grid.h"
#include "bench/step_case.h"
#include "cli/program.h"
#include "cli/verbs.h"

namespace cautious::cli {
namespace {

struct BenchPeersArguments {
  bool json = false;
  std::vector<std::string> sizes{"1e4", "1e6", "3e7", "gpt2-small", "1000x160"};
  bench::PeersGrid grid;
};

bench::PeerCase case_of(const std::string& text) {
  if (text == "gpt2-small") return {text, bench::gpt2_small()};
  if (text == "1000x160") return {text, std::vector<std::size_t>(1000, 160)};
  const auto number = base::parsed<double>(text);
  if (!number) {
    throw Error(Fault::usage, fmt::format("--sizes is {}; write a number of coordinates, as in 1e6, gpt2-small or 1000x160",
                                          base::in_quotes(text)));
  }
  base::check_range("--sizes", *number, {1, 1e10, false, false});
  return {"flat", {static_cast<std::size_t>(*number)}};
}

std::string json_of(const bench::PeerRow& row) {
  const nlohmann::ordered_json object{{"peer", row.peer},
                                      {"decay", row.decay},
                                      {"scenario", row.tensors_of},
                                      {"n", row.n},
                                      {"tensors", row.tensors},
                                      {"threads", row.threads},
                                      {"ns_per_param", row.ns.median},
                                      {"ns_q10", row.ns.q10},
                                      {"disturbed", row.ns.disturbed},
                                      {"ratio", row.ratio.medians},
                                      {"ratio_q10", row.ratio.q10},
                                      {"ratio_rounds", row.ratio.rounds},
                                      {"speedup", row.speedup.medians},
                                      {"speedup_q10", row.speedup.q10},
                                      {"speedup_rounds", row.speedup.rounds}};
  return object.dump();
}

std::string line_of(const bench::PeerRow& row) {
  return fmt::format(
      "{:<19} {:<10} {:<11} {:>10} {:>7} {:>7} {:>8.3f} {:>7.3f} {:>4.0f}% {:>7.2f} {:>6.2f} {:>6.2f} {:>8.2f} {:>6.2f} "
      "{:>6.2f}",
      row.peer, row.decay, row.tensors_of, row.n, row.tensors, row.threads, row.ns.median, row.ns.q10, 100 * row.ns.disturbed,
      row.ratio.medians, row.ratio.q10, row.ratio.rounds, row.speedup.medians, row.speedup.q10, row.speedup.rounds);
}

int run(const BenchPeersArguments& given) {
  bench::PeersGrid grid = given.grid;
  base::check_range("--rounds", grid.rounds, {1, 1000, false, false});
  for (const int threads : grid.threads) base::check_range("--threads", threads, {1, 1024, false, false});
  for (const std::string& size : given.sizes) grid.cases.push_back(case_of(size));
  base::tell(fmt::format("{}\nprocessor time on one thread, wall time on several\n", machine_line()));
  const BenchRows rows(
      given.json, fmt::format("{:<19} {:<10} {:<11} {:>10} {:>7} {:>7} {:>8} {:>7} {:>5} {:>7} {:>6} {:>6} {:>8} {:>6} {:>6}",
                              "peer", "decay", "scenario", "n", "tensors", "threads", "ns", "q10", "busy", "ratio", "q10",
                              "rounds", "speedup", "q10", "rounds"));
  bench::run_peers_grid(
      grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::PeerRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

}  // namespace

void add_bench_peers(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<BenchPeersArguments>();
  CLI::App& verb = *bench.add_subcommand("peers", kBenchPeersLine);
  verb.footer(
      "  cautious bench peers\n"
      "  cautious bench peers --sizes 1e6,1000x160 --threads 2 --json\n"
      "\n"
      "The peers: cautious as it comes, without the sums of its report, and through cautious::torch; libtorch's AdamW, whose\n"
      "decay is plain; AdamW with cautious decay in ATen operations; and the same as a plain loop, compiled with -O2, and\n"
      "with -O3 for AVX2. All must agree to 1e-5 after a few steps. Times in ns per parameter are medians and 10% quantiles\n"
      "(q10). The ratio to the machine's limit, and the speedup of cautious over the peer, is that of medians, that of\n"
      "quantiles, and the median of the rounds' own ratios (rounds). busy is the fraction of rounds in which another program\n"
      "took a processor.");
  verb.add_flag("--json", args->json, "One JSON object per line on standard output");
  const auto list = [&](const char* name, auto& values, const char* type, const char* help) {
    verb.add_option(name, values, help)->delimiter(',')->type_name(type)->expected(1, 64);
  };
  list("--sizes", args->sizes, "SIZES",
       "Numbers of coordinates, gpt2-small, 1000x160 (default: 1e4,1e6,3e7,gpt2-small,1000x160; 12 GB)");
  list("--threads", args->grid.threads, "NUMBERS", "Thread counts (default: 1,2)");
  verb.add_option("--rounds", args->grid.rounds,
                  "Interleaved rounds, four times as many up to 4e6 coordinates; valid: [1, 1000] (default: 15)")
      ->type_name("NUMBER");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
