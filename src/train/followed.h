// The two controls of a run with cautious decay: a random mask of the same density, tensor by tensor and step by step, and
// plain decay that takes as much from the weights in all. Both read what the followed run wrote down (run/decay_trace.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/optimizer.h>

#include "run/config.h"
#include "run/decay_trace.h"

namespace cautious::train {

class Followed {
 public:
  enum class What { density, budget };
  Followed(What what, run::DecayTrace trace) : what_(what), trace_(std::move(trace)) {}

  // Makes step `number` decay as the followed one did: sets the densities, or returns the factor on the weight decay that
  // spends the same budget (1 for densities).
  double decay_factor(std::int64_t number, double lr, Optimizer& optimizer, const std::vector<at::Tensor>& parameters) const;

 private:
  What what_;
  run::DecayTrace trace_;
};

// The run that the configuration follows, if any. A trace of other tensors or of fewer steps is an Error(Fault::data).
std::optional<Followed> followed_run(const run::RunConfig& config, const std::vector<std::string>& tensors);

}  // namespace cautious::train
