// Optimizer over raw buffers: add tensors, then step. One pass over memory per step; bits depend neither on threads nor on the
// instruction set (but for muon and nuclear, whose matrix products need a processor with fused multiply-add for that).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cautious/detail/field.h>
#include <cautious/recipe.h>

namespace cautious {

// Element type of a buffer.
enum class Element { f32, f64, bf16 };

constexpr auto names_of(Element) { return std::array<std::string_view, 3>{"f32", "f64", "bf16"}; }

// Storage only: the upper half of an f32. Arithmetic happens in f32.
struct Bf16 {
  std::uint16_t bits;
};

template <class T>
constexpr Element element_of() {
  constexpr bool single = std::is_same_v<T, float>, full = std::is_same_v<T, double>;
  static_assert(single || full || std::is_same_v<T, Bf16>, "a tensor has elements of float, double or cautious::Bf16");
  return single ? Element::f32 : full ? Element::f64 : Element::bf16;
}

constexpr std::size_t size_of(Element element) { return element == Element::f64 ? 8 : element == Element::f32 ? 4 : 2; }

// How the one rounding of a step into a bf16 parameter is done (docs/spec.md, "Rounding").
// nearest loses every change below 2^-9 of the weight; stochastic keeps it on average; split keeps it exactly by holding the
// f32 remainder in a second 16-bit array.
enum class Rounding { nearest, stochastic, split };

constexpr auto names_of(Rounding) { return std::array<std::string_view, 3>{"nearest", "stochastic", "split"}; }

enum class Nonfinite { propagate, skip, error };
enum class Norms { off, on };
enum class Isa { best, portable, avx2, avx512, neon };

constexpr auto names_of(Nonfinite) { return std::array<std::string_view, 3>{"propagate", "skip", "error"}; }
constexpr auto names_of(Norms) { return std::array<std::string_view, 2>{"off", "on"}; }
constexpr auto names_of(Isa) { return std::array<std::string_view, 5>{"best", "portable", "avx2", "avx512", "neon"}; }

// Runs body(0) ... body(count - 1) in any order on any threads and returns when all are done.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

// A rank's part of a tensor: coordinates from first to before last.
struct Slice {
  std::size_t first = 0, last = 0;
};

// Bytes that one rank has and every rank wants.
struct Piece {
  int owner;
  void* data;
  std::size_t bytes;
};

// Processes ("ranks") that share the steps and the state of one optimizer. Each has all tensors, but moves its slice of each
// and keeps the moments of that alone; x, the report and saved files are the same in every rank, with the bits of one process.
// Gradients are the sum over the ranks, needed in the rank's own slices only. All make the same calls in the same order.
struct Share {
  int rank = 0, ranks = 1;
  // Returns when the data of every piece is what its owner has there, or throws. Pieces are listed in the same order and have
  // the same sizes in every rank. Unless it is empty, `prepare(n)` is called before the data of the first n is read or written,
  // with n that grows up to all of them: the first may travel while the others are made.
  using Prepare = std::function<void(std::size_t)>;
  std::function<void(std::span<const Piece>, const Prepare&)> exchange = {};
};

struct Options {
  static constexpr std::array kMoments{Element::f32, Element::bf16};
  static constexpr Range kSeed{0, 0x1p64, false, true};
  static constexpr Range kThreads{0, 4096, false, false};

  Element moments = Element::f32;
  Rounding rounding = Rounding::nearest;
  Nonfinite nonfinite = Nonfinite::propagate;
  Norms norms = Norms::on;
  double grad_clip = 0;
  double update_rms_clip = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  ParallelFor parallel_for = {};  // instead of OpenMP; runs on all of its own threads
  Share share = {};
  Isa isa = Isa::best;

