// The grid that CUDA runs, here as loops over blocks and threads, against the fused core: x, moments, low halves and counts bit
// by bit, sums within rounding.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/hash.h"
#include "fixture.h"
#include "grid_on_cpu.h"
#include "kernels/dispatch.h"
#include "optim/random_key.h"

namespace grid_test {

using cautious::Element;
using cautious::Rounding;
using fixture::RuleName;
using Bytes = std::vector<unsigned char>;

namespace kernels = cautious::kernels;
namespace optim = cautious::optim;

struct Types {
  Element parameter, gradient, moments;
  Rounding rounding;
};

const std::vector<Types> kTypes{{Element::f32, Element::f32, Element::f32, Rounding::nearest},
                                {Element::f32, Element::f32, Element::bf16, Rounding::nearest},
                                {Element::bf16, Element::bf16, Element::f32, Rounding::stochastic},
                                {Element::bf16, Element::f32, Element::bf16, Rounding::nearest},
                                {Element::bf16, Element::bf16, Element::f32, Rounding::split}};

// Less than a tile, a tile, a block and a rest, several blocks.
const std::vector<std::size_t> kSizes{1, 0, 255, 256, 4099, 9000};
constexpr std::size_t kSteps = 3;
constexpr std::uint64_t kSeed = 5;

// The largest tensor has values that implementations get wrong, and no sums worth comparing.
bool is_unusual(std::size_t n) { return n == kSizes.back(); }

Bytes values(std::size_t n, std::uint64_t seed, Element element) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> unusual{0.0f,  -0.0f, 1e-30f, -1e-30f, 1e-40f, -1e-40f,       1.2e-38f,
                                   3e38f, 2e19f, -3e38f, kInf,    -kInf,  std::nanf(""), -1.2e-38f};
  std::vector<float> wide = fixture::weights<float>(n, seed);
  for (std::size_t i = 0; is_unusual(n) && i < n; i += 3) wide[i] = unusual[(i / 3 + 5 * seed) % unusual.size()];
  if (element == Element::f32) return fixture::bytes(wide);
  std::vector<cautious::Bf16> narrow;
  for (const float value : wide) narrow.push_back(fixture::to_element<cautious::Bf16>(value));
  return fixture::bytes(narrow);
}

// How many elements differ in a bit; NaNs are equal.
std::size_t differing(const Bytes& a, const unsigned char* b, std::size_t width) {
  const auto at = [&](const unsigned char* from) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, width);
    const bool is_nan = ((width == 2 ? word << 16 : word) & 0x7fffffffu) > 0x7f800000u;
    return is_nan ? 0x7fffffffu : word;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); i += width) count += at(&a[i]) != at(b + i);
  return count;
}

// One tensor with all its memory.
struct Tensor {
  Tensor(std::size_t n, std::uint64_t seed, const Types& types)
      : name("t" + std::to_string(n)),
        count(n),
        x(values(n, seed, types.parameter)),
        x0(x),
        m(n * cautious::size_of(types.moments)),
        v(m.size()),
        low(types.rounding == Rounding::split ? 2 * n : 0) {}

  kernels::GridTensor at(std::int64_t t, const Types& types, const cautious::Recipe& recipe, double lr, double wd) {
    const auto key = [&](optim::Purpose purpose) {
      return optim::random_key(kSeed, purpose, t, cautious::base::hash_of(name));
    };
    kernels::GridTensor row{};
    row.x = x.data(), row.g = g.data(), row.m = m.data(), row.v = v.data(), row.x0 = x0.data();
    row.low = low.empty() ? nullptr : reinterpret_cast<std::int16_t*>(low.data());
    row.count = count;
    row.parameter = types.parameter, row.gradient = types.gradient, row.moments = types.moments;
    row.rounding = types.rounding;
    row.lr = static_cast<float>(lr), row.wd = static_cast<float>(wd), row.spent = lr * wd;
    row.chance = key(optim::Purpose::decay), row.round = key(optim::Purpose::rounding);
    grid_on_cpu::kCpu.prepare(recipe.rule, t, recipe.decay, row);
    return row;
  }

  std::string name;
  std::size_t count;
  Bytes x, x0, m, v, low, g;
};

// One launch; what the report says of every tensor.
std::vector<double> launch(const cautious::Recipe& recipe, std::vector<kernels::GridTensor> rows) {
  const std::vector<kernels::GridBlock> blocks = kernels::cut_into_blocks(rows);
  std::vector<kernels::Counted> counted(blocks.size());
  std::vector<double> seen(kernels::kGridSeen * rows.size(), -1);
  grid_on_cpu::kCpu.launch(recipe.rule, recipe.decay,
                           {rows.data(), blocks.data(), counted.data(), seen.data(), static_cast<std::uint32_t>(rows.size()),
                            static_cast<std::uint32_t>(blocks.size())});
  return seen;
}

