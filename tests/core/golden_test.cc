// The golden vectors of docs/spec.md (tests/golden/README.md), through the public interface, for every instruction set of this
// CPU: parameters after each step, final moments and counts, bit for bit except where a case allows units in the last place.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <cautious/cautious.h>

#include "fixture.h"

namespace cautious {
namespace golden_test {

using Json = nlohmann::json;

const Json& golden() {
  static const Json all = Json::parse(std::ifstream(TEST_DATA "/golden/golden.json"));
  return all;
}

std::vector<double> numbers(const std::string& row) {
  std::istringstream words(row);
  std::vector<double> result;
  for (std::string word; words >> word;) result.push_back(std::strtod(word.c_str(), nullptr));
  return result;
}

double widened(float a) { return a; }
double widened(double a) { return a; }
double widened(Bf16 a) { return std::bit_cast<float>(static_cast<std::uint32_t>(a.bits) << 16); }

template <class T>
T stored(double a) {
  return static_cast<T>(a);
}
template <>
Bf16 stored<Bf16>(double a) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(a)) >> 16)};
}

template <class T>
std::vector<T> row_of(const Json& row) {
  std::vector<T> result;
  for (const double a : numbers(row.get<std::string>())) result.push_back(stored<T>(a));
  return result;
}

// Distance from |a| to the next larger number of the type.
double unit_of(double a) { return std::nextafter(std::abs(a), HUGE_VAL) - std::abs(a); }
double unit_of(float a) { return std::nextafter(std::abs(a), HUGE_VALF) - std::abs(a); }
double unit_of(Bf16 a) { return 0x1p16 * unit_of(static_cast<float>(widened(a))); }

// The same number including the sign of a zero, any NaN for a NaN, or at most `slack` apart.
bool agree(double ours, double expected, double slack) {
  if (std::isnan(ours) || std::isnan(expected)) return std::isnan(ours) && std::isnan(expected);
  if (slack > 0) return ours == expected || std::abs(ours - expected) <= slack;
  return ours == expected && std::signbit(ours) == std::signbit(expected);
}

template <class T>
void expect_row(const T* ours, const std::vector<T>& expected, double ulp, const std::string& what) {
  double slack = 0;
  for (const T& a : expected) slack = std::max(slack, ulp * unit_of(a));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(agree(widened(ours[i]), widened(expected[i]), slack))
        << what << "[" << i << "] is " << std::hexfloat << widened(ours[i]) << ", expected " << widened(expected[i]);
  }
}

Recipe recipe_of(const Json& one) {
  Recipe result = recipe(one["rule"].get<std::string>());
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  for (const char* field : {"decay", "mask", "coupling", "weight_decay", "density"}) {
    if (one.contains(field)) set(result, field, text(one[field]));
  }
  for (const auto& [field, value] : one["fields"].items()) set(result, field, text(value));
  return result;
}

Options options_of(const Json& one, Isa isa) {
  Options result;
  result.isa = isa;
  result.seed = one.value("seed", std::uint64_t{0});
  result.grad_clip = one.value("grad_clip", 0.0);
  result.update_rms_clip = one.value("update_rms_clip", 0.0);
  if (one.value("moments", "f32") == "bf16") result.moments = Element::bf16;
  if (one.value("nonfinite", "propagate") == "skip") result.nonfinite = Nonfinite::skip;
  const std::string rounding = one.value("rounding", "nearest");
  result.rounding = rounding == "split" ? Rounding::split : rounding == "stochastic" ? Rounding::stochastic : Rounding::nearest;
  return result;
}

void expect_state(const Optimizer& optimizer, const Json& one) {
  const double ulp = one["ulp"];
  for (const StateTensor& piece : optimizer.state(0)) {
    if (!one.contains(piece.name)) continue;
    if (piece.type == "F64") {
      expect_row(static_cast<const double*>(piece.data), row_of<double>(one[piece.name]), ulp, piece.name);
    } else if (piece.type == "F32") {
      expect_row(static_cast<const float*>(piece.data), row_of<float>(one[piece.name]), ulp, piece.name);
    } else if (piece.type == "BF16") {
      expect_row(static_cast<const Bf16*>(piece.data), row_of<Bf16>(one[piece.name]), ulp, piece.name);
    } else {
      const std::vector<double> expected = numbers(one[piece.name]);
      const auto* ours = static_cast<const std::int16_t*>(piece.data);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), ours)) << piece.name;
    }
  }
  std::size_t found = 0, wanted = 0;
  for (const char* name : {"m", "v", "low"}) {
    wanted += one.contains(name);
    for (const StateTensor& piece : optimizer.state(0)) found += one.contains(name) && piece.name == name;
  }
  EXPECT_EQ(found, wanted) << "pieces of state";
}

