// Shared by the tests of matrix rules: tensors with shapes and gradients of their own, through an optimizer.
#pragma once

#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "fixture.h"

namespace matrices {

using cautious::Optimizer;
using cautious::Options;
using cautious::Recipe;
using cautious::Routing;
using Shape = std::vector<std::int64_t>;

// Threads may share a matrix or not, depending on what else there is; on one thread the bits do not depend on that.
inline Options alone() {
  Options options;
  options.threads = 1;
  return options;
}

inline constexpr std::size_t kSteps = 3;

inline std::size_t entries(const Shape& shape) {
  return static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

template <class T>
struct Tensor {
  std::string name;
  Shape shape;
  std::vector<T> x;
  std::vector<std::vector<T>> g;  // per step; empty: none in that step
};

template <class T = double>
Tensor<T> tensor(const std::string& name, const Shape& shape, std::uint64_t seed) {
  const std::size_t n = entries(shape);
  return {name, shape, fixture::weights<T>(n, seed), fixture::gradients<T>(kSteps, n, seed)};
}

// Cut along the first side into tensors of the given shape.
template <class T>
std::vector<Tensor<T>> cut(const Tensor<T>& whole, const Shape& shape) {
  std::vector<Tensor<T>> parts;
  const auto n = static_cast<std::ptrdiff_t>(entries(shape));
  for (auto begin = whole.x.begin(); begin != whole.x.end(); begin += n) {
    parts.push_back({whole.name + std::to_string(parts.size()), shape, {begin, begin + n}, {}});
    const auto from = begin - whole.x.begin();
    for (const auto& g : whole.g) parts.back().g.emplace_back(g.begin() + from, g.begin() + from + n);
  }
  return parts;
}

template <class T>
std::vector<T> joined(const std::vector<Tensor<T>>& parts) {
  std::vector<T> all;
  for (const auto& part : parts) all.insert(all.end(), part.x.begin(), part.x.end());
  return all;
}

template <class T>
void add(Optimizer& optimizer, std::vector<Tensor<T>>& tensors) {
  for (auto& each : tensors) optimizer.add<T>(each.name, each.shape, each.x.data(), nullptr);
}

template <class T>
const cautious::StepReport& step(Optimizer& optimizer, std::vector<Tensor<T>>& tensors, std::size_t t) {
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    optimizer.bind(k, tensors[k].x.data(), tensors[k].g[t].empty() ? nullptr : tensors[k].g[t].data());
  }
  return optimizer.step(fixture::rates(t));
}

// The tensors after all steps.
template <class T = double>
std::vector<Tensor<T>> stepped(const Routing& routing, std::vector<Tensor<T>> tensors, const Options& options = alone()) {
  Optimizer optimizer(routing, options);
  add(optimizer, tensors);
  for (std::size_t t = 0; t < kSteps; ++t) step(optimizer, tensors, t);
  return tensors;
}
template <class T = double>
std::vector<Tensor<T>> stepped(const Recipe& recipe, std::vector<Tensor<T>> tensors, const Options& options = alone()) {
  return stepped(cautious::everything(recipe), std::move(tensors), options);
}

inline Recipe muon(const std::string& decay = "cautious",
                   std::initializer_list<std::pair<const char*, const char*>> fields = {}) {
  Recipe made = fixture::make({"muon", ""}, decay);
  for (const auto& [field, value] : fields) cautious::set(made, field, value);
  return made;
}

template <class T>
double apart(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double far = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(far)) return far;
    most = std::max(most, far);
  }
  return most;
}

}  // namespace matrices
