// cautious bench polar: orthogonalisation of matrices beside the naive form and the machine's own matrix product.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "bench/polar_grid.h"
#include "cli/bench.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "linear/blas.h"
#include "base/text.h"

namespace cautious::cli {
namespace {

struct PolarArguments {
  bool json = false;
  std::vector<std::string> sizes;
  std::string schedule = "paper";
  bench::PolarGrid grid;
};

void print_json(const bench::PolarRow& row) {
  nlohmann::ordered_json object;
  if (!row.list.empty()) object["list"] = row.list;
  object.update(nlohmann::ordered_json{{"rows", row.rows},
                                       {"cols", row.cols},
                                       {"count", row.count},
                                       {"threads", row.threads},
                                       {"schedule", row.schedule},
                                       {"ms", row.ms},
                                       {"naive_ms", row.naive_ms},
                                       {"speedup", row.speedup},
                                       {"sgemm_gflops", row.sgemm_gflops},
                                       {"effective_gflops", row.effective_gflops},
                                       {"error", row.error},
                                       {"bound", row.bound},
                                       {"elementwise", row.elementwise}});
  fmt::print("{}\n", object.dump());
  std::fflush(stdout);
}

void print_row(const bench::PolarRow& row) {
  const std::string what = row.list.empty() ? fmt::format("{} x {}", row.rows, row.cols) : row.list;
  fmt::print("{:<13} {:>5} {:>7} {:>10.2f} {:>10.2f} {:>7.2f} {:>8.1f} {:>9.1f} {:>6.2f} {:>9.1e} {:>8.1f}%\n", what, row.count,
             row.threads, row.ms, row.naive_ms, row.speedup, row.sgemm_gflops, row.effective_gflops, row.bound, row.error,
             100 * row.elementwise);
  std::fflush(stdout);
}

std::pair<int, int> size_of(const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos)
    throw Error(Fault::usage, fmt::format("--sizes {}: write ROWSxCOLS, as 768x3072, or gpt2-small", text));
  constexpr Range kSide{1, 20000, false, false};
  return {static_cast<int>(base::to_integer("rows of --sizes", text.substr(0, cross), kSide)),
          static_cast<int>(base::to_integer("cols of --sizes", text.substr(cross + 1), kSide))};
}

int run(const PolarArguments& given) {
  bench::PolarGrid grid = given.grid;
  base::check_range("--rounds", grid.rounds, {1, 1000, false, false});
  for (const int threads : grid.threads) base::check_range("--threads", threads, {1, 1024, false, false});
  grid.how.schedule = base::named<NewtonSchulz>("schedule", given.schedule);
  if (quintics(grid.how).empty()) {
    throw Error(Fault::usage, fmt::format("schedule '{}' has no steps to compare with the naive form", given.schedule));
  }
  if (!given.sizes.empty()) {
    grid.sizes.clear();
    grid.gpt2 = false;
  }
  for (const std::string& size : given.sizes) {
    if (size == "gpt2-small") {
      grid.gpt2 = true;
    } else {
      grid.sizes.push_back(size_of(size));
    }
  }
  fmt::print(stderr, "{}\nBLAS: {}\n", machine_line(), linear::blas_name());
  if (!given.json) {
    fmt::print("{:<13} {:>5} {:>7} {:>10} {:>10} {:>7} {:>8} {:>9} {:>6} {:>9} {:>9}\n", "matrix", "count", "threads", "ms",
               "naive ms", "speedup", "sgemm", "effective", "bound", "error", "rest");
  }
  const bool live = isatty(STDERR_FILENO) != 0;
  bench::run_polar_grid(
      grid,
      [&](const std::string& what) {
        if (live) fmt::print(stderr, "measuring {}\033[K\r", what);
      },
      [&](const bench::PolarRow& row) { given.json ? print_json(row) : print_row(row); });
  if (live) fmt::print(stderr, "\033[K");
  return 0;
}

}  // namespace

void add_bench_polar(CLI::App& bench, Verb& chosen) {
  CLI::App* polar = bench.add_subcommand(
      "polar", "Orthogonalisation (Muon) beside the usual three products a step, on the same BLAS and threads.");
  polar->footer(
      "  cautious bench polar\n"
      "  cautious bench polar --sizes 768x768,768x3072 --threads 2 --json");
  auto arguments = std::make_shared<PolarArguments>();
  polar->add_flag("--json", arguments->json, "One JSON object per line on standard output");
  polar
      ->add_option("--sizes", arguments->sizes,
                   "ROWSxCOLS or gpt2-small (default: 256x256 to 2048x2048 and gpt2-small; about ten minutes)")
      ->delimiter(',')
      ->type_name("SIZES")
      ->expected(1, 64);
  polar->add_option("--threads", arguments->grid.threads, "Thread counts (default: 1,2)")
      ->delimiter(',')
      ->type_name("NUMBERS")
      ->expected(1, 64);
  polar->add_option("--schedule", arguments->schedule, "Newton-Schulz coefficients (default: paper)")->type_name("NAME");
  polar
      ->add_option("--rounds", arguments->grid.rounds,
                   "Interleaved rounds, of which the median counts; valid: [1, 1000] (default: 5)")
      ->type_name("NUMBER");
  polar->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace cautious::cli
