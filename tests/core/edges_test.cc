// Denormals and the caller's floating-point mode, non-finite gradients, missing gradients.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "fixture.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace edges_test {

using cautious::Nonfinite;
using cautious::Options;
using fixture::make;
using fixture::run;

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

cautious::StepInput unit(std::size_t) { return {.lr = 1}; }

template <class T>
class Denormals : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Denormals, Types);

TYPED_TEST(Denormals, AreZeroInsideAStep) {
  using T = TypeParam;
  const T least = std::numeric_limits<T>::min(), tiny = least / 4, large = T(1) / least / 8;
  for (const cautious::Isa isa : fixture::isas()) {
    Options options;
    options.isa = isa;
    const auto once = [&](const std::string& decay, T x, T g, double lr) {
      return run<T>(make({"sgd", ""}, decay, 0.5), {x}, {{g}}, options,
                    [&](std::size_t) { return cautious::StepInput{.lr = lr}; });
    };
    EXPECT_EQ(once("none", tiny, T(0), 1).x[0], 0) << "a denormal parameter";
    EXPECT_EQ(once("none", T(1), tiny, static_cast<double>(large)).x[0], 1) << "a denormal gradient";
    EXPECT_EQ(once("none", least * T(1.5), least, 1).x[0], 0) << "a denormal result";
    EXPECT_EQ(once("none", least * 4, least, 1).x[0], least * 3) << "a normal result";
    const auto against = once("cautious", T(-1), tiny, 0.5), along = once("cautious", T(-1), -tiny, 0.5);
    for (const auto& result : {against, along}) {
      EXPECT_EQ(result.x[0], T(-0.75)) << "a denormal direction is zero, and zero decays";
      EXPECT_EQ(result.reports[0].total.decayed, 1);
      EXPECT_EQ(result.reports[0].total.active, 0);
    }
  }
}

TYPED_TEST(Denormals, MomentsFlushOnEveryThread) {
  using T = TypeParam;
  constexpr std::size_t n = 200000;
  Options options;
  options.threads = 2;
  const std::vector<std::vector<T>> g{std::vector<T>(n, std::numeric_limits<T>::min() * 4), std::vector<T>(n, 0)};
  const auto result = run(make({"sgdm", ""}, "none"), std::vector<T>(n, 1), g, options);
  ASSERT_EQ(result.state.size(), 1u);
  EXPECT_EQ(result.state[0].second, std::vector<unsigned char>(n * sizeof(T), 0)) << "(1 - 0.9) * 4 * least is below least";
}

#if defined(__x86_64__)
constexpr unsigned kControl = ~0x3fu;  // all but the sticky exception flags
constexpr unsigned kFlush = 0x8040;

// Sets the thread's mode and puts the old one back.
class Mode {
 public:
  explicit Mode(unsigned bits) : old_(_mm_getcsr()) { _mm_setcsr((old_ & ~kFlush) | bits); }
  ~Mode() { _mm_setcsr(old_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  unsigned old_;
};

TEST(FloatingPointMode, IsTheCallersAfterAStepAndDoesNotChangeBits) {
  const auto x = fixture::weights<float>(3000, 1);
  auto g = fixture::gradients<float>(2, 3000, 2);
  for (std::size_t i = 0; i < 3000; i += 3) g[0][i] = 1e-41f;
  Options watched;
  watched.parallel_for = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned before = _mm_getcsr() & kControl;
      body(i);
      EXPECT_EQ(_mm_getcsr() & kControl, before) << "a worker's mode leaks";
    }
  };
  for (const std::string& decay : fixture::every_decay()) {
    for (const fixture::RuleName& rule : {fixture::RuleName{"adam", ""}, {"lion-k", "l2"}}) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto reference = run(make(rule, decay), x, g);
      for (const unsigned bits : {0u, kFlush, 0x8000u, 0x40u}) {
        const Mode mode(bits);
        const unsigned before = _mm_getcsr() & kControl;
        fixture::expect_same(reference, run(make(rule, decay), x, g));
        EXPECT_EQ(_mm_getcsr() & kControl, before);
        fixture::expect_same(reference, run(make(rule, decay), x, g, watched));
        EXPECT_EQ(_mm_getcsr() & kControl, before);
      }
    }
  }
}

