// The two controls of a run with cautious decay: plain decay, and a random mask of the same density. Tensor by tensor and step
// by step both take as much from the weights as the reference run wrote down (decay_trace.h), the mask on average. Here is the
// arithmetic alone: whoever trains hands over what a step of its own would decay, and sets what comes back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "run/decay_trace.h"

namespace cautious::run {

// What a tensor of the control would decay by itself.
struct OwnDecay {
  double strength = 0;  // lr times weight decay, coupling and schedule included; 0: it does not decay
  double sum = 0;       // of |x| before the step
};

class ReferenceRun {
 public:
  enum class What { density, budget };

  // Of a run directory with a decay trace. One of other tensors is an Error(Fault::data).
  ReferenceRun(What what, const std::filesystem::path& directory, const std::vector<std::string>& tensors);

  std::int64_t steps() const { return trace_.steps(); }

  struct Amounts {
    std::vector<double> densities;  // of the mask; 1 under plain decay
    std::vector<double> factors;    // on the weight decay of each tensor
    double all = 0;                 // factor on that of all of them together
  };
  // What makes step `number` decay as the reference run's did. Nothing decays where there is nothing to decay, and never more
  // than all of a weight. A step that the reference run did not make is an Error(Fault::data).
  Amounts follow(std::int64_t number, std::span<const OwnDecay> tensors) const;

 private:
  What what_;
  std::filesystem::path directory_;
  DecayTrace trace_;
};

}  // namespace cautious::run
