// cautious bench image: training speed of image classifiers next to plain libtorch, and how fast their images are prepared.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "bench/image_grid.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "linear/blas.h"
#include "model/vision/config.h"

namespace cautious::cli {
namespace {

struct BenchImageArguments {
  bool json = false;
  bench::ModelGrid grid{{"vit-tiny-4", "resnet-20"}};
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
  check(given.grid);
  for (const std::string& name : given.grid.presets) (void)model::image_preset(name);
  base::tell(fmt::format("{}\nBLAS: {}\n", machine_line(), linear::blas_name()));
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
  add_options(verb, args->json, args->grid);
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
