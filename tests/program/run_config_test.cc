// A run's configuration: order of the layers, what depends on what, the way to TOML and back, and what follows from it.
#include "run/config.h"

#include <algorithm>
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
  EXPECT_EQ(config.optimizer.lr, 3e-3);
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
  const std::string text = "[model]\nlayers = 7\npreset = 'nano-1m'\n[optimizer]\nlr = 0.5\n";
  const run::RunConfig of_file = read(text);
  EXPECT_EQ(of_file.model.shape.layers, 7) << "the preset comes first, whatever the order";
  EXPECT_EQ(of_file.model.shape.width, model::preset("nano-1m").width);

  for (const run::RunConfig& config : {read(text, {{"model.preset", "nano-10m"}}), read(text, {}, "nano-10m")}) {
    EXPECT_EQ(config.model.preset, "nano-10m");
    EXPECT_EQ(config.model.shape.width, model::preset("nano-10m").width);
    EXPECT_EQ(config.model.shape.layers, 7) << "the file's keys stay";
    EXPECT_EQ(config.optimizer.lr, 0.5);
  }
  EXPECT_EQ(read(text, {{"model.layers", "9"}}, "nano-10m").model.shape.layers, 9);
}

TEST_F(RunConfigTest, NameBeforeDecayBeforeFields) {
  const run::RunConfig config =
      read("[optimizer]\ndensity = 0.25\nbeta2 = 0.95\ndecay = 'random'\nweight_decay = 0.3\nname = 'adamc'\n");
  EXPECT_EQ(to_string(config.optimizer.recipe),
            "adam beta1=0.9 beta2=0.95 eps=1e-08 decay=random density=0.25 coupling=corrected weight_decay=0.3");
}

TEST_F(RunConfigTest, AnotherRuleKeepsTheFieldsItHas) {
  const std::string text = "[optimizer]\nname = 'adamw'\nbeta1 = 0.7\nweight_decay = 0.3\ndecay = 'cautious'\n";
  const run::RunConfig config = read(text, {{"optimizer.name", "lion"}});
  EXPECT_EQ(to_string(config.optimizer.recipe), "lion beta1=0.7 beta2=0.99 decay=cautious coupling=plain weight_decay=0.3");
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
  EXPECT_EQ(field(config.optimizer.rest, "beta2"), "0.999");

  const run::RunConfig own = read(
      "[optimizer.rest]\nweight_decay = 0\nbeta1 = 0.8\nname = 'lion'\nlr_multiplier = 0.1\n"
      "[optimizer]\nname = 'lion-k'\nk = 'nuclear'\ndecay = 'cautious'\n");
  EXPECT_EQ(to_string(own.optimizer.rest), "lion beta1=0.8 beta2=0.99 decay=cautious coupling=plain weight_decay=0");
  EXPECT_EQ(own.optimizer.rest_lr_multiplier, 0.1);
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
  EXPECT_EQ(sections_of(typed({})), "model, data, optimizer, schedule, train, eval, checkpoint, log");
  EXPECT_EQ(sections_of(typed({{"optimizer.name", "muon"}})),
            "model, data, optimizer, optimizer.rest, schedule, train, eval, checkpoint, log");
}

}  // namespace run_config_test
}  // namespace cautious::run
