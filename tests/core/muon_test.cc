// Muon and Lion-K's nuclear inside the optimizer: momentum, scale, shapes and blocks, tensors that come and go, and that a step
// allocates nothing. product_test compares their numbers with the oracle.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include "fixture.h"
#include "matrix_fixture.h"

namespace muon_test {
std::atomic<std::int64_t> allocations = 0;
void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  ++allocations;
  if (void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment)) return memory;
  throw std::bad_alloc();
}
}  // namespace muon_test

// All forms, since sanitizers bring their own. Not inline: the compiler would see a mismatch with the operator it knows.
void* operator new(std::size_t bytes) { return muon_test::counted(bytes); }
void* operator new[](std::size_t bytes) { return muon_test::counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return muon_test::counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return muon_test::counted(bytes, std::max(static_cast<std::size_t>(alignment), alignof(std::max_align_t)));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace muon_test {

using namespace matrices;

std::vector<double> moment(const Optimizer& optimizer, std::size_t n) {
  const auto* m = static_cast<const double*>(optimizer.state(0).at(0).data);
  return {m, m + n};
}

TEST(Muon, MomentumIsASumAndTheDirectionItsFactor) {
  for (const bool ahead : {false, true}) {
    for (const char* scale : {"none", "jordan", "rms"}) {
      const Recipe recipe = muon("none", {{"nesterov", ahead ? "on" : "off"}, {"scale", scale}, {"beta", "0.8"}});
      std::vector<Tensor<double>> one{tensor("w", {9, 4}, 3)};
      Optimizer optimizer(recipe, alone());
      add(optimizer, one);
      std::vector<double> m(36);
      for (std::size_t t = 0; t < kSteps; ++t) {
        std::vector<double> u(36), x = one[0].x;
        for (std::size_t i = 0; i < 36; ++i) {
          m[i] = 0.8 * m[i] + one[0].g[t][i];
          u[i] = ahead ? 0.8 * m[i] + one[0].g[t][i] : m[i];
        }
        cautious::polar(std::span(u), 9, 4, std::get<cautious::Muon>(recipe.rule).polar);
        step(optimizer, one, t);
        EXPECT_LE(apart(moment(optimizer, 36), m), 1e-14);
        for (std::size_t i = 0; i < 36; ++i) x[i] -= fixture::rates(t).lr * u[i];
        EXPECT_LE(apart(one[0].x, x), 1e-13);
      }
    }
  }
}

// The scale is in u, so what decays, and by how much, is the same under every one.
TEST(Muon, ScaleDoesNotReachTheDecay) {
  const std::vector<Tensor<double>> start{tensor("w", {12, 3}, 4)};
  const auto first_step = [&](const char* scale, const char* decay, std::vector<double>& x) {
    std::vector<Tensor<double>> tensors = start;
    Optimizer optimizer(muon(decay, {{"scale", scale}}), alone());
    add(optimizer, tensors);
    const cautious::Tally total = step(optimizer, tensors, 0).total;
    x = tensors[0].x;
    return total;
  };
  for (const char* decay : {"decoupled", "cautious"}) {
    std::vector<double> x, bare, plain;
    const cautious::Tally none = first_step("none", decay, plain);
    first_step("none", "none", bare);
    for (std::size_t i = 0; i < bare.size(); ++i) plain[i] = bare[i] - plain[i];  // what decay took
    for (const auto& [scale, factor] : {std::pair{"jordan", 2.0}, {"rms", 0.2 * std::sqrt(12.0)}}) {
      const cautious::Tally scaled = first_step(scale, decay, x);
      EXPECT_EQ(scaled.decayed, none.decayed);
      EXPECT_EQ(scaled.budget, none.budget);
      EXPECT_NEAR(scaled.rms_u(), factor * none.rms_u(), 1e-12);
      first_step(scale, "none", bare);
      for (std::size_t i = 0; i < bare.size(); ++i) x[i] = bare[i] - x[i];
      EXPECT_LE(apart(x, plain), 1e-15) << scale;
    }
    EXPECT_GT(none.budget, 0);
  }
}

TEST(Muon, NuclearWithEqualBetasHasItsDirection) {
  Recipe nuclear = fixture::make({"lion-k", "nuclear"}, "cautious");
  for (const auto& [field, value] : {std::pair{"beta1", "0.95"}, {"beta2", "0.95"}, {"scale", "rms"}})
    set(nuclear, field, value);
  const std::vector<Tensor<double>> start{tensor("a", {5, 8}, 1), tensor("b", {8, 5}, 2)};
  EXPECT_LE(apart(joined(stepped(nuclear, start)), joined(stepped(muon("cautious", {{"scale", "rms"}}), start))), 1e-13);
}

// The factor has no scale of its own: neither tiny nor huge gradients change the first direction.
template <class T>
void check_gradient_sizes(const Recipe& recipe, std::initializer_list<int> exponents, double near) {
  const Tensor<T> plain = tensor<T>("w", {6, 9}, 5);
  const auto direction = [&](int exponent) {
    std::vector<Tensor<T>> one{plain};
    std::fill(one[0].x.begin(), one[0].x.end(), T(0));
    for (T& g : one[0].g[0]) g = std::ldexp(g, exponent);
    Optimizer optimizer(recipe, alone());
    add(optimizer, one);
    step(optimizer, one, 0);
    for (T& x : one[0].x) x /= static_cast<T>(-fixture::rates(0).lr);
    return one[0].x;
  };
  for (const int exponent : exponents) EXPECT_LE(apart(direction(exponent), direction(0)), near) << "2^" << exponent;
}

TEST(Muon, SizeOfTheGradientDoesNotMatter) {
  for (const char* schedule : {"paper", "turbo", "exact", "polar-express-8"}) {
    check_gradient_sizes<float>(muon("none", {{"schedule", schedule}}), {-100, -60, -20, 20, 60, 100}, 2e-6);
    check_gradient_sizes<double>(muon("none", {{"schedule", schedule}}), {-1000, -500, 500, 1000}, 1e-14);
  }
}

TEST(Shapes, BlocksAreTensorsOfTheirOwn) {
  const auto check = [](const Shape& whole, const char* blocks, const Shape& part) {
    const Tensor<double> start = tensor("w", whole, 6);
    const auto apart_from_whole = apart(joined(stepped(muon("cautious", {{"blocks", blocks}, {"scale", "rms"}}), {start})),
                                        joined(stepped(muon("cautious", {{"scale", "rms"}}), cut(start, part))));
    EXPECT_LE(apart_from_whole, 1e-13) << testing::PrintToString(whole);
  };
  check({18, 6}, "3", {6, 6});             // fused QKV
  check({4, 5, 7}, "4", {5, 7});           // experts
  check({4, 5, 7}, "2", {2, 35});          // blocks of more than one keep their first side
  check({6, 3, 2, 2}, "2", {3, 3, 2, 2});  // grouped convolution
  check({3, 8}, "3", {1, 8});              // rows
}

TEST(Shapes, AConvolutionIsItsFlatMatrix) {
  Tensor<double> kernel = tensor("w", {4, 3, 2, 5}, 7), flat = kernel;
  flat.shape = {4, 30};
  EXPECT_EQ(joined(stepped(muon(), {kernel})), joined(stepped(muon(), {flat})));
}

// The factor of a row or a column is the vector divided by its length.
TEST(Shapes, RowsAndColumns) {
  for (const Shape& shape : {Shape{1, 9}, Shape{9, 1}}) {
    for (const char* schedule : {"exact", "polar-express-8"}) {
      std::vector<Tensor<double>> one{tensor("w", shape, 8)};
      std::vector<double> expected = one[0].x;
      const std::vector<double>& g = one[0].g[0];
      const double length = std::sqrt(std::inner_product(g.begin(), g.end(), g.begin(), 0.0));
      for (std::size_t i = 0; i < 9; ++i) expected[i] -= fixture::rates(0).lr * g[i] / length;
      Optimizer optimizer(muon("none", {{"schedule", schedule}}), alone());
      add(optimizer, one);
      step(optimizer, one, 0);
      EXPECT_LE(apart(one[0].x, expected), std::string(schedule) == "exact" ? 1e-14 : 1e-5) << schedule;
    }
  }
}

TEST(Shapes, EmptyTensors) {
  const Tensor<double> full = tensor("full", {3, 4}, 9);
  for (const char* schedule : {"paper", "turbo", "exact"}) {
    const Recipe recipe = muon("cautious", {{"schedule", schedule}});
    const auto solo = stepped(recipe, {full});
    for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{0, 0}, Shape{0, 2, 3}, Shape{2, 3, 0}}) {
      const Tensor<double> empty = tensor("empty", shape, 1);
      stepped(recipe, {empty});
      EXPECT_EQ(stepped(recipe, {empty, full})[1].x, solo[0].x);
    }
  }
}

