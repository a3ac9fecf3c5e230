// One case of the step benchmark: an optimizer over its own buffers, ready to step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "bench/buffers.h"
#include "bench/limit.h"

namespace cautious::bench {

struct StepCase {
  std::string optimizer = "adamw", decay = "cautious";
  Element element = Element::f32;  // bf16 rounds stochastically
  std::vector<std::size_t> sizes;  // coordinates of each tensor
  int threads = 1;
  Spacing spacing = Spacing::staggered;
  Norms norms = Norms::off;
  float gradient = 1;  // scale of the gradients; 0 lets moments decay into denormals

  std::size_t total() const;
  int moments() const;             // f32 moments per coordinate
  double bytes_per_param() const;  // read and written in one step
};

// Tensors of GPT-2 small: 148 of them, 124,439,808 coordinates.
std::vector<std::size_t> gpt2_small();

// x and g of a case; cases of the same element and size share them, as the values do not matter.
class Data {
 public:
  Data(Element element, std::size_t total, Spacing spacing, float gradient);
  void* x() const { return buffers_.at<void>(0); }
  void* g() const { return buffers_.at<void>(1); }

 private:
  Buffers buffers_;
};

class StepRunner {
 public:
  StepRunner(const StepCase& step_case, const Data& data);
  void run() { optimizer_.step({.lr = 1e-6}); }
  // Sets all moments to `value`.
  void set_moments(float value);

 private:
  std::vector<std::size_t> sizes_;
  Optimizer optimizer_;
};

// The pure traffic of the same streams, over buffers of its own.
class LimitRunner {
 public:
  explicit LimitRunner(const StepCase& step_case);
  void run() const { run_traffic(traffic_, threads_); }

 private:
  Buffers wide_, narrow_;
  Traffic traffic_;
  int threads_;
};

}  // namespace cautious::bench
