// Wrong use of the C++ interface: always an Error that names the value, never a crash, and nothing has changed.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "fixture.h"

namespace optimizer_errors_test {

using cautious::Element;
using cautious::Optimizer;
using cautious::Options;
using cautious::Recipe;
using fixture::expect_error;
using fixture::make;

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// A running optimizer of two tensors, one adamc-like, that must survive every wrong call.
class Misuse : public testing::Test {
 protected:
  explicit Misuse(const std::string& decay = "cautious") : decay_(decay), used(recipe()), twin(recipe()) {
    for (auto* each : {&used, &twin}) {
      auto& x = each == &used ? x_ : twin_x_;
      x = fixture::weights<float>(50, 1);
      each->add("x", {5, 10}, x.data(), g_.data());
      each->step({.lr = 0.01, .lr_max = 0.1});
    }
  }
  // The wrong call has left no trace: its twin, which never saw it, takes the same next steps.
  ~Misuse() override {
    EXPECT_EQ(used.size(), twin.size());
    EXPECT_EQ(used.steps_of(0), twin.steps_of(0));
    for (int t = 0; t < 2; ++t) {
      const auto a = used.step({.lr = 0.01, .lr_max = 0.1}), b = twin.step({.lr = 0.01, .lr_max = 0.1});
      EXPECT_TRUE(fixture::same(a.total, b.total));
      EXPECT_EQ(a.step, b.step);
    }
    EXPECT_EQ(x_, twin_x_);
    EXPECT_EQ(fixture::state_bytes(used, 0, 50), fixture::state_bytes(twin, 0, 50));
  }
  cautious::Parameter parameter() {
    cautious::Parameter p;
    p.name = std::string(1, 'y'), p.shape = {50}, p.x = x_.data(), p.g = g_.data();
    return p;
  }
  void add_fails(const std::function<void(cautious::Parameter&)>& spoil, std::initializer_list<std::string_view> fragments) {
    cautious::Parameter p = parameter();
    spoil(p);
    expect_error([&] { used.add(p); }, fragments);
  }
  void step_fails(const cautious::StepInput& input, std::initializer_list<std::string_view> fragments) {
    expect_error([&] { used.step(input); }, fragments);
  }

 private:
  Recipe recipe() const {
    Recipe made = make({"adam", ""}, decay_);
    made.coupling = cautious::Coupling::corrected;
    return made;
  }
  std::string decay_;
  std::vector<float> x_, twin_x_, g_ = fixture::weights<float>(50, 2);

