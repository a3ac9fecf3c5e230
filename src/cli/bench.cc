// `cautious bench step` and `cautious bench polar`: one optimizer step against the machine's limit, and the orthogonalization
// of matrices against the naive form and the machine's own matrix product, each measured in the same run.
#include <array>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/terminal.h"
#include "base/text.h"
#include "bench/polar_grid.h"
#include "bench/step_grid.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "linear/blas.h"

namespace cautious::cli {
namespace {

struct StepArguments {
  bool json = false;
  std::vector<double> sizes;
  std::string pages = "small";
  bench::StepGrid grid;
};

std::string json_of(const bench::StepRow& row, bench::Pages pages) {
  const nlohmann::ordered_json object{{"optimizer", row.optimizer},
                                      {"decay", row.decay},
                                      {"dtype", row.dtype},
                                      {"n", row.n},
                                      {"tensors", row.tensors},
                                      {"threads", row.threads},
                                      {"norms", name_of(row.norms)},
                                      {"pages", name_of(pages)},
                                      {"ns_per_param", row.ns.median},
                                      {"ns_q10", row.ns.q10},
                                      {"disturbed", row.ns.disturbed},
                                      {"bytes_per_param", row.bytes_per_param},
                                      {"limit_ns_per_param", row.limit.median},
                                      {"limit_ns_q10", row.limit.q10},
                                      {"limited_by", row.limited_by},
                                      {"ratio", row.ratio.medians},
                                      {"ratio_q10", row.ratio.q10},
                                      {"ratio_rounds", row.ratio.rounds},
                                      {"scenario", row.scenario},
                                      {"reference", row.reference},
                                      {"relative", row.relative.medians},
                                      {"relative_q10", row.relative.q10},
                                      {"relative_rounds", row.relative.rounds}};
  return object.dump();
}

std::string line_of(const bench::StepRow& row) {
  return fmt::format(
      "{:<11} {:<6} {:<10} {:<5} {:<5} {:>10} {:>7} {:>7} {:>7.3f} {:>6.3f} {:>4.0f}% {:>7.3f} {:>6.3f} {:>7.2f} {:>5.2f} "
      "{:>6.2f} "
      "{:>10.2f} {:>5.2f} {:>6.2f} of {}",
      row.scenario, row.optimizer, row.decay, row.dtype, name_of(row.norms), row.n, row.tensors, row.threads, row.ns.median,
      row.ns.q10, 100 * row.ns.disturbed, row.limit.median, row.limit.q10, row.ratio.medians, row.ratio.q10, row.ratio.rounds,
      row.relative.medians, row.relative.q10, row.relative.rounds, row.reference);
}

int run(const StepArguments& given) {
  bench::StepGrid grid = given.grid;
  grid.pages = base::named<bench::Pages>("--pages", given.pages);
  base::check_range("--rounds", grid.rounds, {1, 1000, false, false});
  for (const int threads : grid.threads) base::check_range("--threads", threads, {1, 1024, false, false});
  constexpr std::array<std::string_view, 3> kMeasured{"sgdm", "adamw", "lion"};
  for (const std::string& name : grid.optimizers) base::index_of_name("optimizer in the benchmark", name, kMeasured);
  for (const std::string& name : grid.scenarios) base::index_of_name("scenario", name, bench::scenario_names());
  for (const double size : given.sizes) {
    base::check_range("--sizes", size, {1, 1e10, false, false});
    grid.sizes.push_back(static_cast<std::size_t>(size));
  }
  base::tell(fmt::format("{}\n{} pages for x and g; processor time on one thread, wall time on several\n", machine_line(),
                         given.pages));
  const BenchRows rows(
      given.json,
      fmt::format(
          "{:<11} {:<6} {:<10} {:<5} {:<5} {:>10} {:>7} {:>7} {:>7} {:>6} {:>5} {:>7} {:>6} {:>7} {:>5} {:>6} {:>10} {:>5} "
          "{:>6}",
          "scenario", "rule", "decay", "type", "norms", "n", "tensors", "threads", "ns", "q10", "busy", "limit", "q10", "ratio",
          "q10", "rounds", "relative", "q10", "rounds"));
  bench::run_step_grid(
      grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::StepRow& row) { rows.print(json_of(row, grid.pages), line_of(row)); });
  return 0;
}

struct PolarArguments {
  bool json = false;
  std::vector<std::string> sizes;
  std::string schedule = "paper";
  bench::PolarGrid grid;
};

std::string json_of(const bench::PolarRow& row) {
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
  return object.dump();
}

std::string line_of(const bench::PolarRow& row) {
  const std::string what = row.list.empty() ? fmt::format("{} x {}", row.rows, row.cols) : row.list;
  return fmt::format("{:<13} {:>5} {:>7} {:>10.2f} {:>10.2f} {:>7.2f} {:>8.1f} {:>9.1f} {:>6.2f} {:>9.1e} {:>8.1f}%", what,
                     row.count, row.threads, row.ms, row.naive_ms, row.speedup, row.sgemm_gflops, row.effective_gflops,
                     row.bound, row.error, 100 * row.elementwise);
}

std::pair<int, int> size_of(const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos)
    throw Error(Fault::usage,
                fmt::format("--sizes is {}; write ROWSxCOLS, as in 768x3072, or gpt2-small", base::in_quotes(text)));
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
  base::tell(fmt::format("{}\nBLAS: {}\n", machine_line(), linear::blas_name()));
  const BenchRows rows(given.json,
                       fmt::format("{:<13} {:>5} {:>7} {:>10} {:>10} {:>7} {:>8} {:>9} {:>6} {:>9} {:>9}", "matrix", "count",
                                   "threads", "ms", "naive ms", "speedup", "sgemm", "effective", "bound", "error", "rest"));
  bench::run_polar_grid(
      grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::PolarRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

void add_bench_polar(CLI::App& bench, Verb& chosen) {
  CLI::App* polar = bench.add_subcommand(
      "polar", "Time Muon's orthogonalization against the usual three products per step, on the same BLAS and threads.");
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
  polar
      ->add_option("--schedule", arguments->schedule,
                   fmt::format("Newton-Schulz coefficients; valid: {} (default: paper)", base::join(names_of(NewtonSchulz{}))))
      ->type_name("NAME");
  polar
      ->add_option("--rounds", arguments->grid.rounds,
                   "Interleaved rounds, the median of which is reported; valid: [1, 1000] (default: 5)")
      ->type_name("NUMBER");
  polar->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace

CLI::App& add_bench(CLI::App& app, Verb& chosen) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine.");
  bench->require_subcommand(1);
  bench->footer("  cautious bench step --json");
  CLI::App* step =
      bench->add_subcommand("step", "Time one optimizer step against the machine's limit, measured in the same run.");
  step->footer(
      "  cautious bench step\n"
      "  cautious bench step --scenarios flat --sizes 1e6 --threads 1 --json\n"
      "  cautious bench step --scenarios norms,bf16 --optimizers adamw --pages huge\n"
      "\n"
      "Times and limits in ns per parameter are medians and 10% quantiles (q10). The ratio to the limit, and to a reference\n"
      "(relative), is that of medians, that of quantiles, and the median of the rounds' own ratios (rounds). busy is the\n"
      "fraction of rounds in which another program took a processor: on several threads, times of a busy machine are those\n"
      "of its scheduler.");
  auto arguments = std::make_shared<StepArguments>();
  const auto list = [&](const char* name, auto& values, const char* type, const char* help) {
    return step->add_option(name, values, help)->delimiter(',')->type_name(type)->expected(1, 64);
  };
  step->add_flag("--json", arguments->json, "One JSON object per line on standard output");
  list("--scenarios", arguments->grid.scenarios, "NAMES",
       "Sets of tensors; valid: flat, gpt2-small, 1000x160, norms, bf16, aliased, denormal (default: all; up to ten minutes, 6 "
       "GB)");
  list("--sizes", arguments->sizes, "NUMBERS",
       "Numbers of coordinates; gpt2-small and 1000x160 have their own (default: the scenario's; flat: 1e4,1e6,3e7,1e8)");
  list("--threads", arguments->grid.threads, "NUMBERS", "Thread counts (default: 1,2)");
  list("--optimizers", arguments->grid.optimizers, "NAMES",
       "Recipes; valid: sgdm, adamw, lion (default: the scenario's; flat: all)");
  step->add_option("--pages", arguments->pages,
                   "Pages of x and g, for the limit too; small are what malloc gives; valid: small, huge (default: small)")
      ->type_name("NAME");
  step->add_option("--rounds", arguments->grid.rounds,
                   "Interleaved rounds, four times as many up to 4e6 coordinates; valid: [1, 1000] (default: 31)")
      ->type_name("NUMBER");
  step->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
  add_bench_polar(*bench, chosen);
  return *bench;
}

}  // namespace cautious::cli
