// Rules x decays x element types x instruction sets x sizes x misalignment against the oracle. Each step starts the oracle from
// the library's own state, so that what is measured is one step's rounding: half a unit in the last place of x, plus a few
// units of the terms of the change. Muon and nuclear, whose direction is made by matrix products, have matrices instead of
// sizes and run under every coupling and schedule; their u may be off by 2e-5 of its largest entry in f32 and by 4e-14 in f64,
// more where the schedule is steep.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "fixture.h"
#include "oracle.h"

namespace product_test {

using fixture::Bf16;
using fixture::Guarded;
using oracle::Vector;

constexpr std::size_t kSizes[] = {0,  1,  2,  3,  4,  5,  6,  7,   8,   9,   10,   11,   12,   13,
                                  14, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 10007};
const std::vector<std::vector<std::int64_t>> kMatrices{{7, 5}, {5, 7}, {16, 33}, {1, 9}, {9, 1}, {1, 1}, {3, 2, 2, 2}, {0, 4}};
constexpr int kSteps = 3;
constexpr double kLeastClear = 0.999;
constexpr double kLeastClearOfShuffled = 0.998;  // an unclear coordinate also blurs the odds of its bin
constexpr double kLeastClearOfMatrices = 0.97;   // few coordinates, and steep schedules

template <class T>
constexpr int kDigits = std::is_same_v<T, Bf16> ? 8 : std::numeric_limits<T>::digits;
template <class T>
constexpr double kComputeEps = std::is_same_v<T, double> ? 0x1p-52 : 0x1p-23;
// Roundings of the oracle itself count in f64.
template <class T>
constexpr double kOwnUlps = std::is_same_v<T, double> ? 1 : 0;
constexpr double kChangeUlps = 8;
// Sums over a tensor are in double: only f64 sees their rounding, which grows like a random walk.
template <class T>
double sum_ulps(std::size_t n) {
  return std::is_same_v<T, double> ? std::sqrt(static_cast<double>(n)) / 4 : 0;
}

template <class T>
double ulp(double value) {
  return value == 0 ? 0 : std::ldexp(1.0, std::ilogb(value) - kDigits<T> + 1);
}

struct Case {
  fixture::RuleName rule;
  std::string decay, coupling = "plain", schedule = "paper", scale = "none", nesterov = "off", mask = {};
};

bool of_matrices(const fixture::RuleName& rule) { return rule.rule == "muon" || rule.k == "nuclear"; }

oracle::Setup setup(const Case& one, double eps) {
  const fixture::RuleName& rule = one.rule;
  oracle::Setup s;
  s.rule = rule.rule, s.decay = one.decay, s.coupling = one.coupling;
  if (!rule.k.empty()) s.k = rule.k, s.p = 2.5, s.e = 0.2, s.fraction = 0.25;
  if (rule.rule == "muon") s.beta = 0.95;
  if (rule.rule != "adam") s.beta2 = 0.99;
  s.schedule = one.schedule, s.scale = one.scale;
  s.nesterov = one.nesterov == "on";
  s.by_momentum = one.mask == "momentum";
  s.weight_decay = 0.1;
  s.doubt = 32 * eps;
  s.seed = 77;
  return s;
}

cautious::Recipe recipe_of(const Case& one) {
  cautious::Recipe recipe = fixture::make(one.rule, one.decay);
  cautious::set(recipe, "coupling", one.coupling);
  if (!one.mask.empty()) cautious::set(recipe, "mask", one.mask);
  if (!of_matrices(one.rule)) return recipe;
  cautious::set(recipe, "schedule", one.schedule);
  cautious::set(recipe, "scale", one.scale);
  if (one.rule.rule == "muon") cautious::set(recipe, "nesterov", one.nesterov);
  return recipe;
}

template <class T>
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Guarded<T> x, g;
  oracle::Memory memory;
};

// A piece of state as doubles; empty if the tensor has none of that name.
template <class T>
Vector piece(const cautious::Optimizer& optimizer, std::size_t tensor, std::string_view name, std::size_t n) {
  using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (const auto& part : optimizer.state(tensor)) {
    if (part.name != name) continue;
    if (part.type == "BF16") {
      const auto* data = static_cast<const Bf16*>(part.data);
      Vector wide(n);
      std::transform(data, data + n, wide.begin(), [](Bf16 value) { return fixture::to_double(value); });
      return wide;
    }
    const auto* data = static_cast<const Compute*>(part.data);
    return Vector(data, data + n);
  }
  return {};
}