 protected:
  Optimizer used, twin;
};
class MisuseOfRandom : public Misuse {
 protected:
  MisuseOfRandom() : Misuse("random") {}
};

TEST(UnknownNames, ComeWithASuggestion) {
  expect_error([] { cautious::recipe("adanw"); }, {"adanw", "adamw", "choices", "lion"});
  expect_error([] { cautious::recipe(""); }, {"''", "choices"});
  expect_error([] { cautious::decay("cautios"); }, {"cautios", "did you mean 'cautious'", "layerwise"});
  Recipe recipe = cautious::recipe("adam");
  const std::string before = to_string(recipe);
  expect_error([&] { set(recipe, "beta_1", "0.9"); }, {"beta_1", "beta1"});
  expect_error([&] { set(recipe, "decay", "sliding"); }, {"sliding", "decoupled"});
  expect_error([&] { set(recipe, "coupling", "plane"); }, {"plane", "plain"});
  expect_error([&] { set(recipe, "beta", "0.9"); }, {"beta", "adam"});
  EXPECT_EQ(before, to_string(recipe));
}

TEST(Fields, OutOfRangeByNameOrMemberAreRefused) {
  Recipe recipe = cautious::recipe("adam");
  const std::string before = to_string(recipe);
  for (const std::string value : {"1", "-0.1", "nan", "inf", "0.9x", "", " 0.9", "1e400"}) {
    expect_error([&] { set(recipe, "beta1", value); }, {"beta1", value});
  }
  for (const std::string value : {"-1", "nan", "inf", "zero"})
    expect_error([&] { set(recipe, "weight_decay", value); }, {"weight_decay", value});
  EXPECT_EQ(before, to_string(recipe));

  const auto refused = [](const Recipe& wrong, std::initializer_list<std::string_view> fragments) {
    expect_error([&] { check(wrong); }, fragments);
    expect_error([&] { Optimizer optimizer(wrong); }, fragments);
  };
  Recipe wrong = recipe;
  wrong.rule = cautious::Adam{.beta1 = 1};
  refused(wrong, {"beta1", "1", "[0, 1)"});
  wrong.rule = cautious::Adam{.beta2 = kNan};
  refused(wrong, {"beta2", "nan"});
  wrong.rule = cautious::Adam{.eps = -1};
  refused(wrong, {"eps", "-1"});
  wrong.rule = cautious::LionK{.p = 0.5};
  refused(wrong, {"p", "0.5"});
  wrong.rule = cautious::LionK{.k = static_cast<cautious::Convex>(99)};
  refused(wrong, {"k", "99", "l1"});
  wrong = recipe;
  wrong.weight_decay = kNan;
  refused(wrong, {"weight_decay", "nan"});
  wrong.weight_decay = -0.5;
  refused(wrong, {"weight_decay", "-0.5"});
  wrong = recipe;
  wrong.decay = cautious::Random{1.5};
  refused(wrong, {"density", "1.5"});
}

TEST(OptionsErrors, AreRefusedWithTheValue) {
  const auto refused = [](const std::function<void(Options&)>& spoil, std::initializer_list<std::string_view> fragments) {
    Options options;
    spoil(options);
    expect_error([&] { Optimizer optimizer(cautious::recipe("adamw"), options); }, fragments);
  };
  refused([](Options& o) { o.moments = Element::f64; }, {"moments", "f64", "f32", "bf16"});
  refused([](Options& o) { o.update_rms_clip = -1; }, {"update_rms_clip", "-1"});
  refused([](Options& o) { o.update_rms_clip = kNan; }, {"update_rms_clip", "nan"});
  refused([](Options& o) { o.grad_clip = -0.25; }, {"grad_clip", "-0.25"});
  refused([](Options& o) { o.grad_clip = kInfinity; }, {"grad_clip", "inf"});
  refused([](Options& o) { o.threads = -3; }, {"threads", "-3"});
  refused([](Options& o) { o.moments = static_cast<Element>(9); }, {"moments", "9"});
  refused([](Options& o) { o.rounding = static_cast<cautious::Rounding>(9); }, {"rounding", "9"});
  refused([](Options& o) { o.nonfinite = static_cast<cautious::Nonfinite>(9); }, {"nonfinite", "9"});
  refused([](Options& o) { o.isa = static_cast<cautious::Isa>(9); }, {"isa", "9"});
}

TEST_F(Misuse, LearningRates) {
  step_fails({.lr = -0.01, .lr_max = 0.1}, {"lr", "-0.01"});
  step_fails({.lr = kNan, .lr_max = 0.1}, {"lr", "nan"});
  step_fails({.lr = kInfinity, .lr_max = 0.1}, {"lr", "inf"});
  step_fails({}, {"lr is nan"});  // forgotten
  step_fails({.lr = 0.01}, {"lr_max", "0", "corrected"});
  step_fails({.lr = 0.01, .lr_max = -1}, {"lr_max", "-1"});
  step_fails({.lr = 0.01, .lr_max = kNan}, {"lr_max", "nan"});
  step_fails({.lr = 0.01, .lr_max = 0.1, .decay_factor = -1}, {"decay_factor", "-1"});
  step_fails({.lr = 0.01, .lr_max = 0.1, .decay_factor = kNan}, {"decay_factor", "nan"});
  const std::vector<double> negative{-2}, two{1, 1};
  step_fails({.lr = 0.01, .lr_max = 0.1, .tensor_factors = negative}, {"tensor_factors[0]", "-2"});
  step_fails({.lr = 0.01, .lr_max = 0.1, .tensor_factors = two}, {"tensor_factors", "2 numbers", "1 tensors"});
}

TEST_F(Misuse, Tensors) {
  add_fails([](auto& p) { p.name = std::string(1, 'x'); }, {"'x'"});
  add_fails([](auto& p) { p.name.clear(); }, {"name"});
  add_fails([](auto& p) { p.shape = {5, -2}; }, {"'y'", "-2"});
  add_fails([](auto& p) { p.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}; }, {"'y'"});
  add_fails([](auto& p) { p.x = nullptr; }, {"'y'", "null"});
  add_fails([](auto& p) { p.element = Element::f64, p.gradient = Element::bf16; }, {"'y'", "f64", "bf16"});
  add_fails([](auto& p) { p.gradient = Element::bf16; }, {"'y'", "f32", "bf16"});
  add_fails([](auto& p) { p.gradient = Element::f64; }, {"'y'", "f32", "f64"});
  add_fails([](auto& p) { p.element = p.gradient = static_cast<Element>(9); }, {"'y'", "9"});
}

