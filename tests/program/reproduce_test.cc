// Plans that the program makes: the paper's experiments with its numbers beside them, the stages of successive halving,
// comparisons.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "study/compare.h"
#include "study/reproduce.h"
#include "study_plan.h"

namespace cautious::study {
namespace reproduce_test {

TEST(Reproduce, EveryExperimentOfThePaperIsThere) {
  const std::vector<std::string> wanted{"fig-gradnorm",   "fig-lambda",     "fig-norms",        "fig-overtrain",
                                        "fig-ratio",      "fig-scales",     "fig-scaling",      "search",
                                        "table-ablation", "table-adamc",    "table-downstream", "table-imagenet",
                                        "table-scales",   "table-schedule", "table-spd",        "table-vit-b"};
  EXPECT_EQ(reproducible(), wanted);
}

// Two-sided 5%, 80% power: (1.96 + 0.84)^2 (sd / difference)^2 pairs, and a little more because sd is estimated.
TEST(Reproduce, ByDayThereAreSeedsEnoughForTheEffectSizes) {
  for (const char* name : {"fig-lambda", "table-ablation", "table-scales", "table-adamc", "table-schedule", "fig-overtrain"}) {
    for (const Experiment& experiment : experiments(name, Scale::day)) {
      EXPECT_GE(static_cast<double>(experiment.plan.seeds.size()), 2.8 * 2.8 * (0.007 * 0.007) / (0.005 * 0.005)) << name;
    }
  }
}

TEST(Reproduce, FullIsThePapersSizes) {
  const std::map<std::string, std::int64_t> wanted{
      {"fig-lambda-adamw", 338440704}, {"table-adamc", 338440704},   {"table-schedule", 338440704}, {"scales-small", 338440704},
      {"scales-medium", 985891840},    {"scales-large", 2321380352}, {"fig-norms", 985891840},      {"search-lion", 338440704}};
  for (const auto& [name, parameters] : wanted) {
    SCOPED_TRACE(name);
    const Experiment experiment = experiments(name, Scale::full).at(0);
    Plan one = experiment.plan;
    one.seeds.resize(1);
    for (const PlannedRun& run : expand(one)) {
      ASSERT_EQ(size_of(run.config.model.shape, 1, 1, false).parameters, parameters);
      ASSERT_EQ(run::sequence_length(run.config), 2048);
      ASSERT_EQ(run.config.train.tokens_per_param, 20);
    }
  }
}

// The paper's grid: 21 of 24 learning rates, 7 warmups, 3 x 5 betas; and no halving.
TEST(Reproduce, TheFullSearchIsTheWholeGrid) {
  const Experiment experiment = experiments("search-adamw", Scale::full).at(0);
  EXPECT_EQ(experiment.stages, 1);
  EXPECT_EQ(cost_of(experiment).runs, 21u * 7 * 3 * 5);
  EXPECT_EQ(experiments("search-adamw", Scale::day).at(0).stages, 3);
}

// All that a table of the paper has, row by row.
TEST(Reproduce, TheTablesNumbersAreBesideOurs) {
  std::map<std::string, std::string> numbers;
  for (const Experiment& experiment : experiments("table-scales", Scale::day)) {
    for (const PaperNumber& entry : experiment.plan.paper) numbers[entry.what] = entry.number;
  }
  EXPECT_EQ(numbers.size(), 36u);
  EXPECT_EQ(numbers["AdamW, 338M, validation loss"], "3.0136");
  EXPECT_EQ(numbers["Lion + CWD, 338M, validation loss"], "3.0012");
  EXPECT_EQ(numbers["Muon, 986M, validation loss"], "2.6968");
  EXPECT_EQ(numbers["Muon + CWD, 2B, validation loss"], "2.4703");
  EXPECT_EQ(numbers["Lion, 986M, validation accuracy"], "0.4545");
  EXPECT_EQ(numbers["Muon + CWD, 2B, validation accuracy"], "0.4873");
}

TEST(Reproduce, AnExperimentWithoutSuchANameHasASuggestion) {
  EXPECT_EQ(message([] { experiments("fig-lamda", Scale::quick); }),
            "no experiment named 'fig-lamda'; did you mean 'fig-lambda'? choices: fig-gradnorm, fig-lambda, fig-norms, "
            "fig-overtrain, fig-ratio, fig-scales, fig-scaling, search, table-ablation, table-adamc, table-downstream, "
            "table-imagenet, table-scales, table-schedule, table-spd, table-vit-b");
}

// A figure and a table of the same runs share their plan.
TEST(Reproduce, AnItemMayHaveSeveralPlansAndAPlanSeveralItems) {
  const auto names = [](std::string_view item) {
    std::vector<std::string> all;
    for (const Experiment& experiment : experiments(item, Scale::quick)) all.push_back(experiment.name);
    return all;
  };
  EXPECT_EQ(names("fig-lambda"), (std::vector<std::string>{"fig-lambda-adamw", "fig-lambda-lion", "fig-lambda-muon"}));
  EXPECT_EQ(names("fig-scales"), names("table-scales"));
  EXPECT_EQ(names("search-muon"), std::vector<std::string>{"search-muon"});
}

constexpr std::string_view kScaled = R"(reproduces = ["x"]
title = "t"
about = "One."
seeds = 4
[base]
model.preset = "nano-100k"
data.path = "gcide"
train.tokens_per_param = 20
[grid]
"optimizer.weight_decay" = [0.1, 0.2, 0.4]
[[arm]]
name = "plain"
optimizer.lr = 1e-2
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
[scale.quick]
seeds = 2
about = "Two."
base.train.steps = 7
grid."optimizer.lr" = [1, 2]
arm."plain".optimizer.lr = 1e-3
)";

TEST(Scale, ChangesSeedsBaseGridAndArms) {
  const std::string text = with(kScaled, "grid.\"optimizer.lr\" = [1, 2]", "grid.\"optimizer.weight_decay\" = [1, 2]");
  const Experiment day = read_experiment({"x", text}, Scale::day), quick = read_experiment({"x", text}, Scale::quick);
  EXPECT_EQ(day.plan.seeds.size(), 4u);
  EXPECT_EQ(day.plan.about, "One.");
  EXPECT_EQ(day.plan.grid.at(0).values, (std::vector<std::string>{"0.1", "0.2", "0.4"}));
  EXPECT_EQ(quick.plan.seeds, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(quick.plan.about, "One. Two.");
  EXPECT_EQ(quick.plan.base,
            (Overrides{{"model.preset", "nano-100k"}, {"data.path", "gcide"}, {"train.steps", "7"}}));  // not 20 per parameter
  ASSERT_EQ(quick.plan.grid.size(), 1u);
  EXPECT_EQ(quick.plan.grid[0].values, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(quick.plan.arms[0].overrides, (Overrides{{"optimizer.lr", "0.001"}}));
  EXPECT_EQ(quick.plan.arms[1].overrides, day.plan.arms[1].overrides);
  EXPECT_EQ(expand(quick.plan).size(), 2u * 2 * 2);
}

TEST(Scale, WhatIsWrongIsALine) {
  const auto refused = [](std::string_view part, std::string_view other) {
    return message([&] { read_experiment({"x", with(kScaled, part, other)}, Scale::quick); });
  };
  EXPECT_EQ(refused("arm.\"plain\"", "arm.\"plan\""),
            "x.toml:22: [scale.quick]: no arm named 'plan'; did you mean 'plain'? choices: plain, cwd");
  EXPECT_EQ(refused("seeds = 2", "seeds = 0"), "x.toml:18: seeds is 0, not a whole number from 1 to 1000");
  EXPECT_EQ(refused("[scale.quick]", "[scale.quik]"),
            "x.toml:17: no key of [scale] named 'quik'; did you mean 'quick'? choices: quick, full");
  EXPECT_EQ(refused("about = \"Two.\"", "abot = \"Two.\""),
            "x.toml:19: no key of [scale.quick] named 'abot'; did you mean 'about'? choices: seeds, tune_seeds, about, "
            "objective, stages, base, grid, arm");
  EXPECT_EQ(refused("reproduces = [\"x\"]", "reproduces = 1"), "x.toml:1: reproduces is missing or not an array of names");
  EXPECT_EQ(refused("[1, 2]", "1"),
            "x.toml:21: optimizer.lr of [scale.quick] is '1', not an array; write \"optimizer.lr\" = [...], or put the key "
            "under [base]");
}

// By hand: 117056 parameters, 799,000 operations per token, 7 steps of 16 x 128 tokens, and 131072 of the validation data.
TEST(Cost, CountsOperationsOfRunsAndStages) {
  Experiment experiment{.name = "", .reproduces = {}, .plan = small({{"model.preset", "nano-100k"}, {"train.steps", "7"}})};
  experiment.plan.base.emplace_back("eval.every", "0");
  experiment.plan.grid = {{"optimizer.lr", {"1", "2", "3", "4", "5", "6"}}};
  const double per_token = size_of(model::preset("nano-100k"), 16, 128, false).flops_per_token;
  const double seconds = (7 * 16 * 128 + 131072 / 3.0) * per_token / 30e9;
  EXPECT_NEAR(cost_of(experiment).core_hours, 6 * (seconds + 3) / 3600, 1e-9);
  experiment.stages = 3;  // 6 points, then 2, then 1
  experiment.plan.seeds = {0, 1};
  EXPECT_EQ(cost_of(experiment).runs, 2u * (6 + 2 + 1));
  EXPECT_NEAR(cost_of(experiment).core_hours, 2 * ((6 + 2 * 2 + 1 * 4) * seconds + 9 * 3) / 3600, 1e-9);
}

// Successive halving: points as arms, the best third, twice the steps.
Plan searched() {
  Plan plan =
      small({{"model.preset", "nano-100k"}, {"data.path", "gcide"}, {"train.tokens", "20480"}, {"train.batch_size", "8"}});
  plan.grid = {{"optimizer.lr", {"0.001", "0.01"}}, {"optimizer.beta1", {"0.85", "0.9"}}};
  plan.seeds = {0, 1};
  return plan;
}

Results finished(const Plan& plan, const std::vector<double>& losses) {
  Results results{.directory = "stage-1", .plan = plan, .runs = {}};
  for (PlannedRun& run : expand(plan)) {
    const auto arm = std::ranges::find(plan.arms, run.arm, &Arm::name) - plan.arms.begin();
    const double loss = losses[static_cast<std::size_t>(arm)] + 0.01 * static_cast<double>(run.seed);
    results.runs.push_back({.run = std::move(run),
                            .status = std::isnan(loss) ? RunStatus::diverged : RunStatus::done,
                            .loss = loss,
                            .failure = ""});
  }
  return results;
}

TEST(Halving, AThirdRoundedUp) {
  EXPECT_EQ(kept(1), 1u);
  EXPECT_EQ(kept(3), 1u);
  EXPECT_EQ(kept(4), 2u);
  EXPECT_EQ(kept(12), 4u);
  EXPECT_EQ(kept(288), 96u);
}

TEST(Halving, PointsBecomeArms) {
  const Plan plan = without_grid(searched());
  std::vector<std::string> names;
  for (const Arm& arm : plan.arms) names.push_back(arm.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"lr-0.001+beta1-0.85", "lr-0.001+beta1-0.9", "lr-0.01+beta1-0.85", "lr-0.01+beta1-0.9"}));
  EXPECT_TRUE(plan.grid.empty());
  const auto runs = expand(plan), of_grid = expand(searched());
  ASSERT_EQ(runs.size(), of_grid.size());
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].hash, of_grid[i].hash);  // the same runs
}