template <class X, class G>
void run(const Json& one, Isa isa) {
  const Json& input = golden()["inputs"][one["input"].get<std::string>()];
  std::vector<X> x = row_of<X>(input["x"]);
  std::vector<G> g(x.size());
  Routing routing = everything(recipe_of(one));
  routing.groups[0].lr_multiplier = one.value("lr_multiplier", 1.0);
  if (one.value("decay_switch", "on") == "off") routing.groups[0].decay = DecaySwitch::off;
  Optimizer optimizer(routing, options_of(one, isa));
  optimizer.add({"x", {static_cast<std::int64_t>(x.size())}, element_of<X>(), element_of<G>(), x.data(), g.data()});
  if (one.contains("anchor")) {
    optimizer.set_anchor(0, row_of<X>(golden()["inputs"][one["anchor"].get<std::string>()]["x"]).data());
  }
  const std::vector<double> lr = one["lr"];
  const double lr_max = *std::max_element(lr.begin(), lr.end());
  for (std::size_t s = 0; s < lr.size(); ++s) {
    const std::string step = "step " + std::to_string(s + 1);
    const bool paused = input["g"][s].is_null();
    if (!paused) g = row_of<G>(input["g"][s]);
    optimizer.bind(0, x.data(), paused ? nullptr : g.data());
    const double factor = one.contains("decay_factor") ? one["decay_factor"][s].get<double>() : 1.0;
    const StepReport& report = optimizer.step({.lr = lr[s], .lr_max = lr_max, .decay_factor = factor});
    expect_row(x.data(), row_of<X>(one["expected"][s]), one["ulp"], step + ": x");
    EXPECT_EQ(report.total.decayed, one["decayed"][s].get<std::int64_t>()) << step;
    EXPECT_EQ(report.total.active, one["active"][s].get<std::int64_t>()) << step;
    EXPECT_EQ(report.total.nonfinite, one.contains("bad") ? one["bad"][s].get<std::int64_t>() : 0) << step;
    EXPECT_EQ(report.skipped, one.contains("skipped") && one["skipped"][s].get<bool>()) << step;
  }
  expect_state(optimizer, one);
}

TEST(Golden, EveryCaseOnEveryInstructionSet) {
  ASSERT_GT(golden()["cases"].size(), 500u);
  for (const Isa isa : fixture::isas()) {
    for (const Json& one : golden()["cases"]) {
      SCOPED_TRACE(one["name"].get<std::string>() + " " + std::string(name_of(isa)));
      const std::string dtype = one["dtype"];
      if (dtype == "f64") {
        run<double, double>(one, isa);
      } else if (dtype == "f32") {
        run<float, float>(one, isa);
      } else if (one.value("gradient", "bf16") == "f32") {
        run<Bf16, float>(one, isa);
      } else {
        run<Bf16, Bf16>(one, isa);
      }
    }
  }
}

// Polar factors come from matrix products, which fuse a multiplication with its addition only where the processor does, so
// their bits cannot be pinned. product_test compares these with the oracle and muon_test states their properties, both within
// tolerances.
bool through_products(const Recipe& recipe) {
  if (const auto* lion = std::get_if<LionK>(&recipe.rule)) return lion->k == Convex::nuclear;
  return std::holds_alternative<Muon>(recipe.rule);
}

// Every other rule, every convex function and every decay of the library has its vectors: whoever adds one adds them too.
TEST(Golden, CoversEveryRuleAndDecay) {
  const auto has = [](auto fits) {
    const Json& cases = golden()["cases"];
    return std::any_of(cases.begin(), cases.end(), fits);
  };
  int exempt = 0;
  for (const std::string& decay : decay_names()) {
    for (const std::string& name : recipe_names()) {
      const std::string rule(name_of(recipe(name).rule));
      const bool found = has([&](const Json& one) { return one["rule"] == rule && one["decay"] == decay; });
      EXPECT_NE(found, through_products(recipe(name))) << rule << " " << decay;
      exempt += !found;
    }
    for (const std::string_view k : names_of(Convex{})) {
      Recipe lion = recipe("lion-k");
      set(lion, "k", k);
      const bool found = has([&](const Json& one) { return one["fields"].value("k", "") == k && one["decay"] == decay; });
      EXPECT_NE(found, through_products(lion)) << k << " " << decay;
      exempt += !found;
    }
  }
  EXPECT_EQ(exempt, 2 * static_cast<int>(decay_names().size())) << "muon and nuclear are the exceptions";
}

}  // namespace golden_test
}  // namespace cautious
