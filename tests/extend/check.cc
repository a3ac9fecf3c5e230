// One step of the added rule under the added decay, by name: in the core, and on both paths of the libtorch optimizer, against
// arithmetic by hand.
#include <cautious/cautious.h>

#include <cstdio>
#include <string>
#include <vector>

#ifdef WITH_TORCH
#include <ATen/ATen.h>
#include <cautious/torch.h>
#endif

namespace {

// u = sign(g) in the first step, lr is 0.25, weight decay 1. A coordinate decays if |x| is above the floor and u x >= 0:
//   2 - 0.25 (1 + 2) = 1.25,   2 - 0.25 (-1) = 2.25,   -2 - 0.25 (-1 - 2) = -1.25,
//   0.5 - 0.25 (1) = 0.25 with the floor at 1,   0.5 - 0.25 (1 + 0.5) = 0.125 with the floor at 0.25.
const std::vector<double> kX{2, 2, -2, 0.5}, kG{3, -3, -3, 3};

struct Case {
  std::string floor;
  std::vector<double> x;
  std::int64_t decayed;
};
const std::vector<Case> kCases{{"1", {1.25, 2.25, -1.25, 0.25}, 2}, {"0.25", {1.25, 2.25, -1.25, 0.125}, 3}};

int faults = 0;

void expect(const Case& expected, const std::vector<double>& x, std::int64_t decayed, const char* path) {
  const bool right = x == expected.x && decayed == expected.decayed;
  std::printf("%s, floor %s: x = %g %g %g %g, %d decayed: %s\n", path, expected.floor.c_str(), x[0], x[1], x[2], x[3],
              static_cast<int>(decayed), right ? "right" : "WRONG");
  faults += !right;
}

template <class T>
void step_in_core(const Case& expected, const cautious::Recipe& recipe, const char* path) {
  std::vector<T> x(kX.begin(), kX.end()), g(kG.begin(), kG.end());
  cautious::Optimizer optimizer(recipe);
  optimizer.add("x", {4}, x.data(), g.data());
  const std::int64_t decayed = optimizer.step({.lr = 0.25}).total.decayed;
  expect(expected, {x.begin(), x.end()}, decayed, path);
}

#ifdef WITH_TORCH
void step_in_torch(const Case& expected, const cautious::Recipe& recipe, at::ScalarType type, bool generic, const char* path) {
  const at::Tensor x = at::tensor(kX, type).set_requires_grad(true);
  x.mutable_grad() = at::tensor(kG, type);
  cautious::torch::Options options(0.25);
  options.recipe = recipe;
  cautious::torch::Optimizer optimizer({x}, options, {.generic = generic});
  optimizer.step();
  const at::Tensor moved = x.detach().to(at::kDouble);
  const auto* data = moved.data_ptr<double>();
  expect(expected, {data, data + 4}, optimizer.report().total.decayed, path);
}
#endif

}  // namespace

int main() {
  cautious::Recipe recipe = cautious::recipe("signum");
  cautious::set(recipe, "beta", "0.5");
  cautious::set(recipe, "decay", "floored");
  cautious::set(recipe, "weight_decay", "1");
  for (const Case& expected : kCases) {
    cautious::set(recipe, "floor", expected.floor);
    step_in_core<float>(expected, recipe, "core, f32");
    step_in_core<double>(expected, recipe, "core, f64");
#ifdef WITH_TORCH
    step_in_torch(expected, recipe, at::kFloat, false, "libtorch, fused");
    step_in_torch(expected, recipe, at::kFloat, true, "libtorch, ATen, f32");
    step_in_torch(expected, recipe, at::kDouble, true, "libtorch, ATen, f64");
#endif
  }
  return faults;
}