TEST(Shapes, WhatIsNoMatrixIsRefused) {
  Optimizer optimizer(muon("cautious", {{"blocks", "2"}}));
  std::vector<double> x(30);
  const auto refused = [&](const Shape& shape, const char* words) {
    try {
      optimizer.add<double>("layer.bias", shape, x.data(), nullptr);
      ADD_FAILURE() << "no error: " << words;
    } catch (const cautious::Error& error) {
      EXPECT_EQ(error.fault(), cautious::Fault::usage);
      EXPECT_STREQ(error.what(), words);
    }
  };
  const std::string rest = " is no matrix; route vectors to another recipe, as matrices_and_rest() does";
  refused({7}, ("tensor 'layer.bias' of shape [7]" + rest).c_str());
  refused({}, ("tensor 'layer.bias' of shape []" + rest).c_str());
  refused({3, 5}, "tensor 'layer.bias' of shape [3, 5] cannot be cut into 2 blocks along its first side");
  EXPECT_EQ(optimizer.size(), 0u);
  EXPECT_EQ(optimizer.add<double>("layer.bias", {2, 5}, x.data(), nullptr), 0u) << "the name is still free";
}

TEST(Tensors, LeftOutAndBackAndAddedLater) {
  const Tensor<double> a = tensor("a", {6, 5}, 1), b = tensor("b", {4, 9}, 2);
  Tensor<double> pausing = b;
  pausing.g[1].clear();
  const auto both = stepped(muon(), {a, pausing});
  EXPECT_EQ(both[0].x, stepped(muon(), {a})[0].x);
  EXPECT_EQ(both[1].x, stepped(muon(), {pausing})[0].x);
  EXPECT_NE(both[1].x, stepped(muon(), {b})[0].x);

  std::vector<Tensor<double>> grown{a}, late{b};
  late[0].g[0].clear();
  Optimizer optimizer(muon(), alone());
  add(optimizer, grown);
  step(optimizer, grown, 0);
  grown.reserve(2);
  grown.push_back(b);
  optimizer.add<double>("b", b.shape, grown[1].x.data(), nullptr);
  for (std::size_t t = 1; t < kSteps; ++t) step(optimizer, grown, t);
  EXPECT_EQ(grown[0].x, stepped(muon(), {a})[0].x);
  EXPECT_EQ(grown[1].x, stepped(muon(), late)[0].x);
}

TEST(Memory, StepsAfterTheFirstAllocateNothing) {
  for (const int threads : {1, 2}) {
    for (const char* decay : {"cautious", "layerwise"}) {
      const Recipe matrices = muon(decay, {{"schedule", "turbo"}});
      std::vector<Tensor<float>> tensors;
      for (const Shape& shape : {Shape{200, 150}, Shape{7, 30}, Shape{30, 7}, Shape{1, 8}, Shape{50}, Shape{0, 3}}) {
        tensors.push_back(tensor<float>("t" + std::to_string(tensors.size()), shape, 1));
      }
      Optimizer optimizer(cautious::matrices_and_rest(matrices, cautious::recipe("adamw")),
                          {.update_rms_clip = 0.5, .threads = threads, .parallel_for = {}});
      add(optimizer, tensors);
      const std::int64_t start = allocations;
      step(optimizer, tensors, 0);
      const std::int64_t before = allocations;
      EXPECT_GT(before - start, 0) << "the counter counts the library's allocations";
      step(optimizer, tensors, 1);
      step(optimizer, tensors, 2);
      EXPECT_EQ(allocations - before, 0) << threads << " threads, " << decay;
    }
  }
}

}  // namespace muon_test
