// What a run is made of: the trainer (task and optimizer, one step at a time), the reference run of a control, the average of
// the weights, signs of divergence, and the columns of telemetry. For this room only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cautious/optimizer.h>

#include "ranks/gradients.h"
#include "run/config.h"
#include "run/reference_run.h"
#include "train/stepper.h"
#include "train/task.h"

namespace cautious::train {

// The one that the configuration names, if any. A trace of other tensors or of fewer steps is an Error(Fault::data).
std::optional<run::ReferenceRun> reference_run(const run::RunConfig& config, const std::vector<std::string>& tensors);

struct TrainStep {
  double loss;  // mean over the step's targets, before the update
  double lr;
  double weight_decay;       // of the schedule: recipe's times its factor; couplings come on top
  const StepReport* report;  // null where the loss was not finite: nothing was updated then
};

// A moving average of a model's parameters and running statistics: after step t, average <- d average + (1 - d) value with
// d = min(decay, (1 + t) / (10 + t)), so that it forgets the start.
class Average {
 public:
  Average(::torch::nn::Module& model, double decay);

  void update(std::int64_t step);
  void exchange();  // the model's values and the average change places
  const std::vector<at::Tensor>& values() const { return average_; }
  void save(const std::filesystem::path& file);
  void load(const std::filesystem::path& file);

 private:
  ::torch::nn::Module& model_;
  double decay_;
  std::vector<at::Tensor> values_, average_;
};

// Everything a later process needs to continue with the same bits is in save(): parameters, optimizer state and the step's
// number; the data order is a function of the seed and that number.
class Trainer {
 public:
  // The task and the world must outlive the trainer.
  Trainer(const run::RunConfig& config, Task& task, ranks::World& world);

  // Gradients of a batch, then one optimizer step. A loss that is not finite stops before the update, a gradient that is not
  // finite leaves the step out (report->skipped).
  TrainStep step();
  // Of the averaged weights, where there are some.
  run::Evaluation evaluate();
  std::string sample();
  std::vector<Score> score(const std::filesystem::path& directory, const std::function<void(double fraction)>& show);

  std::int64_t done() const { return done_; }                                  // steps
  std::int64_t optimizer_bytes() const { return optimizer_->bytes(); }         // of the state in this rank
  double rms() const;                                                          // of all parameters, as they are now
  const std::vector<std::string>& names() const { return parameters_.names; }  // of the tensors, in the report's order

  // model.safetensors and optimizer.safetensors in `folder`, and ema.safetensors with the averaged weights. Of several ranks
  // the first writes and reads them, and all take part.
  void save(const std::filesystem::path& folder);
  // Continues from there as after step `done`. A checkpoint of another architecture or recipe is an Error.
  void load(const std::filesystem::path& folder, std::int64_t done);

 private:
  run::ReferenceRun::Amounts follow(std::int64_t number, const StepInput& input);
  template <class Look>
  auto averaged(const Look& look);

  run::RunConfig config_;
  Task& task_;
  ranks::World& world_;
  cautious::Schedule schedule_;
  DecaySchedule decay_schedule_;
  Parameters parameters_;
  std::unique_ptr<Stepper> optimizer_;
  std::optional<run::ReferenceRun> reference_;
  std::optional<Average> average_;
  std::optional<ranks::Gradients> gradients_;  // of all ranks
  std::int64_t done_ = 0;
};

// The task of a run, when everything that can be wrong has been looked at; nothing is written.
std::unique_ptr<Task> prepare(const RunRequest& request, const RunWatch& watch, ranks::World& world);

// When a run has gone wrong for good, in words; empty while all is well. `start`: RMS of the parameters in the first step, 0
// before it. The report of a step is of the parameters before it, fault_of_parameters() of those now.
std::string fault_of(const TrainStep& step, double start);
std::string fault_of_parameters(double rms, double start);
std::string fault_of(const run::Evaluation& evaluation);

// A step report as columns of the metrics: in total, for each kind of tensor (embedding, attention, mlp, convolution, vectors),
// and for every tensor where asked.
class Telemetry {
 public:
  // Names in the order of the report's tensors. `each` adds columns for every tensor.
  Telemetry(const std::vector<std::string>& names, bool each);

  // Total: "ratio", "ratio_strict", "rms_x", "rms_g", "rms_u", "decay_budget"; of a kind or tensor: "attention/ratio", ...
  std::vector<std::string> columns() const;
  void append(const StepReport& report, std::vector<std::pair<std::string, double>>& values) const;

 private:
  std::vector<std::string> parts_;                 // kinds that occur, then tensors; each the front of a column's name
  std::vector<std::vector<std::size_t>> members_;  // tensors of each part
};

}  // namespace cautious::train
