// What the verbs of cautious-train share: the model and the tokenizer of a run, and the banner of a new one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/train_grid.h"
#include "data/images/loader.h"
#include "data/tokenizer/tokenizer.h"
#include "model/benchmark.h"
#include "model/weights.h"
#include "run/config.h"
#include "train/run.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cautious::cli {

struct Trained {
  std::filesystem::path checkpoint;
  data::Tokenizer tokenizer;
  std::shared_ptr<model::Transformer> model;
};

// `run`: as run::find_checkpoint() takes it. Averaged weights are taken where there are some.
Trained load_trained(const std::string& run);

struct TrainedClassifier {
  std::filesystem::path checkpoint;
  model::ImageModelFile described;
  data::View view;
  std::shared_ptr<model::Classifier> model;
};
// Of a language model it is an Error(Fault::data) that says so.
TrainedClassifier load_trained_classifier(const std::string& run);

// Whether `run` is one of images.
bool classifies_images(const std::string& run);

// Sets the threads for all that follows; 0 is one per core. Returns their number.
int use_threads(int wanted);

// The option --seed; a seed that is negative or not a number is an Error.
CLI::Option& add_seed(CLI::App& verb, std::uint64_t& seed, const std::string& help);

// Called with what is being done and how far it is.
using Show = std::function<void(const std::string& what, double fraction)>;

// cautious eval --tasks.
struct TaskArguments {
  std::string run;
  model::BenchmarkOptions asked = {};
  std::filesystem::path out = {};  // where a stopped run continues; empty: nowhere
  bool json = false;
};
std::string eval_tasks(const TaskArguments& args, int threads, const Show& show);

// The options that the benchmarks of training share, and whether their values are valid.
void add_options(CLI::App& verb, bool& json, bench::ModelGrid& grid);
void check(const bench::ModelGrid& grid);

// What a run is going to be, before it begins: shape, sizes, tokens, operations, memory and time, one line each, "label  text".
// `data` is null in a dry run without data.path.
std::vector<std::string> banner(const run::RunConfig& config, const train::RunPlan* data);

// The same of so many ranks on some hardware (run/scale.h).
std::vector<std::string> on_paper(const run::RunConfig& config, int ranks, const std::string& hardware);

}  // namespace cautious::cli