TEST(FloatingPointMode, IsTheCallersAfterAnError) {
  const unsigned before = _mm_getcsr() & kControl;
  Options strict;
  strict.nonfinite = Nonfinite::error;
  fixture::expect_error([&] { run<double>(make({"adam", ""}, "cautious"), {1}, {{kNan}}, strict); }, {});
  EXPECT_EQ(_mm_getcsr() & kControl, before);
}
#endif

// Two tensors; the second has two bad entries.
struct Bad {
  std::vector<double> x = fixture::weights<double>(100, 1), y = fixture::weights<double>(200, 2);
  std::vector<double> gx = fixture::weights<double>(100, 3), gy = fixture::weights<double>(200, 4), bad = gy;
  cautious::Optimizer optimizer;

  explicit Bad(Nonfinite nonfinite)
      : optimizer(make({"adam", ""}, "cautious"), [&] {
          Options options;
          options.nonfinite = nonfinite;
          return options;
        }()) {
    bad[7] = kNan, bad[150] = -kInfinity;
    optimizer.add("x", {10, 10}, x.data(), gx.data());
    optimizer.add("y", {200}, y.data(), gy.data());
    optimizer.step({.lr = 0.01});
    optimizer.bind(1, y.data(), bad.data());
  }
  std::vector<std::vector<unsigned char>> all() const {
    std::vector<std::vector<unsigned char>> bits{fixture::bytes(x), fixture::bytes(y)};
    for (std::size_t k = 0; k < 2; ++k) {
      for (const auto& piece : fixture::state_bytes(optimizer, k, k == 0 ? 100 : 200)) bits.push_back(piece.second);
    }
    return bits;
  }
};

TEST(NonfiniteGradient, PropagatesByDefaultAndIsCounted) {
  Bad bad(Nonfinite::propagate);
  const auto y = bad.y;
  const auto& report = bad.optimizer.step({.lr = 0.01});
  EXPECT_FALSE(report.skipped);
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.total.nonfinite, 2);
  EXPECT_EQ(report.tensors[0].nonfinite, 0);
  EXPECT_EQ(report.tensors[1].nonfinite, 2);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(std::isfinite(bad.y[i]), i != 7 && i != 150) << i;
}

TEST(NonfiniteGradient, SkipChangesNothingAndIsCounted) {
  Bad bad(Nonfinite::skip), good(Nonfinite::skip);
  const auto before = bad.all();
  const cautious::StepReport report = bad.optimizer.step({.lr = 0.01});
  EXPECT_TRUE(report.skipped);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.total.nonfinite, 2);
  EXPECT_EQ(report.tensors[1].nonfinite, 2);
  EXPECT_EQ(report.total.decayed, 0);
  EXPECT_EQ(before, bad.all());
  EXPECT_EQ(bad.optimizer.steps_of(0), 1);
  EXPECT_EQ(bad.optimizer.steps_of(1), 1);

  for (Bad* each : {&bad, &good}) {
    each->optimizer.bind(1, each->y.data(), each->gy.data());
    EXPECT_EQ(each->optimizer.step({.lr = 0.01}).step, 2);
  }
  EXPECT_EQ(bad.all(), good.all()) << "a skipped step leaves no trace";
}

TEST(NonfiniteGradient, ErrorChangesNothingAndTellsWhere) {
  Bad bad(Nonfinite::error);
  const auto before = bad.all();
  fixture::expect_error([&] { bad.optimizer.step({.lr = 0.01}); }, {"y", "2"});
  try {
    bad.optimizer.step({.lr = 0.01});
    FAIL();
  } catch (const cautious::Error& error) {
    EXPECT_EQ(error.fault(), cautious::Fault::data);
  }
  EXPECT_EQ(before, bad.all());
  EXPECT_EQ(bad.optimizer.steps_of(1), 1);
}

TEST(NonfiniteGradient, FiniteGradientsOfHugeNormAreClippedNotSkipped) {
  Options options;
  options.nonfinite = Nonfinite::skip;
  options.grad_clip = 1;
  const auto result = run<float>(make({"sgd", ""}, "none"), {0, 0}, {{3e38f, 3e38f}}, options, unit);
  EXPECT_FALSE(result.reports[0].skipped);
  EXPECT_NEAR(result.x[0], -std::sqrt(0.5f), 1e-6);
}

