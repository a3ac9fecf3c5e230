// cautious predict: what a trained classifier takes images for.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "data/images/loader.h"
#include "model/vision/evaluate.h"

namespace cautious::cli {
namespace {

constexpr int kBadData = 3;

struct PredictArguments {
  std::string run;
  std::vector<std::string> images;
  std::size_t top = 5;
  int threads = 0;
  bool json = false;
};

struct Guess {
  std::string label;
  double probability;
};

// The most likely classes first.
std::vector<Guess> guesses_of(const TrainedClassifier& trained, const std::string& file, std::size_t top) {
  const std::int64_t channels = model::channels(trained.described.model);
  const data::Image image = data::read_image(file, channels);
  data::ImageBatch batch{.count = 1, .pixels = {}, .label = {}, .other = {}, .share = {}};
  batch.pixels.resize(static_cast<std::size_t>(trained.view.size * trained.view.size * channels));
  data::put_plain(image, trained.view, batch.pixels.data());
  const at::Tensor found =
      model::probabilities(*trained.model, model::images_of(batch, trained.view.size, channels)).contiguous();
  const float* const probability = found.data_ptr<float>();
  std::vector<std::size_t> order(trained.described.labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return probability[a] > probability[b]; });
  order.resize(std::min(order.size(), top));
  std::vector<Guess> guesses;
  for (const std::size_t label : order) guesses.push_back({trained.described.labels[label], probability[label]});
  return guesses;
}

std::string json_of(const std::string& file, const std::vector<Guess>& guesses) {
  nlohmann::ordered_json object{{"image", file}, {"classes", nlohmann::ordered_json::array()}};
  for (const Guess& guess : guesses) object["classes"].push_back({{"class", guess.label}, {"probability", guess.probability}});
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string line_of(const std::string& file, const std::vector<Guess>& guesses) {
  std::vector<std::string> parts;
  for (const Guess& guess : guesses) parts.push_back(fmt::format("{} {:.1f}%", guess.label, 100 * guess.probability));
  return fmt::format("{}: {}\n", file, fmt::join(parts, ", "));
}

// An image that cannot be read is named; the others are still predicted.
int run(const PredictArguments& args) {
  base::check_range("--top", static_cast<double>(args.top), {1, 1e6, false, false});
  use_threads(args.threads);
  const TrainedClassifier trained = load_trained_classifier(args.run);
  const Interruptible interruptible;
  int code = 0;
  for (const std::string& file : args.images) {
    interruptible.check();
    try {
      const std::vector<Guess> guesses = guesses_of(trained, file, args.top);
      base::print(args.json ? json_of(file, guesses) : line_of(file, guesses));
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      base::tell(base::error_line(error.what()));
      code = kBadData;
    }
  }
  return code;
}

}  // namespace

void add_predict(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<PredictArguments>();
  CLI::App& verb = *app.add_subcommand("predict", kPredictLine);
  verb.footer(
      "  cautious predict runs/fashion shoe.png coat.jpg\n"
      "  cautious predict runs/fashion photos/*.jpg --top 1 --json");
  verb.add_option("RUN", args->run, "A run directory (its newest checkpoint), a checkpoint, or a model folder")
      ->required()
      ->type_name("");
  verb.add_option("IMAGE", args->images, "PNG or JPEG files")->required()->expected(1, 1000000)->type_name("");
  verb.add_option("--top", args->top, "Classes to print, the most likely first (default: 5)")->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core (default: 0)")->type_name("NUMBER");
  verb.add_flag("--json", args->json, "Print one JSON object per image to standard output");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
