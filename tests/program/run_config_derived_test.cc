// What follows from a run's configuration: lengths by hand, schedules, and the group of every parameter of every model.
#include <cmath>
#include <map>

#include "run_config_source.h"

namespace cautious::run {
namespace run_config_derived_test {

TEST(RunConfigDerived, SequencesAreAsLongAsTheContextUnlessSet) {
  EXPECT_EQ(run::sequence_length(typed({})), 128);
  EXPECT_EQ(run::sequence_length(typed({{"train.seq_len", "32"}})), 32);
  EXPECT_EQ(run::sequence_length(typed({{"model.context", "1000"}})), 1000);
  EXPECT_EQ(run::sequence_length(typed({{"train.seq_len", "128"}})), 128);
}

TEST(RunConfigDerived, StepsAreRoundedUp) {
  const Flags batch{{"train.batch_size", "4"}, {"train.seq_len", "25"}};  // 100 tokens per step
  const auto steps = [&](const std::string& key, const std::string& value) {
    Flags flags = batch;
    flags.emplace_back(key, value);
    return steps_of(typed(flags));
  };
  EXPECT_EQ(steps("train.steps", "17"), 17);
  EXPECT_EQ(steps("train.tokens", "1"), 1);
  EXPECT_EQ(steps("train.tokens", "100"), 1);
  EXPECT_EQ(steps("train.tokens", "101"), 2);
  EXPECT_EQ(steps("train.tokens", "1e6"), 10000);
  EXPECT_EQ(steps("train.tokens_per_param", "1e-9"), 1);
}

TEST(RunConfigDerived, TokensPerParameterCountAllParameters) {
  // By hand: embedding 256 x 64, two layers of 4 x 64 x 64 + 3 x 64 x 176 + 2 x 64, and the last norm.
  const double parameters = 256 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 176 + 2 * 64) + 64;
  const run::RunConfig config = typed({{"train.batch_size", "8"}, {"train.tokens_per_param", "12.5"}}, "nano-100k");
  EXPECT_EQ(steps_of(config), static_cast<std::int64_t>(std::ceil(12.5 * parameters / (8 * 128))));
}

TEST(RunConfigDerived, Schedules) {
  const run::RunConfig config = typed({{"train.steps", "1000"},
                                  {"optimizer.lr", "0.5"},
                                  {"schedule.kind", "wsd"},
                                  {"schedule.warmup_steps", "10"},
                                  {"schedule.final", "0.25"},
                                  {"schedule.cooldown", "0.4"},
                                  {"schedule.decay_curve", "linear"},
                                  {"schedule.decay_final", "0.5"}});
  const Schedule schedule = schedule_of(config);
  EXPECT_EQ(lr_at(schedule, 5), 0.25);
  EXPECT_EQ(lr_at(schedule, 600), 0.5);
  EXPECT_DOUBLE_EQ(lr_at(schedule, 800), 0.5 * (1 - 0.75 * 0.5));
  EXPECT_EQ(lr_at(schedule, 1000), 0.125);
  const DecaySchedule decay = run::decay_schedule_of(config);
  EXPECT_EQ(decay_factor_at(decay, 1), 1);
  EXPECT_EQ(decay_factor_at(decay, 1000), 0.5);
  EXPECT_EQ(lr_at(schedule_of(typed({{"train.steps", "100"}, {"optimizer.lr", "1"}})), 1), 0.5) << "2% of 100 are two steps";
}

// Where a parameter belongs, by its name and not by its shape.
std::string expected_group(const std::string& name, const std::string& ends) {
  if (name == "model.embed_tokens.weight" || name == "lm_head.weight") return ends;
  return name.ends_with("_proj.weight") ? "matrices" : "vectors";
}

void expect_groups(const run::RunConfig& config, const std::string& ends) {
  const Routing routing = routing_of(config);
  for (const model::Shape& shape : model::parameter_shapes(config.model.shape)) {
    const Group& group = routing.groups[route(routing, shape.name, shape.sides)];
    EXPECT_EQ(group.name, expected_group(shape.name, ends)) << shape.name << " with " << config.optimizer.name;
  }
}

TEST(RunConfigDerived, EveryParameterHasItsGroup) {
  for (const std::string& model : model::preset_names()) {
    for (const std::string& name : recipe_names()) {
      expect_groups(typed({{"optimizer.name", name}, {"model.tied", "false"}}, model), name == "muon" ? "rest" : "embedding");
    }
    expect_groups(typed({{"optimizer.name", "lion-k"}, {"optimizer.k", "nuclear"}}, model), "rest");
  }
}

std::map<std::string, Group> groups_of(const Flags& flags) {
  std::map<std::string, Group> groups;
  for (const Group& group : routing_of(typed(flags)).groups) groups.emplace(group.name, group);
  return groups;
}

TEST(RunConfigDerived, PlainRulesHaveOneRecipe) {
  const auto groups = groups_of({{"optimizer.name", "lion"}, {"optimizer.weight_decay", "0.7"}});
  ASSERT_EQ(groups.size(), 3u);
  for (const auto& [name, group] : groups) {
    EXPECT_EQ(to_string(group.recipe), "lion beta1=0.9 beta2=0.99 decay=decoupled coupling=plain weight_decay=0.7");
    EXPECT_EQ(group.lr_multiplier, 1);
    EXPECT_EQ(group.decay, name == "vectors" ? DecaySwitch::off : DecaySwitch::on) << name;
  }
  EXPECT_EQ(groups_of({{"optimizer.decay_vectors", "true"}}).at("vectors").decay, DecaySwitch::on);
}

TEST(RunConfigDerived, RulesForMatricesHaveARest) {
  const Flags flags{{"optimizer.name", "muon"}, {"optimizer.rest.lr_multiplier", "0.25"}, {"optimizer.rest.name", "lion"}};
  const auto groups = groups_of(flags);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(name_of(groups.at("matrices").recipe.rule), "muon");
  EXPECT_EQ(groups.at("matrices").lr_multiplier, 1);
  EXPECT_EQ(groups.at("rest").decay, DecaySwitch::on);
  EXPECT_EQ(groups.at("vectors").decay, DecaySwitch::off);
  for (const std::string name : {"rest", "vectors"}) {
    EXPECT_EQ(name_of(groups.at(name).recipe.rule), "lion");
    EXPECT_EQ(groups.at(name).lr_multiplier, 0.25);
  }
  Flags with = flags;
  with.emplace_back("optimizer.decay_vectors", "true");
  EXPECT_EQ(groups_of(with).at("vectors").decay, DecaySwitch::on);
}

TEST(RunConfigDerived, AnOptimizerTakesTheRouting) {
  for (const std::string& name : recipe_names()) {
    const run::RunConfig config = typed({{"optimizer.name", name}}, "nano-100k");
    Optimizer optimizer(routing_of(config));
    std::vector<std::vector<float>> x, g;
    for (const model::Shape& shape : model::parameter_shapes(config.model.shape)) {
      std::int64_t count = 1;
      for (const std::int64_t side : shape.sides) count *= side;
      x.emplace_back(count, 0.5f);
      g.emplace_back(count, 0.25f);
      optimizer.add(shape.name, shape.sides, x.back().data(), std::as_const(g.back()).data());
    }
    optimizer.step({.lr = 0.1, .lr_max = 0.1});
    for (const auto& tensor : x) EXPECT_NE(tensor.front(), 0.5f) << name;
  }
}

}  // namespace run_config_derived_test
}  // namespace cautious::run
