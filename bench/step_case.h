// One case of the step benchmark: an optimizer over its own buffers, ready to step, and the machine's limit for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/optimizer.h>

#include "bench/machine.h"

namespace cautious::bench {

// Memory for benchmarks: 64-byte aligned, at distances of our choosing. Buffers at equal distances of a power of two evict each
// other from the caches, so a benchmark that takes whatever malloc gives measures its luck.
enum class Spacing { staggered, aliased };  // aliased: starts exactly 2^28 bytes apart

// small: what malloc gives; huge: 2 MiB, asked for where the system gives them on request only (Linux's usual `madvise`).
enum class Pages { small, huge };
constexpr auto names_of(Pages) { return std::array<std::string_view, 2>{"small", "huge"}; }

class Buffers {
 public:
  // `count` buffers of `bytes` each; the first is staggered as if `before` others came before it.
  Buffers(std::size_t count, std::size_t bytes, Spacing spacing, Pages pages, std::size_t before = 0);
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
  Pages pages = Pages::small;  // of x and g, which are a caller's
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
  explicit Data(const StepCase& step_case);
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

// The physical limit of a case, over buffers of its own: pages of x and g as in the case; moments in huge pages, as whoever
// owns them can have.
class LimitRunner {
 public:
  explicit LimitRunner(const StepCase& step_case);
  void run() const { run_traffic(traffic_, threads_); }

 private:
  Buffers parameters_, moments_;
  Traffic traffic_;
  int threads_;
};

}  // namespace cautious::bench
