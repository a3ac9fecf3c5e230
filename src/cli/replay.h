// Replay: the optimizer run over recorded gradients, a pure function of trace and plan; and the recipe of its command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/optimizer.h>
#include <cautious/schedule.h>

#include "base/safetensors.h"

namespace CLI {
class App;
}

namespace cautious::cli {

// A recorded run: starting point, gradients and, if they were recorded, learning rates and an anchor.
struct Trace {
  base::Safetensors file;                 // owns the bytes below
  std::vector<std::int64_t> shape;        // of x
  std::size_t size = 0;                   // elements of x
  std::int64_t steps = 0;                 // T
  Element element = Element::f32;         // of x and x0
  Element gradient = Element::f32;        // of g: x's, or f32 for a bf16 x
  std::span<const std::byte> x;           // [*shape]
  std::span<const std::byte> g;           // [T, *shape]
  std::span<const std::byte> x0;          // [*shape]; empty if there is none
  std::optional<std::vector<double>> lr;  // [T]
};

// Everything is checked: types, shapes, and that learning rates are finite and not negative.
Trace read_trace(const std::filesystem::path& path);

// Densities of the random decay, one per step: the tensor `ratio` of an earlier replay. An empty x may have any.
std::vector<double> read_densities(const std::filesystem::path& path, const Trace& trace);

// "F64", "F32" or "BF16".
std::string type_of(Element element);
std::string text_of(std::span<const std::int64_t> shape);

enum class Keep { last, trajectory };

struct ReplayPlan {
  Recipe recipe;
  Options options;
  std::vector<double> lr;  // [T]
  double lr_max = 0;
  DecaySchedule wd_schedule;
  std::vector<double> density;  // [T] of the random decay; empty leaves the recipe's
  Keep keep = Keep::last;
};

struct KeptState {
  std::string name, type;       // "m", "F32"
  std::vector<std::byte> data;  // [*shape of x]
};

struct ReplayResult {
  std::vector<std::byte> x;
  std::vector<KeptState> state;             // moments and, for split rounding, low
  std::vector<double> ratio, ratio_strict;  // [T]; NaN for a skipped step or an empty x
  std::vector<std::byte> trajectory;        // [T, *shape]: x after each step, if kept
  std::int64_t nonfinite = 0;               // gradient entries
  std::int64_t first_nonfinite = 0;         // the first step that has one
  std::int64_t skipped = 0;                 // steps
};

// `between` is called before every step and may throw.
ReplayResult replay(const Trace& trace, const ReplayPlan& plan, const std::function<void()>& between);

// A recipe on the command line: --optimizer, --decay and the fields of every rule and decay by their own names. All of it comes
// from recipe_names(), decay_names() and fields(), so a new rule or decay is here without a line of code.
class RecipeOptions {
 public:
  // The options write into this object, so it must outlive the parse.
  void add_to(CLI::App& app);

  const std::string& optimizer() const { return optimizer_; }
  bool given(std::string_view field) const { return given_.contains(field); }

  // The recipe as the command line says. A field that it does not have is an Error naming those it has; so is a weight_decay
  // for a recipe without decay.
  Recipe recipe() const;

 private:
  std::string optimizer_;
  std::map<std::string, std::string, std::less<>> given_;  // field -> text
};

}  // namespace cautious::cli