TEST_F(Misuse, IndicesAndBuffers) {
  const std::vector<float> other(50);
  expect_error([&] { used.bind(7, nullptr, nullptr); }, {"7", "1"});
  expect_error([&] { used.bind(0, nullptr, other.data()); }, {"'x'", "null"});
  expect_error([&] { used.set_anchor(7, other.data()); }, {"7"});
  expect_error([&] { used.set_anchor(0, other.data()); }, {"'x'", "cautious", "anchored"});
  expect_error([&] { used.set_density(7, 0.5); }, {"7"});
  expect_error([&] { used.set_density(0, 0.5); }, {"'x'", "cautious", "random"});
  expect_error([&] { used.steps_of(7); }, {"7"});
  expect_error([&] { used.group_of(7); }, {"7"});
  expect_error([&] { used.state(7); }, {"7"});
}

// Whatever a tensor is called, a message about it is one line.
TEST(OddNames, StayOnOneLine) {
  const std::string name = "a\nb\tc\x1b[2J";
  std::vector<float> x(4, 1), g(4, 1);
  Optimizer optimizer(make({"adam", ""}, "cautious"), {.nonfinite = cautious::Nonfinite::error});
  optimizer.add(name, {4}, x.data(), g.data());
  const auto one_line = [](const std::function<void()>& wrong) {
    try {
      wrong();
      ADD_FAILURE() << "no error";
    } catch (const cautious::Error& error) {
      const std::string_view text = error.what();
      EXPECT_TRUE(std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) << text;
      EXPECT_NE(text.find("'a\\x0ab\\x09c\\x1b"), text.npos) << text;
    }
  };
  one_line([&] { optimizer.add(name, {4}, x.data(), g.data()); });
  one_line([&] { optimizer.add(name + "2", {4, -1}, x.data(), g.data()); });
  one_line([&] { optimizer.add(name + "2", {5}, std::span(x), std::span<const float>(g)); });
  one_line([&] { optimizer.bind(0, nullptr, g.data()); });
  one_line([&] { optimizer.set_anchor(0, x.data()); });
  one_line([&] { optimizer.set_density(0, 0.5); });
  const auto path = std::filesystem::path(testing::TempDir()) / "odd_names.safetensors";
  optimizer.save(path);
  Optimizer other(make({"lion", ""}, "cautious"), {.nonfinite = cautious::Nonfinite::error});
  other.add(name, {4}, x.data(), g.data());
  one_line([&] { other.load(path); });
  std::filesystem::remove(path);
  g[1] = static_cast<float>(kNan);
  one_line([&] { optimizer.step({.lr = 0.01, .lr_max = 0.1}); });
}

TEST_F(MisuseOfRandom, Densities) {
  for (const auto& [density, text] : {std::pair{-0.1, "-0.1"}, {1.1, "1.1"}, {kNan, "nan"}}) {
    expect_error([&, value = density] { used.set_density(0, value); }, {"density", text, "[0, 1]"});
  }
}

TEST(RoutingErrors, AreRefused) {
  std::vector<float> x(4), g(4);
  cautious::Routing only_w = cautious::everything(cautious::recipe("adamw"));
  only_w.routes[0].pattern = "w*";
  Optimizer optimizer(only_w);
  expect_error([&] { optimizer.add("bias", {4}, x.data(), g.data()); }, {"bias"});
  EXPECT_EQ(optimizer.size(), 0u);

  cautious::Routing lost = cautious::everything(cautious::recipe("adamw"));
  lost.routes[0].group = "nowhere";
  expect_error(
      [&] {
        Optimizer wrong(lost);
        wrong.add("w", {4}, x.data(), g.data());
      },
      {"nowhere"});

  cautious::Routing scaled = cautious::everything(cautious::recipe("adamw"));
  for (const auto& [multiplier, text] : {std::pair{-1.0, "-1"}, {kNan, "nan"}, {kInfinity, "inf"}}) {
    scaled.groups[0].lr_multiplier = multiplier;
    expect_error([&] { Optimizer wrong(scaled); }, {"lr_multiplier", text});
  }
}

}  // namespace optimizer_errors_test
