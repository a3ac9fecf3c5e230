// Routing: the first route that fits decides; patterns, ranks without sides of 1, long sides, and the ready-made splits.
#include <cautious/recipe.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cautious/error.h>
#include <cautious/optimizer.h>

namespace cautious {
namespace routing_test {

using Shape = std::vector<std::int64_t>;

const Group& group(const Routing& routing, std::string_view name, const Shape& shape) {
  return routing.groups.at(route(routing, name, shape));
}

Group empty_group(std::string name) { return {.name = std::move(name), .recipe = {}}; }

bool matches(const std::string& pattern, std::string_view name) {
  const Routing routing{{empty_group("yes"), empty_group("no")}, {{.group = "yes", .pattern = pattern}, {.group = "no"}}};
  return group(routing, name, {}).name == "yes";
}

TEST(Routing, Patterns) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("blocks.*.norm.*", "blocks.11.norm.weight"));
  EXPECT_FALSE(matches("blocks.*.norm.*", "blocks.11.attention.weight"));
  EXPECT_TRUE(matches("w?", "w1"));
  EXPECT_FALSE(matches("w?", "w"));
  EXPECT_FALSE(matches("w?", "w12"));
  EXPECT_TRUE(matches("*a*b", "xaxbab"));
  EXPECT_FALSE(matches("*a*b", "xaxba"));
  EXPECT_TRUE(matches("a**", "a"));
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*b", std::string(3000, 'a')));  // must not take forever
}

TEST(Routing, Everything) {
  const Routing routing = everything(recipe("lion"));
  EXPECT_EQ(group(routing, "any", {}).decay, DecaySwitch::on);
  EXPECT_EQ(name_of(group(routing, "any", {3, 4}).recipe.rule), "lion");
}

TEST(Routing, NoDecayOnVectors) {
  const Routing routing = no_decay_on_vectors(recipe("adamw"));
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{1, 7}, Shape{7, 1, 1}, Shape{0}}) {
    EXPECT_EQ(group(routing, "b", shape).decay, DecaySwitch::off);
  }
  for (const Shape& shape : {Shape{2, 7}, Shape{3, 1, 3}, Shape{2, 3, 4, 5}})
    EXPECT_EQ(group(routing, "w", shape).decay, DecaySwitch::on);
  EXPECT_EQ(to_string(group(routing, "b", {7}).recipe), to_string(recipe("adamw")));
}

TEST(Routing, MatricesAndRest) {
  const Routing routing = matrices_and_rest(recipe("lion"), recipe("adamw"), 1000);
  EXPECT_EQ(name_of(group(routing, "w", {1000, 4}).recipe.rule), "lion");
  const Group embedding = group(routing, "e", {1001, 4});
  EXPECT_EQ(name_of(embedding.recipe.rule), "adam");
  EXPECT_EQ(embedding.decay, DecaySwitch::on);
  const Group bias = group(routing, "b", {5000});
  EXPECT_EQ(name_of(bias.recipe.rule), "adam");
  EXPECT_EQ(bias.decay, DecaySwitch::off);
}

TEST(Routing, MuonAndAdamW) {
  const Routing routing = matrices_and_rest(recipe("muon"), recipe("adamw"), 100);
  struct Sent {
    Shape shape;
    const char* rule;
    DecaySwitch decay;
  };
  for (const auto& [shape, rule, decay] :
       {Sent{{100, 4}, "muon", DecaySwitch::on}, Sent{{8, 3, 2, 2}, "muon", DecaySwitch::on},
        Sent{{101, 4}, "adam", DecaySwitch::on}, Sent{{4, 101}, "adam", DecaySwitch::on}, Sent{{7}, "adam", DecaySwitch::off},
        Sent{{500}, "adam", DecaySwitch::off}, Sent{{1, 7}, "adam", DecaySwitch::off}, Sent{{}, "adam", DecaySwitch::off}}) {
    const Group& chosen = group(routing, "w", shape);
    EXPECT_EQ(name_of(chosen.recipe.rule), rule) << testing::PrintToString(shape);
    EXPECT_EQ(chosen.decay, decay) << testing::PrintToString(shape);
  }
}

// The same through an optimizer: muon never meets a vector, and the decay of a bias is off.
TEST(Routing, MuonAndAdamWInAnOptimizer) {
  Optimizer optimizer(matrices_and_rest(recipe("muon"), recipe("adamw"), 100), {.threads = 1, .parallel_for = {}});
  std::vector<float> matrix(12, 1), bias(4, 1), embedding(202, 1);
  const std::vector<float> g(202);
  optimizer.add("matrix", {3, 4}, matrix.data(), g.data());
  optimizer.add("bias", {4}, bias.data(), g.data());
  optimizer.add("embedding", {101, 2}, embedding.data(), g.data());
  const StepReport& report = optimizer.step({.lr = 0.1});
  EXPECT_EQ(name_of(optimizer.group_of(0).recipe.rule), "muon");
  EXPECT_EQ(name_of(optimizer.group_of(2).recipe.rule), "adam");
  EXPECT_EQ(report.tensors[0].decayed, 12);
  EXPECT_EQ(report.tensors[1].decayed, 0);
  EXPECT_EQ(report.tensors[2].decayed, 202);
  EXPECT_EQ(matrix, std::vector<float>(12, 0.99f));
  EXPECT_EQ(bias, std::vector<float>(4, 1));
  EXPECT_EQ(embedding, std::vector<float>(202, 0.99f));
}

TEST(Routing, Errors) {
  const Routing narrow{{empty_group("a")}, {{.group = "a", .min_rank = 2}}};
  try {
    route(narrow, "bias", Shape{3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no route for tensor 'bias' of shape [3]; 1 routes tried, add one with pattern '*'");
    EXPECT_EQ(error.fault(), Fault::usage);
  }
  const Routing mistyped{{empty_group("matrices")}, {{.group = "matrises"}}};
  try {
    route(mistyped, "w", Shape{3, 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no parameter group named 'matrises'; did you mean 'matrices'? choices: matrices");
  }
}

}  // namespace routing_test
}  // namespace cautious
