// The runs of a plan: which there are, what they are made of, and what distinguishes one from another.
#include <map>
#include <set>

#include "study_plan.h"

namespace cautious::study {
namespace expand_test {

using Expand = StudyPlan;

std::map<std::string, std::string> values_of(const run::RunConfig& config) {
  std::map<std::string, std::string> values;
  for (const run::ConfigKey& key : run::config_keys(config)) values[key.name] = key.value;
  return values;
}

const PlannedRun& run_of(const std::vector<PlannedRun>& runs, std::string_view arm, std::size_t at = 0) {
  for (const PlannedRun& run : runs) {
    if (run.arm == arm && at-- == 0) return run;
  }
  throw std::out_of_range("no such run");
}

TEST_F(Expand, TheExampleOfTheHeader) {
  const auto runs = expand(read(kExample));
  ASSERT_EQ(runs.size(), 2u * 4 + 3 * 6);
  const std::vector<std::string> arms{"plain", "plain", "cwd", "cwd", "random", "random"};
  std::set<std::string> hashes, folders;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PlannedRun& run = runs[i];
    const std::string decay = i % 2 == 0 ? "0.1" : "1";
    const bool tuning = i < 8;
    EXPECT_EQ(run.tuning, tuning);
    EXPECT_EQ(run.candidate, !tuning);
    EXPECT_EQ(run.share, tuning ? 1 : 0.5);
    EXPECT_EQ(run.arm, tuning ? arms[i % 4] : arms[(i - 8) % 6]);
    EXPECT_EQ(run.seed, tuning ? 100000 + i / 4 : (i - 8) / 6);
    EXPECT_EQ(run.point, (Overrides{{"optimizer.weight_decay", decay}}));
    EXPECT_EQ(run.hash.size(), 16u);
    EXPECT_EQ(run.hash.find_first_not_of("0123456789abcdef"), std::string::npos) << run.hash;
    EXPECT_EQ(run.folder, run.arm + "_weight_decay=" + decay + "_seed=" + std::to_string(run.seed) + "_" + run.hash);
    EXPECT_EQ(run.follows, run.arm == "random" ? static_cast<std::ptrdiff_t>(i) - 2 : -1);
    EXPECT_EQ(run.config.optimizer.recipe.weight_decay, i % 2 == 0 ? 0.1 : 1.0);
    EXPECT_EQ(name_of(run.config.optimizer.recipe.decay), run.arm == "plain" ? "decoupled"
                                                          : run.arm == "cwd" ? "cautious"
                                                                             : "random");
    EXPECT_EQ(values_of(run.config).at("log.decay_trace"), run.arm == "cwd" && !tuning ? "true" : "false");
    hashes.insert(run.hash);
    folders.insert(run.folder);
  }
  EXPECT_EQ(hashes.size(), 26u);
  EXPECT_EQ(folders.size(), 26u);
}

TEST_F(Expand, ArmsOfASeedShareSeedModelAndData) {
  for (const PlannedRun& run : expand(read(kExample))) {
    EXPECT_EQ(run.config.train.seed, run.seed);
    EXPECT_EQ(run.config.train.threads, 1);
    EXPECT_EQ(run.config.data.path, std::vector<std::string>{"gcide"});
    EXPECT_EQ(run.config.model.preset, "nano-100k");
  }
  const auto runs = expand(read(kExample));
  for (const PlannedRun& run : runs) {
    auto mine = values_of(run.config), first = values_of(runs.front().config);
    first["train.seed"] = std::to_string(run.seed);
    for (const std::string key :
         {"optimizer.decay", "optimizer.mask", "optimizer.density", "optimizer.weight_decay", "log.decay_trace"}) {
      mine.erase(key);
      first.erase(key);
    }
    EXPECT_EQ(mine, first) << run.folder;
  }
}

TEST_F(Expand, GridPointsInTheOrderOfTheFileAndArmsWithoutAGridOnce) {
  const auto runs = expand(read(R"(seeds = [7, 3]
[grid]
"train.steps" = [30, 20]
"optimizer.lr" = [1e-3, 2e-3]
[[arm]]
name = "one"
grid = false
optimizer.lr = 5.0
[[arm]]
name = "all"
)"));
  ASSERT_EQ(runs.size(), 10u);
  EXPECT_EQ(runs[0].arm, "one");
  EXPECT_TRUE(runs[0].point.empty());
  EXPECT_EQ(runs[0].folder, "one_seed=7_" + runs[0].hash);
  EXPECT_EQ(runs[0].config.optimizer.lr, 5);
  const std::vector<std::pair<std::int64_t, double>> points{{30, 1e-3}, {30, 2e-3}, {20, 1e-3}, {20, 2e-3}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(runs[1 + i].config.train.steps, points[i].first);
    EXPECT_EQ(runs[1 + i].config.optimizer.lr, points[i].second);
  }
  EXPECT_TRUE(runs[4].folder.starts_with("all_steps=20_lr=0.002_seed=7_")) << runs[4].folder;
  EXPECT_EQ(runs[5].seed, 3u);
}

TEST_F(Expand, ALaterLayerReplacesAKeyAndWhatCompetesWithIt) {
  const auto runs = expand(read(R"(seeds = 1
[base]
train.tokens_per_param = 3
schedule.warmup_steps = 4
optimizer.lr = 1.0
[[arm]]
name = "a"
[[arm]]
name = "b"
train.steps = 50
schedule.warmup_ratio = 0.5
optimizer.lr = 2.0
)"));
  EXPECT_EQ(runs[0].config.train.tokens_per_param, 3);
  EXPECT_EQ(runs[0].config.schedule.warmup_steps, 4);
  EXPECT_EQ(runs[0].config.optimizer.lr, 1);
  EXPECT_EQ(runs[1].config.train.steps, 50);
  EXPECT_EQ(runs[1].config.train.tokens_per_param, 0);
  EXPECT_EQ(runs[1].config.schedule.warmup_steps, 0);
  EXPECT_EQ(runs[1].config.schedule.warmup_ratio, 0.5);
  EXPECT_EQ(runs[1].config.optimizer.lr, 2);
}

// The controls come before their reference arms, set keys of their own, and of these one decays everywhere and one does not.
TEST_F(Expand, ControlsStartFromTheirReferenceArm) {
  const auto runs = expand(read(R"(seeds = [0, 1]
[base]
optimizer.name = "muon"
optimizer.rest.decay = "none"
[grid]
"optimizer.rest.beta2" = [0.9, 0.95]
[[arm]]
name = "budget"
budget_of = "cwd"
optimizer.grad_clip = 3.0
[[arm]]
name = "density"
density_of = "both"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
optimizer.lr = 0.5
[[arm]]
name = "both"
optimizer.decay = "cautious"
optimizer.rest.decay = "gradient"
)"));
  ASSERT_EQ(runs.size(), 16u);
  std::vector<std::string> order;
  for (std::size_t i = 0; i < 8; i += 2) order.push_back(runs[i].arm);
  EXPECT_EQ(order, (std::vector<std::string>{"cwd", "both", "budget", "density"}));
  const PlannedRun& budget = run_of(runs, "budget", 3);
  EXPECT_EQ(budget.seed, 1u);
  EXPECT_EQ(budget.follows, 9);
  EXPECT_EQ(runs[9].arm, "cwd");
  EXPECT_EQ(runs[9].seed, 1u);
  EXPECT_EQ(runs[9].point, budget.point);
  EXPECT_EQ(name_of(budget.config.optimizer.recipe.decay), "decoupled");
  EXPECT_EQ(name_of(budget.config.optimizer.rest.decay), "none");
  EXPECT_EQ(budget.config.optimizer.lr, 0.5);
  EXPECT_EQ(budget.config.optimizer.options.grad_clip, 3);
  const PlannedRun& density = run_of(runs, "density");
  EXPECT_EQ(density.follows, 2);
  EXPECT_EQ(name_of(density.config.optimizer.recipe.decay), "random");
  EXPECT_EQ(name_of(density.config.optimizer.rest.decay), "random");
  EXPECT_EQ(density.config.optimizer.density_from + budget.config.optimizer.budget_from, "") << "directories come later";
  EXPECT_EQ(density.config.optimizer.lr, run::usual_lr("muon"));
}

// With densities a part that does not decay has density 0; a budget is spent by plain coupling.
TEST_F(Expand, ControlsLeaveOpenWhatTheReferenceRunDecides) {
  Plan plan = small({{"optimizer.name", "muon"}, {"optimizer.rest.decay", "none"}});
  plan.arms[0].overrides = {{"optimizer.decay", "cautious"}, {"optimizer.coupling", "independent"}};
  plan.arms.push_back({"density", {}, "a", ""});
  plan.arms.push_back({"budget", {}, "", "a"});
  const auto runs = expand(plan);
  EXPECT_EQ(name_of(runs[1].config.optimizer.rest.decay), "random");
  EXPECT_EQ(name_of(runs[1].config.optimizer.recipe.coupling), "independent");
  EXPECT_EQ(name_of(runs[2].config.optimizer.rest.decay), "none");
  EXPECT_EQ(name_of(runs[2].config.optimizer.recipe.coupling), "plain");
}

TEST_F(Expand, ControlsThatDoNotFitTheirReference) {
  Plan plan = small({{"train.steps", "10"}});
  plan.arms.push_back({"b", {{"train.steps", "9"}}, "a", ""});
  EXPECT_EQ(expand(plan).at(1).config.train.steps, 9);
  plan.arms[1].overrides = {{"train.steps", "11"}};
  EXPECT_EQ(message([&] { expand(plan); }),
            "arm 'b' has 11 steps, but its reference arm 'a' has 10; remove what makes it longer");
  plan.arms[1].overrides = {{"model.layers", "1"}};
  EXPECT_EQ(message([&] { expand(plan); }), "arm 'b' has another model than its reference arm 'a'; remove its keys of model");
  plan.arms[1] = {"b", {{"optimizer.coupling", "squared"}}, "", "a"};
  EXPECT_EQ(message([&] { expand(plan); }), "arm 'b' sets optimizer.coupling, which budget_of decides; remove one of them");
}

// A random arm has a density, which plain decay has not.
TEST_F(Expand, ControlsOfARandomArm) {
  const auto runs = expand(read(R"(seeds = 1
[grid]
"optimizer.density" = [0.25, 0.75]
[[arm]]
name = "coin"
optimizer.decay = "random"
[[arm]]
name = "budget"
budget_of = "coin"
)"));
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[3].follows, 1);
  EXPECT_EQ(runs[3].point, (Overrides{{"optimizer.density", "0.75"}}));
  EXPECT_EQ(name_of(runs[3].config.optimizer.recipe.decay), "decoupled");
  EXPECT_NE(runs[2].hash, runs[3].hash) << "they follow different runs";
}

TEST_F(Expand, FoldersAreSafe) {
  Plan plan = small({});
  plan.grid = {{"data.path", {"/a/../b c", R"(["x", "y"])", std::string(500, 'x')}}};
  const auto runs = expand(plan);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].folder, "a_path=-a-..-b-c_seed=0_" + runs[0].hash);
  EXPECT_EQ(runs[1].folder, "a_path=--x----y--_seed=0_" + runs[1].hash);
  EXPECT_LT(runs[2].folder.size(), 200u);
}

// A plan that was not read from a file is checked all the same.
TEST_F(Expand, Errors) {
  Plan plan = small({{"optimizer.lr", "x"}});
  EXPECT_EQ(message([&] { expand(plan); }), "optimizer.lr is 'x', not a number; valid: (0, inf)");
  plan.base = {{"train.grad_accum", "3"}};
  EXPECT_EQ(message([&] { expand(plan); }), "arm 'a': train.grad_accum is 3, which does not divide train.batch_size 16");
  plan.base = {};
  plan.arms.push_back({"b", {}, "", ""});
  EXPECT_EQ(message([&] { expand(plan); }), "arm 'b' is the same configuration as arm 'a'; change or remove one of them");
  plan.arms[1].density_of = "c";
  EXPECT_EQ(message([&] { expand(plan); }), "density_of: no arm named 'c'; choices: a, b");
  plan.seeds = {};
  plan.arms.pop_back();
  EXPECT_EQ(message([&] { expand(plan); }), "there are no seeds; write seeds = [0, 1, 2], or seeds = 3");
}

}  // namespace expand_test
}  // namespace cautious::study
