#include "cli/replay_trace.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <cautious/detail/field.h>
#include <cautious/error.h>

#include "base/text.h"

namespace cautious::cli {
namespace {

using Shape = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", path.string(), what));
}

Element element_of_type(const std::filesystem::path& path, const base::TensorInfo& tensor) {
  for (const Element element : {Element::f64, Element::f32, Element::bf16}) {
    if (tensor.type == type_of(element)) return element;
  }
  refuse(path, fmt::format("tensor '{}' is {}; types: F64, F32, BF16", tensor.name, tensor.type));
}

void expect_shape(const std::filesystem::path& path, const base::TensorInfo& tensor, const Shape& shape, std::string_view why) {
  if (tensor.shape == shape) return;
  refuse(path,
         fmt::format("tensor '{}' has shape {}; expected {}, {}", tensor.name, text_of(tensor.shape), text_of(shape), why));
}

std::vector<double> numbers(const std::filesystem::path& path, const base::Safetensors& file, const base::TensorInfo& tensor,
                            std::int64_t steps, const Range& range) {
  if (tensor.type != "F64") refuse(path, fmt::format("tensor '{}' is {}; expected F64", tensor.name, tensor.type));
  expect_shape(path, tensor, {steps}, "one value per step of g");
  std::vector<double> values(static_cast<std::size_t>(steps));
  const std::span<const std::byte> bytes = file.data(tensor);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  const auto bad = std::find_if(values.begin(), values.end(), [&](double value) { return !range.contains(value); });
  if (bad != values.end()) {
    refuse(path, fmt::format("tensor '{}' is {} at step {}; valid: {}", tensor.name, *bad, bad - values.begin() + 1,
                             to_string(range)));
  }
  return values;
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
    refuse(path, fmt::format("tensor 'g' is {} beside x of {}; expected the same type, or F32 beside BF16", g.type, x.type));
  }
  trace.shape = x.shape;
  trace.size = static_cast<std::size_t>(x.elements());
  if (g.shape.empty()) refuse(path, "tensor 'g' is a scalar; expected [T, *shape of x]");
  trace.steps = g.shape.front();
  Shape expected = x.shape;
  expected.insert(expected.begin(), trace.steps);
  expect_shape(path, g, expected, fmt::format("T steps of x, which is {}", text_of(x.shape)));
  trace.x = trace.file.data(x);
  trace.g = trace.file.data(g);
  if (const base::TensorInfo* lr = trace.file.find("lr")) trace.lr = numbers(path, trace.file, *lr, trace.steps, kNonnegative);
  if (const base::TensorInfo* x0 = trace.file.find("x0")) {
    if (x0->type != x.type)
      refuse(path, fmt::format("tensor 'x0' is {} beside x of {}; expected the same type", x0->type, x.type));
    expect_shape(path, *x0, x.shape, "that of x");
    trace.x0 = trace.file.data(*x0);
  }
  return trace;
}

std::vector<double> read_densities(const std::filesystem::path& path, const Trace& trace) {
  const base::Safetensors file = base::Safetensors::read(path);
  if (trace.size == 0) return {};
  return numbers(path, file, file.require("ratio"), trace.steps, kFraction);
}

}  // namespace cautious::cli
