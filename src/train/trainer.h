// Model, optimizer and data order of a run, one step at a time. Everything a later process needs to go on with the same bits is
// in save(): parameters, optimizer state and the step's number; the data order is a function of the seed and that number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "data/corpus.h"
#include "data/sampler.h"
#include "model/transformer.h"
#include "run/config.h"
#include "train/followed.h"

namespace cautious::train {

struct TrainStep {
  double loss;  // mean over the step's targets, before the update
  double lr;
  double weight_decay;       // of the schedule: recipe's times its factor; couplings come on top
  const StepReport* report;  // null where the loss was not finite: nothing was updated then
};

class Trainer {
 public:
  // The stream must outlive the trainer.
  Trainer(const run::RunConfig& config, const data::Stream& stream);

  // Gradients of batch_size sequences in grad_accum parts, then one optimizer step. A loss that is not finite stops before the
  // update, a gradient that is not finite leaves the step out (report->skipped). Sequences without any target are an
  // Error(Fault::data).
  TrainStep step();

  std::int64_t done() const { return done_; }  // steps
  double epochs() const;
  double rms() const;  // of all parameters, as they are now
  model::Transformer& model() { return *model_; }
  const std::vector<std::string>& names() const { return names_; }  // of the tensors, in the report's order

  // model.safetensors and optimizer.safetensors in `folder`.
  void save(const std::filesystem::path& folder) const;
  // Goes on from there as after step `done`. A checkpoint of another architecture or recipe is an Error.
  void load(const std::filesystem::path& folder, std::int64_t done);

 private:
  double accumulate_gradients();

  run::RunConfig config_;
  std::int64_t length_;
  cautious::Schedule schedule_;
  DecaySchedule decay_schedule_;
  data::Sampler sampler_;
  std::shared_ptr<model::Transformer> model_;
  Optimizer optimizer_;
  std::vector<at::Tensor> parameters_;
  std::vector<std::string> names_;
  std::optional<Followed> followed_;
  std::int64_t done_ = 0;
};

}  // namespace cautious::train
