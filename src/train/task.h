// A task: a model, its data and its metrics. The trainer and the run know nothing else about text or images. For this room
// only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "ranks/world.h"
#include "run/config.h"
#include "train/data_plan.h"
#include "train/run.h"

namespace cautious::train {

class Task {
 public:
  virtual ~Task() = default;

  // What is trained, and the file of a checkpoint that holds it.
  virtual ::torch::nn::Module& model() = 0;
  virtual const char* weights_file() const { return "model.safetensors"; }
  virtual RunPlan plan() const = 0;
  // Of the training data: another set has another one, but for chance.
  virtual std::int64_t fingerprint() const = 0;
  // Passes over the training data after so many steps.
  virtual double epochs(std::int64_t steps) const = 0;

  // Adds the gradients of this rank's part of the batch of a step, counted from 0, to the parameters'; its part of the mean
  // loss over the batch. One that is not finite is returned at once.
  virtual double add_gradients(std::int64_t step) = 0;
  // After the gradients: brings what the model learns besides, in all ranks, to what one process would have.
  virtual void join() {}
  // The numbers of run::measures_of() and how many examples they are of.
  virtual run::Evaluation evaluate() = 0;

  // What a checkpoint holds besides weights and state, for those who load the model.
  virtual void describe(const std::filesystem::path& folder) const = 0;
  // What a report shows of the last evaluation, into the directory of the run.
  virtual void finish(const std::filesystem::path& directory) const = 0;
  // The model's scores on the benchmarks of the configuration, with results.json in the directory of the run. `show` is called
  // often and may throw to give up.
  virtual std::vector<Score> score(const std::filesystem::path& directory,
                                   const std::function<void(double fraction)>& show) = 0;
  // What the model writes after log.prompt.
  virtual std::string sample() { return {}; }
  // What happened since the last call that the user should know.
  virtual std::vector<std::string> notices() = 0;
};

// Opens the data and checks it against the model; nothing is written. Whatever is wrong is an Error. The world must outlive it.
std::unique_ptr<Task> make_task(const run::RunConfig& config, ranks::World& world, const Progress& progress);
std::unique_ptr<Task> make_text_task(const run::RunConfig& config, ranks::World& world, const Progress& progress);
std::unique_ptr<Task> make_image_task(const run::RunConfig& config, ranks::World& world, const Progress& progress);

RunPlan plan_of_text(const run::RunConfig& config, const Progress& progress);
RunPlan plan_of_images(const run::RunConfig& config, const Progress& progress);

// The rows of a batch that this rank learns from, in chunks.
struct Rows {
  std::int64_t first, count, chunk;
};
inline Rows rows_of(const run::RunConfig& config, const ranks::World& world) {
  const std::int64_t count = config.train.batch_size / world.ranks();
  return {world.rank() * count, count, count / config.train.grad_accum};
}

}  // namespace cautious::train
