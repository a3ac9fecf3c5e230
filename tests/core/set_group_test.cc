// Groups between steps: numbers that change are those of an optimizer that had them from the start and the same state; what
// tensors keep cannot change. And tensors that name their group.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace set_group_test {

using cautious::FieldKind;
using cautious::Optimizer;
using cautious::Recipe;
using fixture::expect_error;
using fixture::make;

constexpr std::size_t kRows = 6, kCount = kRows * 8;

// Half of every number.
Recipe halved(Recipe recipe) {
  for (const cautious::FieldInfo& field : fields(recipe)) {
    if (field.kind == FieldKind::number) set(recipe, field.name, std::to_string(std::stod(field.value) / 2));
  }
  return recipe;
}

struct Matrix {
  std::vector<float> x = fixture::weights<float>(kCount, 1), g = fixture::weights<float>(kCount, 2);
  Optimizer optimizer;
  explicit Matrix(const Recipe& recipe) : optimizer(recipe) { optimizer.add("x", {kRows, kCount / kRows}, x.data(), g.data()); }
  void step(double lr) { optimizer.step({.lr = lr, .lr_max = 0.5}); }
  auto state() { return fixture::state_bytes(optimizer, 0, kCount); }
};

// A run that goes on under `now` with what `before` has left.
void expect_continues(const Recipe& before, const Recipe& now) {
  Matrix changed(before), fresh(now);
  for (int t = 0; t < 3; ++t) changed.step(0.05);
  fresh.x = changed.x;
  fresh.optimizer.bind(0, fresh.x.data(), fresh.g.data());
  const auto from = changed.optimizer.state(0), to = fresh.optimizer.state(0);
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) std::memcpy(to[i].data, from[i].data, kCount * fixture::bytes_of(from[i].type));
  fresh.optimizer.set_steps(0, 3);

  changed.optimizer.set_group(0, now, 0.5);
  for (int t = 0; t < 2; ++t) {
    changed.optimizer.step({.lr = 0.1, .lr_max = 1});
    fresh.step(0.05);
  }
  EXPECT_EQ(changed.x, fresh.x);
  EXPECT_EQ(changed.state(), fresh.state());
}

TEST(SetGroup, ContinuesWithTheNewNumbers) {
  std::vector<fixture::RuleName> rules = fixture::every_rule();
  for (const fixture::RuleName& rule : fixture::matrix_rules()) rules.push_back(rule);
  for (const fixture::RuleName& rule : rules) {
    for (const std::string& decay : fixture::every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const Recipe before = make(rule, decay);
      ASSERT_NE(to_string(before), to_string(halved(before)));
      expect_continues(before, halved(before));
    }
  }
  for (const char* line : {"muon schedule=cans", "muon steps=2", "muon scale=rms nesterov=on", "muon decay=cautious eps=3"}) {
    expect_continues(
        cautious::parse_recipe(std::string("muon decay=") + (std::strstr(line, "decay") ? "cautious" : "decoupled")),
        cautious::parse_recipe(line));
  }
}

TEST(SetGroup, DensitiesAreTheRecipesAgain) {
  Matrix a(make({"sgd", ""}, "random")), b(make({"sgd", ""}, "random"));
  a.optimizer.set_density(0, 0);
  a.optimizer.set_group(0, make({"sgd", ""}, "random"), 1);
  a.step(0.1), b.step(0.1);
  EXPECT_EQ(a.x, b.x);
}

TEST(SetGroup, RefusesWhatTensorsCannotFollow) {
  Matrix used(cautious::parse_recipe("muon decay=cautious")), twin(cautious::parse_recipe("muon decay=cautious"));
  used.step(0.1), twin.step(0.1);
  const auto refused = [&](const char* line, std::initializer_list<std::string_view> fragments) {
    expect_error([&] { used.optimizer.set_group(0, cautious::parse_recipe(line), 1); }, fragments);
  };
  refused("adamw decay=cautious", {"group 'all'", "muon", "adam", "cannot become"});
  refused("muon decay=anchored", {"decay=anchored", "cannot become"});
  refused("muon decay=cautious blocks=2", {"blocks=2", "cannot become"});
  expect_error([&] { used.optimizer.set_group(1, cautious::recipe("muon"), 1); }, {"group 1", "1 groups"});
  expect_error([&] { used.optimizer.set_group(0, cautious::parse_recipe("muon decay=cautious"), -1); },
               {"lr_multiplier is -1"});
  Recipe wrong = cautious::parse_recipe("muon decay=cautious");
  wrong.weight_decay = -1;
  expect_error([&] { used.optimizer.set_group(0, wrong, 1); }, {"weight_decay", "-1"});
  Matrix lion(make({"lion-k", "l1"}, "cautious"));
  expect_error([&] { lion.optimizer.set_group(0, make({"lion-k", "l2"}, "cautious"), 1); }, {"k=l1", "k=l2", "cannot become"});
  used.step(0.1), twin.step(0.1);
  EXPECT_EQ(used.x, twin.x);
  EXPECT_EQ(used.state(), twin.state());
}

TEST(ParameterGroup, ByNameComesBeforeRoutes) {
  cautious::Routing routing = cautious::no_decay_on_vectors(cautious::recipe("adamw"));
  Optimizer optimizer(routing);
  std::vector<float> x(4), g(4);
  cautious::Parameter parameter{.name = "x", .shape = {4}, .x = x.data(), .g = g.data(), .group = "matrices"};
  EXPECT_EQ(optimizer.group_of(optimizer.add(parameter)).name, "matrices");
  parameter.name = "y", parameter.group = "";
  EXPECT_EQ(optimizer.group_of(optimizer.add(parameter)).name, "vectors");
  parameter.name = "z", parameter.group = "matrixes";
  expect_error([&] { optimizer.add(parameter); }, {"matrixes", "matrices", "vectors"});
  EXPECT_EQ(optimizer.size(), 2u);
}

}  // namespace set_group_test
