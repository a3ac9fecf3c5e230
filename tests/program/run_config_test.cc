// A run's configuration: order of the layers, what depends on what, the way to TOML and back, and what follows from it: lengths
// by hand, schedules, and the group of every parameter of every model.
#include "run/config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <cautious/rules/lion_k.h>

#include "base/text.h"
#include "run_config_source.h"

namespace cautious::run {
namespace run_config_test {

std::string field(const Recipe& recipe, const std::string& name) {
  for (const FieldInfo& info : fields(recipe)) {
    if (info.name == name) return info.value;
  }
  return "no such field";
}

TEST_F(RunConfigTest, NothingGivenIsTheDefault) {
  const run::RunConfig config = run::read_config({});
  EXPECT_EQ(to_toml(config), to_toml(run::RunConfig{}));
  EXPECT_EQ(to_toml(read("")), to_toml(run::RunConfig{}));
  EXPECT_EQ(config.model.preset, "nano-300k");
  EXPECT_EQ(config.optimizer.lr, 5e-3);
}

TEST_F(RunConfigTest, ValuesOfEveryType) {
  const run::RunConfig config = read(R"(
[data]
path = ["a.txt", "b, c.txt"]
val_path = "v.txt"
tokenizer = "t\u0041.json"
[optimizer]
lr = 1
name = "lion"
beta1 = 0.95
[train]
tokens = 1e6
batch_size = 8.0
seed = 9223372036854775807
[log]
tensors = true
[schedule]
kind = "wsd"
cooldown_curve = "one-minus-sqrt"
[model]
norm = "rms-offset"
)");
  EXPECT_EQ(config.data.path, (std::vector<std::string>{"a.txt", "b, c.txt"}));
  EXPECT_EQ(config.data.val_path, std::vector<std::string>{"v.txt"});
  EXPECT_EQ(config.data.tokenizer, "tA.json");
  EXPECT_EQ(config.optimizer.lr, 1);
  EXPECT_EQ(std::get<Lion>(config.optimizer.recipe.rule).beta1, 0.95);
  EXPECT_EQ(config.train.tokens, 1000000);
  EXPECT_EQ(config.train.batch_size, 8);
  EXPECT_EQ(config.train.seed, 9223372036854775807u);
  EXPECT_TRUE(config.log.tensors);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::wsd);
  EXPECT_EQ(config.schedule.cooldown_curve, Curve::one_minus_sqrt);
  EXPECT_EQ(config.model.shape.norm, model::NormKind::rms_offset);
}

TEST_F(RunConfigTest, TypedValues) {
  const run::RunConfig config = typed({{"data.path", "a,b"},
                                       {"data.val_path", R"(["x,y"])"},
                                       {"train.steps", "1e3"},
                                       {"log.tensorboard", "false"},
                                       {"optimizer.moments", "bf16"},
                                       {"optimizer.lr", "1"},
                                       {"optimizer.lr", "2"}});
  EXPECT_EQ(config.data.path, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.data.val_path, std::vector<std::string>{"x,y"});
  EXPECT_EQ(config.train.steps, 1000);
  EXPECT_FALSE(config.log.tensorboard);
  EXPECT_EQ(config.optimizer.options.moments, Element::bf16);
  EXPECT_EQ(config.optimizer.lr, 2) << "the last one decides";
  EXPECT_TRUE(typed({{"data.path", ""}}).data.path.empty());
}

TEST_F(RunConfigTest, CommandLineBeforeFileBeforePreset) {
  const run::RunConfig config = read("[model]\nlayers = 7\npreset = 'nano-1m'\n[optimizer]\nlr = 0.5\n");
  EXPECT_EQ(config.model.shape.layers, 7) << "the preset comes first, whatever the order";
  EXPECT_EQ(config.model.shape.width, model::preset("nano-1m").width);
  EXPECT_EQ(config.optimizer.lr, 0.5);
  EXPECT_EQ(read("[model]\nlayers = 7\n", {{"model.layers", "9"}}, "nano-10m").model.shape.layers, 9);
}

TEST_F(RunConfigTest, NameBeforeDecayBeforeFields) {
  const run::RunConfig config =
      read("[optimizer]\ndensity = 0.25\nbeta2 = 0.95\ndecay = 'random'\nweight_decay = 0.3\nname = 'adamc'\n");
  EXPECT_EQ(to_string(config.optimizer.recipe),
            "adam beta1=0.9 beta2=0.95 eps=1e-08 decay=random density=0.25 coupling=corrected weight_decay=0.3");
}

TEST_F(RunConfigTest, OneHorizonAndOneWarmupDecide) {
  const run::RunConfig config = read("[train]\nsteps = 70\n[schedule]\nwarmup_steps = 7\n");
  EXPECT_EQ(config.train.steps, 70);
  EXPECT_EQ(config.train.tokens_per_param, 0);
  EXPECT_EQ(config.schedule.warmup_steps, 7);
  EXPECT_EQ(config.schedule.warmup_ratio, 0);

  const run::RunConfig changed =
      read("[train]\nsteps = 70\n[schedule]\nwarmup_steps = 7\n", {{"train.tokens", "5000"}, {"schedule.warmup_ratio", "0.5"}});
  EXPECT_EQ(changed.train.steps, 0);
  EXPECT_EQ(changed.train.tokens, 5000);
  EXPECT_EQ(changed.schedule.warmup_steps, 0);
  EXPECT_EQ(changed.schedule.warmup_ratio, 0.5);
  EXPECT_EQ(typed({{"schedule.warmup_steps", "0"}}).schedule.warmup_ratio, 0) << "no warmup, not the default one";
}

TEST_F(RunConfigTest, TheRestTakesTheDecayOfTheMatrices) {
  const run::RunConfig config = read("[optimizer]\nname = 'muon'\nweight_decay = 0.3\ndecay = 'random'\ndensity = 0.125\n");
  EXPECT_EQ(field(config.optimizer.rest, "decay"), "random");
  EXPECT_EQ(field(config.optimizer.rest, "density"), "0.125");
  EXPECT_EQ(field(config.optimizer.rest, "weight_decay"), "0.3");
  EXPECT_EQ(field(config.optimizer.rest, "beta2"), "0.95");

  const run::RunConfig own = read(
      "[optimizer.rest]\nweight_decay = 0\nbeta1 = 0.8\nname = 'lion'\nlr_multiplier = 0.1\n"
      "[optimizer]\nname = 'lion-k'\nk = 'nuclear'\ndecay = 'cautious'\n");
  EXPECT_EQ(to_string(own.optimizer.rest),
            "lion beta1=0.8 beta2=0.95 decay=cautious mask=direction coupling=plain weight_decay=0");
  EXPECT_EQ(own.optimizer.rest_lr_multiplier, 0.1);

  const run::RunConfig masked = read("[optimizer]\nname = 'muon'\nmask = 'momentum'\ndecay = 'cautious'\n");
  EXPECT_EQ(field(masked.optimizer.recipe, "mask"), "momentum");
  EXPECT_EQ(field(masked.optimizer.rest, "mask"), "direction") << "adam does not shape its direction";
}

TEST_F(RunConfigTest, TomlGivesTheSameConfiguration) {
  for (const std::string& model : model::preset_names()) {
    for (const std::string& name : recipe_names()) {
      for (const std::string_view kind : names_of(ScheduleKind{})) {
        const run::RunConfig config = typed({{"optimizer.name", name}, {"schedule.kind", std::string(kind)}}, model);
        const std::string text = to_toml(config);
        ASSERT_EQ(to_toml(read(text)), text) << model << ' ' << name << ' ' << kind;
      }
    }
  }
}

TEST_F(RunConfigTest, TomlKeepsOddValues) {
  run::RunConfig config = typed({{"optimizer.name", "muon"},
                                 {"optimizer.schedule", "custom"},
                                 {"optimizer.coefficients", "3.4445,-4.775,2.0315"},
                                 {"optimizer.lr", "0.1234567890123456789"},
                                 {"optimizer.rest.name", "lion-k"},
                                 {"optimizer.rest.k", "huber"},
                                 {"optimizer.rest.decay", "random"},
                                 {"optimizer.rest.density", "0.3"},
                                 {"schedule.warmup_steps", "3"},
                                 {"train.steps", "70"}});
  config.data.path = {"a \"b\"\\c.txt", "tab\there, and\nnewline", "\xc3\xa9.txt"};
  config.data.cache = "#no comment";
  const run::RunConfig again = read(to_toml(config));
  EXPECT_EQ(to_toml(again), to_toml(config));
  EXPECT_EQ(again.data.path, config.data.path);
  EXPECT_EQ(again.data.cache, config.data.cache);
  EXPECT_EQ(again.optimizer.lr, config.optimizer.lr);
  EXPECT_EQ(to_string(again.optimizer.recipe), to_string(config.optimizer.recipe));
  EXPECT_EQ(to_string(again.optimizer.rest), to_string(config.optimizer.rest));
}

std::string as_typed(const std::string& toml) { return toml.starts_with('"') ? toml.substr(1, toml.size() - 2) : toml; }

TEST_F(RunConfigTest, EveryKeyTakesItsOwnValue) {
  for (const Flags& start :
       {Flags{{"data.path", "a,b"}}, Flags{{"optimizer.name", "muon"}, {"train.steps", "9"}},
        Flags{{"optimizer.name", "lion-k"}, {"optimizer.decay", "random"}, {"schedule.warmup_steps", "5"}}}) {
    const run::RunConfig config = typed(start);
    std::set<std::string> names;
    for (const run::ConfigKey& key : run::config_keys(config)) {
      EXPECT_TRUE(names.insert(key.name).second) << key.name << " is there twice";
      EXPECT_FALSE(key.help.empty()) << key.name;
      EXPECT_FALSE(key.valid.empty()) << key.name;
      if (key.value.empty()) continue;  // another one decides
      EXPECT_EQ(to_toml(read(to_toml(config), {{key.name, as_typed(key.value)}})), to_toml(config)) << key.name;
    }
  }
}

TEST_F(RunConfigTest, KeysInOrderOfTheirSections) {
  const auto sections_of = [](const run::RunConfig& config) {
    std::vector<std::string> sections;
    for (const run::ConfigKey& key : run::config_keys(config)) {
      const std::string section = key.name.substr(0, key.name.rfind('.'));
      if (sections.empty() || sections.back() != section) sections.push_back(section);
    }
    return base::join(sections);
  };
  EXPECT_EQ(sections_of(typed({})), "task, model, data, lora, optimizer, schedule, train, eval, checkpoint, log");
  EXPECT_EQ(sections_of(typed({{"optimizer.name", "muon"}})),
            "task, model, data, lora, optimizer, optimizer.rest, schedule, train, eval, checkpoint, log");
}

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
  EXPECT_EQ(lr_at(schedule_of(typed({{"train.steps", "100"}, {"optimizer.lr", "1"}})), 5), 0.5) << "10% of 100 are ten steps";
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
    EXPECT_EQ(to_string(group.recipe), "lion beta1=0.9 beta2=0.95 decay=decoupled coupling=plain weight_decay=0.7");
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

}  // namespace run_config_test
}  // namespace cautious::run