TEST(MissingGradient, LeavesTheTensorOut) {
  for (const std::string& decay : fixture::every_decay()) {
    SCOPED_TRACE(decay);
    cautious::Optimizer optimizer(make({"adam", ""}, decay));
    auto x = fixture::weights<float>(300, 1), y = fixture::weights<float>(300, 2), late = y;
    const auto g = fixture::weights<float>(300, 3);
    optimizer.add<float>("x", {300}, x.data(), g.data());
    optimizer.add<float>("y", {300}, y.data(), nullptr);
    const auto start = y;
    for (int t = 1; t <= 3; ++t) {
      const auto& report = optimizer.step({.lr = 0.01});
      EXPECT_EQ(report.tensors[1].count, 0);
      EXPECT_EQ(report.total.count, 300);
    }
    EXPECT_EQ(y, start);
    EXPECT_EQ(optimizer.steps_of(0), 3);
    EXPECT_EQ(optimizer.steps_of(1), 0);

    optimizer.bind(1, y.data(), g.data());
    optimizer.step({.lr = 0.01});
    EXPECT_EQ(optimizer.steps_of(1), 1);
    cautious::Optimizer fresh(make({"adam", ""}, decay));
    fresh.add<float>("y", {300}, late.data(), g.data());
    fresh.step({.lr = 0.01});
    EXPECT_EQ(y, late) << "its own step count starts at its own first step";
  }
}

template <class T>
void expect_same_from_spans() {
  std::vector<T> x = fixture::weights<T>(6, 1), same = x;
  const std::vector<T> g = fixture::weights<T>(6, 2);
  cautious::Optimizer pointers(cautious::recipe("adamw")), spans(cautious::recipe("adamw"));
  pointers.add("x", {2, 3}, x.data(), g.data());
  spans.add("x", {2, 3}, same, g);
  pointers.step({.lr = 0.1}), spans.step({.lr = 0.1});
  EXPECT_EQ(std::memcmp(x.data(), same.data(), 6 * sizeof(T)), 0);
  spans.add("later", {2, 3}, std::span(same), {});
  EXPECT_EQ(spans.step({.lr = 0.1}).tensors.at(1).count, 0);
  fixture::expect_error([&] { spans.add("y", {2, 2}, same, g); }, {"'y'", "x has 6 elements", "shape has 4"});
  fixture::expect_error([&] { spans.add("y", {6}, same, std::span(g).first(5)); }, {"'y'", "g has 5 elements", "shape has 6"});
  EXPECT_EQ(spans.size(), 2U);
}

TEST(Spans, AreTheSameAsPointersAndKnowTheirSize) {
  expect_same_from_spans<float>();
  expect_same_from_spans<double>();
  expect_same_from_spans<cautious::Bf16>();
}

TEST(MissingGradient, AStepWithoutAnyGradientOrTensorIsAStep) {
  cautious::Optimizer optimizer(make({"adam", ""}, "cautious"));
  EXPECT_EQ(optimizer.step({.lr = 0.1}).total.count, 0);
  std::vector<double> x{1};
  optimizer.add<double>("x", {1}, x.data(), nullptr);
  EXPECT_EQ(optimizer.step({.lr = 0.1}).tensors.size(), 1u);
  EXPECT_EQ(x[0], 1);
}

// |w| > 0 does not hold for a NaN: one bad gradient spoils its own coordinate, not the tensor. Selective decay starts at x0 =
// x, so the second step is the first that could decay.
TEST(NonfiniteGradient, DoesNotSpreadUnderSelectiveDecay) {
  const auto result = run<float>(make({"adam", ""}, "selective", 1), {1, 2, 3}, {{-1, -1, -1}, {float(kInfinity), 1, 1}}, {},
                                 [](std::size_t) { return cautious::StepInput{.lr = 0.1}; });
  EXPECT_TRUE(std::isnan(result.x[0]));
  EXPECT_TRUE(std::isfinite(result.x[1]));
  EXPECT_TRUE(std::isfinite(result.x[2]));
}

}  // namespace edges_test