  // What must be equal for a saved state to continue bit by bit.
  static constexpr auto identity() {
    return std::tuple{
        Choice{"moments", &Options::moments, "type of the moments; those of f64 parameters are f64", kMoments},
        Choice{"rounding", &Options::rounding, "rounding of bf16 parameters"},
        Field{"seed", &Options::seed, kSeed, "seed of the decays random and shuffled, and of stochastic rounding"},
        Field{"grad_clip", &Options::grad_clip, kNonnegative, "clip the whole gradient to this norm; 0: off"},
        Field{"update_rms_clip", &Options::update_rms_clip, kNonnegative, "clip a tensor's direction u to this RMS; 0: off"}};
  }
  static constexpr auto fields() {
    return std::tuple_cat(
        identity(),
        std::tuple{Choice{"nonfinite", &Options::nonfinite, "what to do about a NaN or infinite gradient"},
                   Choice{"norms", &Options::norms, "sums of squares in the step report; counts are always there"},
                   Field{"threads", &Options::threads, kThreads,
                         "number of threads; 0: OpenMP's default; only the bits of muon and nuclear depend on it"},
                   Choice{"isa", &Options::isa, "instruction set; CAUTIOUS_ISA in the environment overrides best"}});
  }
};

// Fields by name, as of a Recipe (recipe.h).
std::vector<FieldInfo> fields(const Options& options);
void set(Options& options, std::string_view field, std::string_view value);
void check(const Options& options);

// A caller's tensor. x and g stay the caller's and must outlive the next step; a null g leaves the tensor out of a step.
struct Parameter {
  std::string name = {};  // unique
  std::vector<std::int64_t> shape = {};
  Element element = Element::f32;   // of x
  Element gradient = Element::f32;  // of g: x's, or f32 beside bf16
  void* x = nullptr;
  const void* g = nullptr;
  std::string group = {};  // of the routing, by name; empty: the first route that fits
};

struct StepInput {
  double lr = std::numeric_limits<double>::quiet_NaN();  // must be given
  double lr_max = 0;        // peak of the schedule; needed by the couplings corrected and independent
  double decay_factor = 1;  // of a weight-decay schedule
  // One more factor for the weight decay of each tensor, in the order they were added; empty: 1. Like the other numbers of a
  // step it is not part of the state.
  std::span<const double> tensor_factors = {};
};

// A piece of a tensor's state: "m", "v", "low" (split rounding) or "x0" (anchor). The first three are of this rank's slice.
struct StateTensor {
  std::string name;
  std::string type;  // "F32", "F64", "BF16", "I16"
  void* data;
  std::size_t bytes;
};

// What one step did, counted and summed in the same pass as the step; the same bits for any number of threads.
// Everything refers to the parameters before the step. Sums are zero when Options::norms is off.
struct Tally {
  std::int64_t count = 0;         // coordinates
  std::int64_t decayed = 0;       // coordinates that decayed
  std::int64_t active = 0;        // coordinates with u * x > 0, whatever the decay (x - x0 with an anchor)
  std::int64_t nonfinite = 0;     // NaN or infinite gradient entries
  double x2 = 0, g2 = 0, u2 = 0;  // sums of squares; g as given, before clipping
  double budget = 0;              // sum of |lr wd x| over decayed coordinates

  double ratio() const { return part(decayed); }        // NaN if empty
  double ratio_strict() const { return part(active); }  // the paper's r_t
  double rms_x() const;
  double rms_g() const;
  double rms_u() const;
  Tally& operator+=(const Tally& other) {
    count += other.count, decayed += other.decayed, active += other.active, nonfinite += other.nonfinite;
    x2 += other.x2, g2 += other.g2, u2 += other.u2, budget += other.budget;
    return *this;
  }

 private:
  double part(std::int64_t of) const { return static_cast<double>(of) / static_cast<double>(count); }
};

struct StepReport {
  std::int64_t step = 0;  // steps taken, this one included unless skipped
  bool skipped = false;   // a non-finite gradient under Nonfinite::skip
  double clip_scale = 1;  // what global-norm clipping multiplied the gradients by
  Tally total;
  std::vector<Tally> tensors;  // in the order they were added; zero counts for a tensor without gradient
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
  // The same with buffers that know their size, which must be the shape's: spans, vectors, arrays. An empty g: no gradient yet.
  std::size_t add(std::string name, std::vector<std::int64_t> shape, std::span<float> x, std::span<const float> g);
  std::size_t add(std::string name, std::vector<std::int64_t> shape, std::span<double> x, std::span<const double> g);
  std::size_t add(std::string name, std::vector<std::int64_t> shape, std::span<Bf16> x, std::span<const Bf16> g);

  // Points a tensor to other buffers of the same shape and types, as when gradients are allocated anew.
  void bind(std::size_t tensor, void* x, const void* g);
  // Replaces the anchor; x0 has the shape and element type of x and is copied.
  void set_anchor(std::size_t tensor, const void* x0);
  // Density of the random decay from the next step on.
  void set_density(std::size_t tensor, double density);
  // Fields of a group's recipe, its multiplier and its switch from the next step on, for schedules of anything. The rule, the
  // decay and the switch stay what they are, since tensors keep what those need, and so does a shaping. Densities are the
  // recipe's again.
  void set_group(std::size_t group, const Recipe& recipe, double lr_multiplier);

  // One step of every tensor that has a gradient. Throws before anything has changed.
  const StepReport& step(const StepInput& input);

  std::size_t size() const;                         // number of tensors
  std::int64_t steps_of(std::size_t tensor) const;  // t of the bias corrections
  const Group& group_of(std::size_t tensor) const;
  std::span<const Slice> slices(std::size_t tensor) const;  // of each rank; may be empty
  std::vector<StateTensor> state(std::size_t tensor) const;
  // For a program that keeps the state in a format of its own: sets t, after it has written to what state() points to. The
  // report counts on from the largest t.
  void set_steps(std::size_t tensor, std::int64_t t);

  // State as one safetensors file, the same for any number of ranks; the first writes and reads it. load() checks names,
  // shapes, types and recipes first and changes nothing unless all fit; continuing is then bitwise the same as never having
  // stopped.
  void save(const std::filesystem::path& path) const;
  void load(const std::filesystem::path& path);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cautious
