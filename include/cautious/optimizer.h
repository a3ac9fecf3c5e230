// Optimizer over raw buffers: add tensors, then step. One pass over memory per step; bits depend neither on threads nor on the
// instruction set (but for muon and nuclear, whose matrix products are the BLAS's).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cautious/element.h>
#include <cautious/recipe.h>
#include <cautious/report.h>
#include <cautious/routing.h>

namespace cautious {

enum class Nonfinite { propagate, skip, error };
enum class Norms { off, on };
enum class Isa { best, portable, avx2 };

constexpr auto names_of(Nonfinite) { return std::array<std::string_view, 3>{"propagate", "skip", "error"}; }
constexpr auto names_of(Norms) { return std::array<std::string_view, 2>{"off", "on"}; }
constexpr auto names_of(Isa) { return std::array<std::string_view, 3>{"best", "portable", "avx2"}; }

// Runs body(0) ... body(count - 1) in any order on any threads and returns when all are done.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

struct Options {
  Element moments = Element::f32;         // or bf16; f64 parameters always have f64 moments
  Rounding rounding = Rounding::nearest;  // of bf16 parameters
  Nonfinite nonfinite = Nonfinite::propagate;
  Norms norms = Norms::on;        // sums of the step report; counts are always there
  double grad_clip = 0;           // global gradient norm at most this; 0 is off
  double update_rms_clip = 0;     // RMS of u per tensor at most this; 0 is off
  std::uint64_t seed = 0;         // of the random decay and stochastic rounding
  int threads = 0;                // 0: OpenMP's default
  ParallelFor parallel_for = {};  // instead of OpenMP
  Isa isa = Isa::best;            // the environment variable CAUTIOUS_ISA overrides best
};

// A caller's tensor. x and g stay the caller's and must outlive the next step; a null g leaves the tensor out of a step.
struct Parameter {
  std::string name = {};  // unique
  std::vector<std::int64_t> shape = {};
  Element element = Element::f32;   // of x
  Element gradient = Element::f32;  // of g: x's, or f32 beside bf16
  void* x = nullptr;
  const void* g = nullptr;
};

struct StepInput {
  double lr = 0;
  double lr_max = 0;        // peak of the schedule; needed by the couplings corrected and independent
  double decay_factor = 1;  // of a weight-decay schedule
};

// A piece of a tensor's state: "m", "v", "low" (split rounding) or "x0" (anchor).
struct StateTensor {
  std::string name;
  std::string type;  // "F32", "F64", "BF16", "I16"
  void* data;
};

class Optimizer {
 public:
  explicit Optimizer(const Recipe& recipe, Options options = {});
  explicit Optimizer(Routing routing, Options options = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  // Returns the tensor's index. The starting value becomes the anchor where the decay has one.
  std::size_t add(Parameter parameter);
  template <class T>
  std::size_t add(std::string name, std::vector<std::int64_t> shape, T* x, const T* g) {
    return add({std::move(name), std::move(shape), element_of<T>(), element_of<T>(), x, g});
  }

  // Points a tensor to other buffers of the same shape and types, as when gradients are allocated anew.
  void bind(std::size_t tensor, void* x, const void* g);
  // Replaces the anchor; x0 has the shape and element type of x and is copied.
  void set_anchor(std::size_t tensor, const void* x0);
  // Density of the random decay from the next step on.
  void set_density(std::size_t tensor, double density);

  // One step of every tensor that has a gradient. Throws before anything has changed.
  const StepReport& step(const StepInput& input);

  std::size_t size() const;                         // number of tensors
  std::int64_t steps_of(std::size_t tensor) const;  // t of the bias corrections
  const Group& group_of(std::size_t tensor) const;
  std::vector<StateTensor> state(std::size_t tensor) const;
  // For a program that keeps the state in a format of its own: sets t, after it has written to what state() points to.
  void set_steps(std::size_t tensor, std::int64_t t);

  // State as one safetensors file. load() checks names, shapes, types and recipes first and changes nothing unless all fit;
  // continuing is then bitwise the same as never having stopped.
  void save(const std::filesystem::path& path) const;
  void load(const std::filesystem::path& path);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cautious
