// cautious bench image: training speed of image classifiers next to plain libtorch, and how fast their images are prepared.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "bench/image_grid.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "linear/blas.h"
#include "model/vision/config.h"

namespace cautious::cli {
namespace {

struct BenchImageArguments {
  bool json = false;
  bench::ImageGrid grid;
};

std::string json_of(const bench::ImageRow& row) {
  const nlohmann::ordered_json object{{"preset", row.preset},
                                      {"batch", row.batch},
                                      {"images_per_s", row.images_per_s},
                                      {"plain_images_per_s", row.plain_images_per_s},
                                      {"speedup", row.speedup},
                                      {"loader_images_per_s", row.loader_images_per_s},
                                      {"threads", row.threads},
                                      {"gflops", row.gflops}};
  return object.dump();
}

std::string line_of(const bench::ImageRow& row) {
  return fmt::format("{:<15} {:>5} {:>12.1f} {:>18.1f} {:>7.2f} {:>19.0f} {:>7} {:>7.1f}", row.preset, row.batch,
                     row.images_per_s, row.plain_images_per_s, row.speedup, row.loader_images_per_s, row.threads, row.gflops);
}

int run(const BenchImageArguments& given) {
  base::check_range("--rounds", given.grid.rounds, {1, 1000, false, false});
  base::check_range("--threads", given.grid.threads, {1, 1024, false, false});
  for (const std::string& name : given.grid.presets) (void)model::image_preset(name);
  fmt::print(stderr, "{}\nBLAS: {}\n", machine_line(), linear::blas_name());
  const BenchRows rows(given.json,
                       fmt::format("{:<15} {:>5} {:>12} {:>18} {:>7} {:>19} {:>7} {:>7}", "preset", "batch", "images_per_s",
                                   "plain_images_per_s", "speedup", "loader_images_per_s", "threads", "gflops"));
  bench::run_image_grid(
      given.grid, [&](const std::string& what) { rows.measuring(what); },
      [&](const bench::ImageRow& row) { rows.print(json_of(row), line_of(row)); });
  return 0;
}

}  // namespace

void add_bench_image(CLI::App& bench, Verb& chosen) {
  const auto args = std::make_shared<BenchImageArguments>();
  CLI::App& verb = *bench.add_subcommand("image", kBenchImageLine);
  verb.footer(
      "  cautious bench image\n"
      "  cautious bench image --presets resnet-20,resnet-18-cifar --rounds 21 --json\n"
      "\n"
      "The loader's speed is that of one worker: windows of padded images, flips, two operations of RandAugment, erasing.");
  verb.add_flag("--json", args->json, "One JSON object per line on standard output");
  verb.add_option("--presets", args->grid.presets, "Models (default: vit-tiny-4,resnet-20)")
      ->delimiter(',')
      ->type_name("NAMES")
      ->expected(1, 64);
  verb.add_option("--threads", args->grid.threads, "Threads (default: 2)")->type_name("NUMBER");
  verb.add_option("--rounds", args->grid.rounds,
                  "Interleaved rounds, the median of which is reported; valid: [1, 1000] (default: 9)")
      ->type_name("NUMBER");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