void expect_report(const double* seen, const cautious::Tally& tally) {
  EXPECT_EQ(seen[0], static_cast<double>(tally.decayed)) << "decayed";
  EXPECT_EQ(seen[1], static_cast<double>(tally.active)) << "active";
  EXPECT_EQ(seen[2], static_cast<double>(tally.nonfinite)) << "nonfinite";
  if (is_unusual(static_cast<std::size_t>(tally.count))) return;
  const double sums[] = {tally.x2, tally.g2, tally.u2, tally.budget};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(seen[3 + i], sums[i], 1e-6 * sums[i]) << "sum " << i;
}

void expect_state(const Tensor& tensor, const cautious::Optimizer& core, std::size_t slot) {
  for (const cautious::StateTensor& piece : core.state(slot)) {
    const Bytes& ours = piece.name == "m"    ? tensor.m
                        : piece.name == "v"  ? tensor.v
                        : piece.name == "x0" ? tensor.x0
                                             : tensor.low;
    const std::size_t width = fixture::bytes_of(piece.type);
    ASSERT_EQ(ours.size(), tensor.count * width) << piece.name;
    EXPECT_EQ(differing(ours, static_cast<const unsigned char*>(piece.data), width), 0u) << piece.name;
  }
}

void compare_with_core(const cautious::Recipe& recipe, const Types& types) {
  cautious::Options options;
  options.moments = types.moments, options.rounding = types.rounding, options.seed = kSeed;
  cautious::Optimizer core(recipe, options);
  std::vector<Tensor> tensors;
  std::vector<Bytes> core_x;
  for (std::size_t k = 0; k < kSizes.size(); ++k) core_x.push_back(tensors.emplace_back(kSizes[k], k, types).x);
  for (std::size_t k = 0; k < kSizes.size(); ++k) {
    const auto n = static_cast<std::int64_t>(kSizes[k]);
    core.add({tensors[k].name, {n}, types.parameter, types.gradient, core_x[k].data(), nullptr});
  }
  for (std::size_t step = 0; step < kSteps; ++step) {
    const cautious::StepInput input = fixture::rates(step);
    std::vector<kernels::GridTensor> rows;
    for (std::size_t k = 0; k < kSizes.size(); ++k) {
      tensors[k].g = values(kSizes[k], 100 * (step + 1) + k, types.gradient);
      core.bind(k, core_x[k].data(), tensors[k].g.data());
      rows.push_back(tensors[k].at(static_cast<std::int64_t>(step + 1), types, recipe, input.lr,
                                   recipe.weight_decay * input.decay_factor));
    }
    const std::vector<double> seen = launch(recipe, rows);
    const cautious::StepReport& report = core.step(input);
    for (std::size_t k = 0; k < kSizes.size(); ++k) {
      SCOPED_TRACE(testing::Message() << "step " << step << ", " << kSizes[k] << " coordinates");
      EXPECT_EQ(differing(tensors[k].x, core_x[k].data(), cautious::size_of(types.parameter)), 0u) << "parameters";
      expect_state(tensors[k], core, k);
      expect_report(&seen[kernels::kGridSeen * k], report.tensors[k]);
    }
  }
}

TEST(Grid, IsTheFusedCoreUnderEveryElementwiseRecipe) {
  for (const RuleName& rule : fixture::every_rule()) {
    for (const std::string& decay : fixture::every_decay()) {
      const cautious::Recipe recipe = fixture::make(rule, decay);
      SCOPED_TRACE(rule.text() + " " + decay);
      const bool elementwise = rule.k.empty() && fixture::is_elementwise(decay);
      ASSERT_EQ(cautious::portable::on_grid(recipe.rule, recipe.decay), elementwise);
      for (std::size_t i = 0; elementwise && i < kTypes.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "types " << i);
        compare_with_core(recipe, kTypes[i]);
      }
    }
  }
}

// The random bits of a coordinate beyond 2^32 depend on the upper half of its index.
TEST(Grid, RoundsLongTensorsAsTheCore) {
  constexpr std::uint64_t kFirst = (std::uint64_t{5} << 34) + 7 * kernels::kTile;
  const kernels::Stream key{0x12345678, 0x9abcdef0};
  const std::vector<float> x = fixture::weights<float>(kernels::kTile, 1);
  std::vector<std::uint16_t> ours(x.size()), theirs(x.size());
  kernels::GridTensor tensor{};
  tensor.x = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(ours.data()) - kFirst * sizeof(std::uint16_t));
  tensor.parameter = Element::bf16, tensor.rounding = Rounding::stochastic, tensor.round = key;
  for (std::size_t i = 0; i < x.size(); ++i) cautious::portable::store_parameter(tensor, kFirst + i, x[i]);
  kernels::kernels_for(cautious::Isa::portable).bf16.store_stochastic(x.data(), theirs.data(), x.size(), key, kFirst);
  EXPECT_EQ(ours, theirs);
}

}  // namespace grid_test