template <class T>
Vector doubles(Guarded<T>& buffer) {
  Vector all(buffer.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = fixture::to_double(buffer[i]);
  return all;
}

// The largest error in units of what is allowed; 1 passes.
template <class T>
double worst_x(Tensor<T>& tensor, const Vector& before, const oracle::Memory& expected, const oracle::Outcome& outcome,
               double change_ulps) {
  double worst = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!outcome.clear[i]) continue;
    const double got = fixture::to_double(tensor.x[i]), want = expected.x[i];
    const double rounding = (0.5 + kOwnUlps<T>)*std::max(ulp<T>(got), ulp<T>(want));
    const double compute = std::is_same_v<T, Bf16> ? std::max(std::fabs(before[i]), std::fabs(want)) : 0;
    const double allowed = rounding * (1 + 1e-6) + kComputeEps<T> * (compute + change_ulps * outcome.change[i]);
    const double error = std::fabs(got - want);
    if (!(error <= allowed)) worst = std::max(worst, allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity());
    if (error <= allowed && allowed > 0) worst = std::max(worst, error / allowed);
  }
  return worst;
}

template <class T>
double worst_moment(const Vector& got, const Vector& want, const Vector& size) {
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i] == 0 && got[i] == 0) continue;
    worst = std::max(worst, std::fabs(got[i] - want[i]) / (4 * kComputeEps<T> * size[i]));
  }
  return worst;
}

void expect_tally(const cautious::Tally& got, const oracle::Outcome& want, std::size_t n, double eps) {
  const auto unclear = std::count(want.clear.begin(), want.clear.end(), char{0});
  EXPECT_EQ(got.count, static_cast<std::int64_t>(n));
  EXPECT_EQ(got.nonfinite, 0);
  EXPECT_LE(std::abs(got.decayed - want.decayed), unclear + want.decayed_doubt);
  EXPECT_LE(std::abs(got.active - want.active), unclear);
  const auto near = [&](double a, double b, const char* what, double size = 0) {
    EXPECT_LE(std::fabs(a - b), 1e-6 * std::fabs(b) + kChangeUlps * eps * size) << what;
  };
  near(got.x2, want.x2, "x2");
  near(got.g2, want.g2, "g2");
  if (unclear == 0) near(got.u2, want.u2, "u2", want.u2_size);
  if (unclear == 0) near(got.budget, want.budget, "budget", want.budget_size);
}

template <class T>
void fill(Tensor<T>& tensor, fixture::Values& values) {
  for (std::size_t i = 0; i < tensor.g.size(); ++i) tensor.g[i] = fixture::to_element<T>(values.weight_or_zero());
}

// How many coordinates were compared, so that excluding unclear ones cannot empty the test.
struct Coverage {
  std::int64_t clear = 0, all = 0;
};

template <class T>
void check_step(cautious::Optimizer& optimizer, std::vector<Tensor<T>>& tensors, oracle::Setup s, int step,
                Coverage& coverage) {
  const oracle::Rates r{.lr = 0.05 / (1 + step), .lr_max = 0.05, .decay_factor = 1 - 0.2 * step};
  std::vector<Vector> before;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    auto& [name, shape, x, g, memory] = tensors[k];
    before.push_back(doubles(x));
    memory = {before[k], piece<T>(optimizer, k, "m", x.size()), piece<T>(optimizer, k, "v", x.size()),
              piece<T>(optimizer, k, "x0", x.size()), step};
  }
  const auto& report = optimizer.step({.lr = r.lr, .lr_max = r.lr_max, .decay_factor = r.decay_factor});
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    SCOPED_TRACE("step " + std::to_string(step + 1) + ", tensor " + tensors[k].name);
    Tensor<T>& tensor = tensors[k];
    s.name = tensor.name;
    s.rows = static_cast<std::size_t>(tensor.shape[0]), s.cols = tensor.x.size() / std::max<std::size_t>(s.rows, 1);
    const oracle::Outcome outcome = oracle::step(s, tensor.memory, doubles(tensor.g), r);
    coverage.clear += std::count(outcome.clear.begin(), outcome.clear.end(), char{1});
    coverage.all += static_cast<std::int64_t>(outcome.clear.size());
    const bool sums = s.decay == "selective" || s.k == "l2" || s.k == "lp";
    const double change_ulps = kChangeUlps + (sums ? sum_ulps<T>(tensor.x.size()) : 0);
    EXPECT_LE(worst_x(tensor, before[k], tensor.memory, outcome, change_ulps), 1);
    EXPECT_LE(worst_moment<T>(piece<T>(optimizer, k, "m", tensor.x.size()), tensor.memory.m, outcome.m_size), 1);
    EXPECT_LE(worst_moment<T>(piece<T>(optimizer, k, "v", tensor.x.size()), tensor.memory.v, tensor.memory.v), 1);
    EXPECT_TRUE(tensor.x.intact()) << "wrote beside x";
    EXPECT_TRUE(tensor.g.intact()) << "wrote beside g";
    expect_tally(report.tensors[k], outcome, tensor.x.size(), kComputeEps<T>);
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<std::vector<std::int64_t>> shapes_of(const Case& one) {
  if (of_matrices(one.rule)) {
    std::vector<std::vector<std::int64_t>> shapes = kMatrices;
    if (one.schedule == "cans") std::erase_if(shapes, [](const auto& shape) { return shape[0] == 1 || shape[1] == 1; });
    return shapes;
  }
  std::vector<std::vector<std::int64_t>> shapes;
  for (const std::size_t n : kSizes) shapes.insert(shapes.end(), 4, {static_cast<std::int64_t>(n)});
  return shapes;
}

