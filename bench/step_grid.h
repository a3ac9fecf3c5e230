// The step benchmark: one case (an optimizer over its own buffers, ready to step), and the grid of cases, measured interleaved,
// as rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "bench/machine.h"

namespace cautious::bench {

// Memory for benchmarks: 64-byte aligned, at distances of our choosing. Buffers at equal distances of a power of two evict each
// other from the caches, so a benchmark that takes whatever malloc gives measures its luck.
enum class Spacing { staggered, aliased };  // aliased: starts exactly 2^28 bytes apart

class Buffers {
 public:
  // `count` buffers of `bytes` each.
  Buffers(std::size_t count, std::size_t bytes, Spacing spacing) {
    constexpr std::size_t kStagger = (64 + 4) * 1024 + 256, kAlias = std::size_t{1} << 28;
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    const std::size_t step = spacing == Spacing::aliased ? (rounded + kAlias - 1) / kAlias * kAlias : rounded + kStagger;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (step * count + 4095) / 4096 * 4096)));
    for (std::size_t i = 0; i < count; ++i) starts_.push_back(memory_.get() + i * step);
  }
  template <class T>
  T* at(std::size_t i) const {
    return reinterpret_cast<T*>(starts_[i]);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::byte*> starts_;
};

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

struct StepRow {
  std::string scenario;  // "flat", or what differs from it
  std::string optimizer, decay, dtype;
  std::size_t n, tensors;
  int threads;
  double ns_per_param;  // median over interleaved rounds
  double bytes_per_param;
  double limit_ns_per_param;  // larger of traffic and sqrt + div, in the same rounds
  double ratio;               // ns_per_param / limit_ns_per_param
  std::string reference;      // what `relative` compares with, measured in the same rounds
  double relative;            // ns_per_param / reference's
};

struct StepGrid {
  std::vector<std::size_t> sizes{10'000, 1'000'000, 30'000'000, 100'000'000};
  std::vector<int> threads{1, 2};
  std::vector<std::string> optimizers{"sgdm", "adamw", "lion"};
  int rounds = 15;
};

// Calls `done` with each row as its group of cases is finished, and `begin` with a line about what comes next.
void run_step_grid(const StepGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const StepRow&)>& done);

}  // namespace cautious::bench
