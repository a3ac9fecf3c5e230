// Rotary positions: their speeds, and the rotation in ATen operations.
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "model/ops/ops.h"

namespace cautious::model::ops {
namespace {

double slowed(double speed, const Rope& rope) {
  if (rope.scaling == RopeScaling::none) return speed;
  if (rope.scaling == RopeScaling::linear) return speed / rope.factor;
  const double turns = rope.original * speed / (2 * std::numbers::pi);
  if (turns > rope.high) return speed;
  if (turns < rope.low) return speed / rope.factor;
  const double kept = (turns - rope.low) / (rope.high - rope.low);
  return (1 - kept) * speed / rope.factor + kept * speed;
}

}  // namespace

std::vector<double> rope_speeds(const Rope& rope, std::int64_t head_size) {
  std::vector<double> speeds;
  for (std::int64_t i = 0; i < head_size / 2; ++i) {
    speeds.push_back(slowed(std::pow(rope.base, static_cast<double>(i) * (-2.0 / static_cast<double>(head_size))), rope));
  }
  return speeds;
}

at::Tensor rope(const at::Tensor& x, std::int64_t head_size, const Rope& rope, std::int64_t first) {
  const at::TensorOptions options(at::kDouble);  // in memory: not every device has doubles
  const at::Tensor speeds = at::tensor(rope_speeds(rope, head_size), options);
  const at::Tensor angle = at::arange(first, first + x.size(1), options).unsqueeze(1) * speeds;
  const auto on_device = [&](const at::Tensor& table) { return table.to(x.options().requires_grad(false)).unsqueeze(1); };
  const at::Tensor cosine = on_device(angle.cos()), sine = on_device(angle.sin());
  const at::Tensor heads = x.unflatten(-1, {x.size(-1) / head_size, head_size});
  const at::Tensor x1 = heads.narrow(-1, 0, head_size / 2), x2 = heads.narrow(-1, head_size / 2, head_size / 2);
  return at::cat({x1 * cosine - x2 * sine, x2 * cosine + x1 * sine}, -1).flatten(2);
}

}  // namespace cautious::model::ops