template <class T>
void check(const Case& one, cautious::Isa isa) {
  SCOPED_TRACE(std::string(name_of(cautious::element_of<T>())) + " " + std::string(name_of(isa)) + " " + one.coupling + " " +
               one.schedule);
  cautious::Options options;
  options.seed = 77, options.threads = 1, options.isa = isa;
  cautious::Optimizer optimizer(recipe_of(one), options);
  std::vector<Tensor<T>> tensors;
  fixture::Values values(5);
  for (const auto& shape : shapes_of(one)) {
    const auto n = static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
    const std::size_t offset = tensors.size() % 4;
    tensors.push_back({std::to_string(n) + "+" + std::to_string(tensors.size()),
                       shape,
                       Guarded<T>(n, offset),
                       Guarded<T>(n, (offset + n) % 4),
                       {}});
    for (std::size_t i = 0; i < n; ++i) tensors.back().x[i] = fixture::to_element<T>(values.weight_or_zero());
  }
  for (Tensor<T>& tensor : tensors) {
    const auto index = optimizer.add<T>(tensor.name, tensor.shape, tensor.x.data(), tensor.g.data());
    if (index % 2 == 1 || !cautious::has_anchor(cautious::decay(one.decay))) continue;
    const auto anchor = fixture::weights<T>(tensor.x.size(), index);
    optimizer.set_anchor(index, anchor.data());
  }
  const oracle::Setup s = setup(one, kComputeEps<T>);
  Coverage coverage;
  for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
    for (Tensor<T>& tensor : tensors) fill(tensor, values);
    check_step(optimizer, tensors, s, step, coverage);
  }
  const double least = of_matrices(one.rule)     ? kLeastClearOfMatrices
                       : one.decay == "shuffled" ? kLeastClearOfShuffled
                                                 : kLeastClear;
  EXPECT_GE(static_cast<double>(coverage.clear), least * static_cast<double>(coverage.all))
      << coverage.clear << " of " << coverage.all;
}

void check_types(const Case& one) {
  for (const cautious::Isa isa : fixture::isas()) {
    check<float>(one, isa);
    check<double>(one, isa);
    check<Bf16>(one, isa);
  }
}

class Product : public testing::TestWithParam<std::tuple<fixture::RuleName, std::string>> {};

TEST_P(Product, AgreesWithTheOracle) {
  const auto& [rule, decay] = GetParam();
  check_types({rule, decay});
}

class MatrixProduct : public Product {};

TEST_P(MatrixProduct, AgreesWithTheOracle) {
  const auto& [rule, decay] = GetParam();
  check_types({rule, decay});
  check_types({rule, decay, "corrected", "quintic", "jordan", "on"});
  check_types({rule, decay, "independent", "polar-express", "rms", "off"});
  check_types({rule, decay, "squared", "turbo", "none", "on"});
  check_types({rule, decay, "plain", "polar-express-8", "jordan", "off"});
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<fixture::RuleName, std::string>>& at) {
  std::string name = std::get<0>(at.param).text() + "_" + std::get<1>(at.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, Product,
                         testing::Combine(testing::ValuesIn(fixture::every_rule()), testing::ValuesIn(fixture::every_decay())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(EveryRecipe, MatrixProduct,
                         testing::Combine(testing::Values(fixture::RuleName{"muon", ""},
                                                          fixture::RuleName{"lion-k", "nuclear"}),
                                          testing::ValuesIn(fixture::every_decay())),
                         name_of_case);

TEST(MaskByMomentum, AgreesWithTheOracle) {
  for (const fixture::RuleName& rule : fixture::shaping_rules()) {
    SCOPED_TRACE(rule.text());
    check_types({.rule = rule, .decay = "cautious", .mask = "momentum"});
    if (of_matrices(rule)) check_types({rule, "cautious", "corrected", "quintic", "jordan", "on", "momentum"});
    if (!of_matrices(rule) && rule.k != "huber") continue;
    check_types({.rule = rule, .decay = "opposed", .mask = "momentum"});
    check_types({.rule = rule, .decay = "shuffled", .mask = "momentum"});
  }
}

TEST(MatrixSchedules, AgreeWithTheOracle) {
  for (const std::string_view schedule : cautious::names_of(cautious::NewtonSchulz{})) {
    if (schedule == "custom") continue;  // has no steps of its own
    for (const std::string_view scale : cautious::names_of(cautious::MatrixScale{})) {
      for (const char* nesterov : {"off", "on"}) {
        check_types({{"muon", ""}, "cautious", "plain", std::string(schedule), std::string(scale), nesterov});
      }
    }
  }
}

}  // namespace product_test
