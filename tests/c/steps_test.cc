// The C interface of libcautious.so takes the steps of the C++ one in libcautious.a: every recipe under every decay, for all
// element types and roundings, compared bit by bit in parameters, state and reports.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cautious/cautious.h>

#include "c/steps.h"
#include "fixture.h"

namespace cautious {
namespace steps_test {

constexpr std::int64_t kRows = 7, kCols = 53;  // more than a tile, and not a multiple of any vector
constexpr std::size_t kCount = kRows * kCols, kSteps = 4;

template <class T>
cautious_element element_in_c() {
  return std::is_same_v<T, float> ? CAUTIOUS_F32 : std::is_same_v<T, double> ? CAUTIOUS_F64 : CAUTIOUS_BF16;
}

struct Result {
  std::vector<unsigned char> x, state;
  std::vector<std::vector<double>> reports;  // of each step: the total, then the tensor
};

std::vector<double> numbers(const StepReport& step, const Tally& tally) {
  return {static_cast<double>(step.step),
          static_cast<double>(step.skipped),
          step.clip_scale,
          static_cast<double>(tally.count),
          static_cast<double>(tally.decayed),
          static_cast<double>(tally.active),
          static_cast<double>(tally.nonfinite),
          tally.ratio(),
          tally.ratio_strict(),
          tally.x2,
          tally.g2,
          tally.u2,
          tally.rms_x(),
          tally.rms_g(),
          tally.rms_u(),
          tally.budget};
}

std::vector<double> numbers(const cautious_report& report) {
  return {static_cast<double>(report.step),
          static_cast<double>(report.skipped),
          report.clip_scale,
          static_cast<double>(report.count),
          static_cast<double>(report.decayed),
          static_cast<double>(report.active),
          static_cast<double>(report.nonfinite),
          report.ratio,
          report.ratio_strict,
          report.x2,
          report.g2,
          report.u2,
          report.rms_x,
          report.rms_g,
          report.rms_u,
          report.budget};
}

template <class T, class G>
Result in_cpp(const std::string& recipe, const Options& options, std::vector<T> x, const std::vector<std::vector<G>>& g) {
  Optimizer optimizer(parse_recipe(recipe), options);
  const std::size_t tensor = optimizer.add({"x", {kRows, kCols}, element_of<T>(), element_of<G>(), x.data(), nullptr});
  Result result;
  for (std::size_t t = 0; t < kSteps; ++t) {
    optimizer.bind(tensor, x.data(), g[t].data());
    const StepReport& report = optimizer.step(fixture::rates(t));
    result.reports.push_back(numbers(report, report.total));
    result.reports.push_back(numbers(report, report.tensors[tensor]));
  }
  result.x = fixture::bytes(x);
  for (const StateTensor& piece : optimizer.state(tensor)) {
    std::vector<unsigned char> head(sizeof cautious_state_tensor::name + sizeof cautious_state_tensor::type);
    std::memcpy(head.data(), piece.name.data(), piece.name.size());
    std::memcpy(head.data() + sizeof cautious_state_tensor::name, piece.type.data(), piece.type.size());
    result.state.insert(result.state.end(), head.begin(), head.end());
    const auto* data = static_cast<const unsigned char*>(piece.data);
    result.state.insert(result.state.end(), data, data + piece.bytes);
  }
  return result;
}

template <class T, class G>
Result in_c(const std::string& recipe, const char* options, std::vector<T> x, const std::vector<std::vector<G>>& g) {
  std::vector<const void*> gradients;
  std::vector<cautious_step_input> inputs;
  for (std::size_t t = 0; t < kSteps; ++t) {
    const StepInput rates = fixture::rates(t);
    gradients.push_back(g[t].data());
    inputs.push_back({sizeof(cautious_step_input), rates.lr, rates.lr_max, rates.decay_factor, nullptr});
  }
  std::vector<cautious_report> totals(kSteps, cautious_report CAUTIOUS_REPORT), tensors = totals;
  Result result;
  result.state.resize(1 << 16);
  c_case run{
      recipe.c_str(), options, element_in_c<T>(), element_in_c<G>(), {kRows, kCols},      x.data(),           gradients.data(),
      inputs.data(),  kSteps,  totals.data(),     tensors.data(),    result.state.data(), result.state.size()};
  EXPECT_EQ(c_steps(&run), CAUTIOUS_OK) << cautious_last_error();
  EXPECT_LE(run.state_bytes, result.state.size());
  result.state.resize(run.state_bytes);
  result.x = fixture::bytes(x);
  for (std::size_t t = 0; t < kSteps; ++t) {
    result.reports.push_back(numbers(totals[t]));
    result.reports.push_back(numbers(tensors[t]));
  }
  return result;
}

template <class T, class G = T>
void expect_same(const std::string& recipe, const char* text, const Options& options) {
  SCOPED_TRACE(recipe + " | " + text);
  const std::vector<T> x = fixture::weights<T>(kCount, 3);
  const std::vector<std::vector<G>> g = fixture::gradients<G>(kSteps, kCount, 4);
  const Result expected = in_cpp(recipe, options, x, g), ours = in_c(recipe, text, x, g);
  EXPECT_NE(ours.x, fixture::bytes(x)) << "nothing was changed";
  EXPECT_EQ(ours.x, expected.x);
  EXPECT_EQ(ours.state, expected.state);
  EXPECT_EQ(ours.reports, expected.reports);
}

class CSteps : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CSteps, HaveTheBitsOfCpp) {
  const auto& [name, decay] = GetParam();
  const std::string recipe = name + " decay=" + decay + " weight_decay=0.3";
  expect_same<float>(recipe, "", {});
  expect_same<float>(recipe, "moments=bf16 grad_clip=0.5 update_rms_clip=0.25 threads=2",
                     {.moments = Element::bf16, .grad_clip = 0.5, .update_rms_clip = 0.25, .threads = 2});
  expect_same<double>(recipe, "norms=off seed=18446744073709551615", {.norms = Norms::off, .seed = ~std::uint64_t{0}});
  expect_same<Bf16>(recipe, "rounding=stochastic seed=7", {.rounding = Rounding::stochastic, .seed = 7});
  expect_same<Bf16, float>(recipe, "rounding=split nonfinite=error isa=portable",
                           {.rounding = Rounding::split, .nonfinite = Nonfinite::error, .isa = Isa::portable});
}

std::string test_name(const testing::TestParamInfo<CSteps::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, CSteps,
                         testing::Combine(testing::ValuesIn(recipe_names()), testing::ValuesIn(decay_names())), test_name);

// The archive has these functions too: the comparison is one of two libraries only if the shared one comes first.
TEST(CLibrary, IsTheSharedOne) {
  Dl_info found{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&cautious_step), &found), 0);
  EXPECT_NE(std::string(found.dli_fname).find("libcautious.so"), std::string::npos) << found.dli_fname;
}

// The numbers of c.h are those of the enumerations.
TEST(CNumbers, AreThoseOfCpp) {
  EXPECT_EQ(CAUTIOUS_F32, static_cast<int>(Element::f32));
  EXPECT_EQ(CAUTIOUS_F64, static_cast<int>(Element::f64));
  EXPECT_EQ(CAUTIOUS_BF16, static_cast<int>(Element::bf16));
  EXPECT_EQ(names_of(Element{}).size(), 3u);
}

}  // namespace steps_test
}  // namespace cautious
