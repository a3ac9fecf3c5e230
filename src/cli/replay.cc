#include "cli/replay.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <cautious/detail/field.h>
#include <cautious/error.h>

#include "base/text.h"

namespace cautious::cli {
namespace {

using Shape = std::vector<std::int64_t>;

[[noreturn]] void refuse_trace(const std::filesystem::path& path, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", path.string(), what));
}

Element element_of_type(const std::filesystem::path& path, const base::TensorInfo& tensor) {
  for (const Element element : {Element::f64, Element::f32, Element::bf16}) {
    if (tensor.type == type_of(element)) return element;
  }
  refuse_trace(path, fmt::format("tensor '{}' is {}; types: F64, F32, BF16", tensor.name, tensor.type));
}

void expect_shape(const std::filesystem::path& path, const base::TensorInfo& tensor, const Shape& shape, std::string_view why) {
  if (tensor.shape == shape) return;
  refuse_trace(
      path, fmt::format("tensor '{}' has shape {}; expected {}, {}", tensor.name, text_of(tensor.shape), text_of(shape), why));
}

std::vector<double> numbers(const std::filesystem::path& path, const base::Safetensors& file, const base::TensorInfo& tensor,
                            std::int64_t steps, const Range& range) {
  if (tensor.type != "F64") refuse_trace(path, fmt::format("tensor '{}' is {}; expected F64", tensor.name, tensor.type));
  expect_shape(path, tensor, {steps}, "one value per step of g");
  std::vector<double> values(static_cast<std::size_t>(steps));
  const std::span<const std::byte> bytes = file.data(tensor);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  const auto bad = std::find_if(values.begin(), values.end(), [&](double value) { return !range.contains(value); });
  if (bad != values.end()) {
    refuse_trace(path, fmt::format("tensor '{}' is {} at step {}; valid: {}", tensor.name, *bad, bad - values.begin() + 1,
                                   to_string(range)));
  }
  return values;
}

// A copy with the alignment of any element, never null: traces may place a tensor at any byte.
std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  std::vector<std::byte> result;
  result.reserve(std::max<std::size_t>(bytes.size(), 1));
  result.assign(bytes.begin(), bytes.end());
  return result;
}

std::vector<KeptState> kept_state(const Optimizer& optimizer, const Trace& trace) {
  std::vector<KeptState> kept;
  for (const StateTensor& state : optimizer.state(0)) {
    if (state.name == "x0") continue;
    const auto* first = static_cast<const std::byte*>(state.data);
    kept.push_back({state.name, state.type, {first, first + trace.size * (base::bits_of_type(state.type) / 8)}});
  }
  return kept;
}

}  // namespace

std::string type_of(Element element) { return element == Element::f64 ? "F64" : element == Element::f32 ? "F32" : "BF16"; }

std::string text_of(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Trace read_trace(const std::filesystem::path& path) {
  Trace trace;
  trace.file = base::Safetensors::read(path);
  const base::TensorInfo& x = trace.file.require("x");
  const base::TensorInfo& g = trace.file.require("g");
  trace.element = element_of_type(path, x);
  trace.gradient = element_of_type(path, g);
  if (trace.gradient != trace.element && !(trace.element == Element::bf16 && trace.gradient == Element::f32)) {
    refuse_trace(path,
                 fmt::format("tensor 'g' is {}, but x is {}; expected the same type, or F32 for a BF16 x", g.type, x.type));
  }
  trace.shape = x.shape;
  trace.size = static_cast<std::size_t>(x.elements());
  if (g.shape.empty()) refuse_trace(path, "tensor 'g' is a scalar; expected [T, *shape of x]");
  trace.steps = g.shape.front();
  Shape expected = x.shape;
  expected.insert(expected.begin(), trace.steps);
  expect_shape(path, g, expected, fmt::format("T steps of x, which is {}", text_of(x.shape)));
  trace.x = trace.file.data(x);
  trace.g = trace.file.data(g);
  if (const base::TensorInfo* lr = trace.file.find("lr")) trace.lr = numbers(path, trace.file, *lr, trace.steps, kNonnegative);
  if (const base::TensorInfo* x0 = trace.file.find("x0")) {
    if (x0->type != x.type)
      refuse_trace(path, fmt::format("tensor 'x0' is {}, but x is {}; expected the same type", x0->type, x.type));
    expect_shape(path, *x0, x.shape, "the shape of x");
    trace.x0 = trace.file.data(*x0);
  }
  return trace;
}

std::vector<double> read_densities(const std::filesystem::path& path, const Trace& trace) {
  const base::Safetensors file = base::Safetensors::read(path);
  if (trace.size == 0) return {};
  return numbers(path, file, file.require("ratio"), trace.steps, kFraction);
}

ReplayResult replay(const Trace& trace, const ReplayPlan& plan, const std::function<void()>& between) {
  ReplayResult result;
  result.x = copy(trace.x);
  const std::size_t step_bytes = trace.size * size_of(trace.gradient);
  std::vector<std::byte> g = copy(trace.g.first(std::min(step_bytes, trace.g.size())));

  Optimizer optimizer(plan.recipe, plan.options);
  optimizer.add({"x", trace.shape, trace.element, trace.gradient, result.x.data(), g.data()});
  if (has_anchor(plan.recipe.decay) && !trace.x0.empty()) optimizer.set_anchor(0, copy(trace.x0).data());

  if (plan.keep == Keep::trajectory) result.trajectory.reserve(static_cast<std::size_t>(trace.steps) * result.x.size());
  for (std::int64_t t = 1; t <= trace.steps; ++t) {
    between();
    const auto at = static_cast<std::size_t>(t - 1);
    if (step_bytes > 0) std::memcpy(g.data(), trace.g.data() + at * step_bytes, step_bytes);
    if (!plan.density.empty()) optimizer.set_density(0, plan.density[at]);
    const StepReport& report = optimizer.step({plan.lr[at], plan.lr_max, decay_factor_at(plan.wd_schedule, t)});
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    result.ratio.push_back(report.skipped ? kNone : report.total.ratio());
    result.ratio_strict.push_back(report.skipped ? kNone : report.total.ratio_strict());
    if (report.total.nonfinite > 0 && result.nonfinite == 0) result.first_nonfinite = t;
    result.nonfinite += report.total.nonfinite;
    result.skipped += report.skipped;
    if (plan.keep == Keep::trajectory) result.trajectory.insert(result.trajectory.end(), result.x.begin(), result.x.end());
  }
  result.state = kept_state(optimizer, trace);
  return result;
}

}  // namespace cautious::cli