TEST(Halving, TheBestContinueWithTwiceTheSteps) {
  const Plan plan = without_grid(searched());
  const Plan next = next_stage(finished(plan, {2.3, 2.1, 2.4, 2.2}));
  ASSERT_EQ(next.arms.size(), 2u);
  EXPECT_EQ(next.arms[0].name, "lr-0.001+beta1-0.9");
  EXPECT_EQ(next.arms[1].name, "lr-0.01+beta1-0.9");
  EXPECT_EQ(next.seeds, plan.seeds);
  for (const PlannedRun& run : expand(next)) EXPECT_EQ(steps_of(run.config), 40);  // 20480 tokens are 20 steps
}

TEST(Halving, RunsThatDivergedAreOut) {
  const Plan plan = without_grid(searched());
  const double none = std::nan("");
  const Plan next = next_stage(finished(plan, {none, none, 9.0, none}));
  ASSERT_EQ(next.arms.size(), 1u);
  EXPECT_EQ(next.arms[0].name, "lr-0.01+beta1-0.85");
  try {
    next_stage(finished(plan, {none, none, none, none}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::failure);
    EXPECT_STREQ(error.what(), "stage-1: no run of this stage is done; see its log.txt");
  }
}

// Nothing that a plan says about its own data stays.
TEST(Reproduce, OnOtherDataSaysNothingAboutThePlans) {
  for (const BundledPlan& bundled : bundled_plans()) {
    for (const Scale scale : {Scale::quick, Scale::day, Scale::full}) {
      Plan plan = read_experiment(bundled, scale).plan;
      train_on(plan, "my text");
      EXPECT_NE(std::ranges::find(plan.base, std::pair<std::string, std::string>("data.path", "my text")), plan.base.end());
      EXPECT_TRUE(plan.about.ends_with(". Ours: on my text, not on the data that the plan was written for.")) << plan.about;
      EXPECT_NE(plan.about.find("The paper"), std::string::npos);
      for (const char* own : {"gcide", "dictionary", "CIFAR", "Fashion", "JSONL"}) {
        EXPECT_EQ(plan.about.find(own), std::string::npos) << bundled.name << ": " << plan.about;
      }
    }
  }
}

TEST(Compare, OptimizersHaveTheirProperNames) {
  EXPECT_EQ(compare_plan({}).title, "Does cautious weight decay help AdamW?");
  for (const auto& [name, proper] : std::map<std::string, std::string>{
           {"adam", "Adam"}, {"lion", "Lion"}, {"lion-k", "Lion-K"}, {"muon", "Muon"}, {"sgd", "SGD"}, {"sgdm", "SGDM"}}) {
    const Plan plan = compare_plan({.optimizer = name});
    EXPECT_EQ(plan.title, "Does cautious weight decay help " + proper + "?");
    EXPECT_TRUE(plan.about.starts_with(proper + " with a model of ")) << plan.about;
  }
}

// The plan of `cautious compare`.
TEST(Compare, ArmsControlsAndContrastsAreFixed) {
  const Plan plan = compare_plan({.seeds = 3});
  std::vector<std::string> names;
  for (const Arm& arm : plan.arms) names.push_back(arm.name);
  EXPECT_EQ(names, (std::vector<std::string>{"none", "plain", "cwd", "shuffled", "opposed"}));
  EXPECT_FALSE(plan.arms[0].grid);
  for (const std::size_t control : {3, 4}) EXPECT_EQ(plan.arms[control].point_of, "cwd");
  ASSERT_EQ(plan.grid.size(), 1u);
  EXPECT_EQ(plan.grid[0].values, (std::vector<std::string>{"0", "0.1", "0.3", "1", "3"}));
  EXPECT_EQ(plan.arms[2].axes.at(0).values, (std::vector<std::string>{"0", "0.25", "0.75", "2.5", "7.5"}));
  std::vector<std::string> primary;
  for (const Contrast& contrast : plan.contrasts) {
    EXPECT_TRUE(contrast.best);
    if (contrast.primary) primary.push_back(contrast.a + " - " + contrast.b);
  }
  EXPECT_EQ(primary, (std::vector<std::string>{"plain - none", "cwd - plain", "cwd - shuffled"}));
  double expected = 0;
  for (const PlannedRun& run : expand(plan)) expected += run.share;
  // Two tuning seeds: 5 + 5 points, of which no decay is made once. Three others: none, and a point for each other arm.
  EXPECT_NEAR(expected, 2 * 9 + 3 * (1 + 4), 1e-12);
  EXPECT_EQ(compare_plan({.optimizer = "muon"}).arms.back().name, "cwd-momentum");
}

TEST(Compare, SeveralRatesAreChosenFromToo) {
  const Plan plan = compare_plan({.seeds = 1, .lrs = {1e-3, 2e-3}});
  EXPECT_EQ(plan.arms[0].axes.at(0).key, "optimizer.lr");
  for (const Arm& arm : plan.arms) EXPECT_EQ(count_points(plan, arm), arm.name == "none" ? 2u : 10u) << arm.name;
  std::size_t tuning = 0;
  for (const PlannedRun& run : expand(plan)) tuning += run.tuning && run.share > 0;
  EXPECT_EQ(tuning, 2u * 2 * 9);
}

TEST(Compare, EveryOptimizerHasAPlan) {
  for (const std::string& name : recipe_names()) {
    SCOPED_TRACE(name);
    for (const PlannedRun& run : expand(compare_plan({.optimizer = name, .preset = "nano-100k", .seeds = 1, .steps = 50}))) {
      EXPECT_EQ(run.config.optimizer.name, name);
      EXPECT_EQ(steps_of(run.config), 50);
      EXPECT_EQ(run.config.model.preset, "nano-100k");
    }
  }
}

// lr times lambda is the same: 5e-3 of AdamW, 1e-3 of Lion.
TEST(Compare, TheUsualLambdasFollowTheLearningRate) {
  EXPECT_EQ(compare_plan({.optimizer = "lion"}).grid[0].values, (std::vector<std::string>{"0", "0.5", "1.5", "5", "15"}));
  EXPECT_EQ(compare_plan({.lrs = {0.05}}).grid[0].values, (std::vector<std::string>{"0", "0.01", "0.03", "0.1", "0.3"}));
  EXPECT_EQ(compare_plan({.optimizer = "lion", .lambdas = {3}}).grid[0].values, (std::vector<std::string>{"0", "3"}));
}

TEST(Compare, AGivenRateAndDataAreTaken) {
  for (const PlannedRun& run : expand(compare_plan({.data = "a.txt", .seeds = 1, .lambdas = {2}, .lrs = {0.25}}))) {
    EXPECT_EQ(run.config.optimizer.lr, 0.25);
    EXPECT_EQ(run.config.data.path, std::vector<std::string>{"a.txt"});
    EXPECT_EQ(run.config.train.tokens_per_param, 20);
  }
}

TEST(Compare, WhatIsWrongIsALine) {
  EXPECT_EQ(message([] { compare_plan({.optimizer = "adamww"}); }),
            "no optimizer named 'adamww'; did you mean 'adamw'? choices: sgd, sgdm, adam, adamw, adamc, lion, lion-k, muon");
  EXPECT_NE(message([] { compare_plan({.lambdas = {0}}); }).find("a value of lambdas is 0"), std::string::npos);
  EXPECT_EQ(message([] {
              compare_plan({.settings = {{"optimizer.weight_decay", "1"}}});
            }),
            "optimizer.weight_decay cannot be set: give --lambdas A,B,... to choose from");
  EXPECT_NE(message([] { compare_plan({.seeds = 0}); }).find("seeds is 0"), std::string::npos);
  EXPECT_NE(message([] { expand(compare_plan({.preset = "nano-100"})); }).find("did you mean 'nano-100k'"), std::string::npos);
}

}  // namespace reproduce_test
}  // namespace cautious::study
