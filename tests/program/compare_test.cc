// The plan of `cautious compare`.
#include "study/compare.h"
#include "study_plan.h"

namespace cautious::study {
namespace compare_test {

TEST(Compare, ArmsControlsAndContrastsAreFixed) {
  const Plan plan = compare_plan({.seeds = 2});
  std::vector<std::string> names;
  for (const Arm& arm : plan.arms) names.push_back(arm.name);
  EXPECT_EQ(names, (std::vector<std::string>{"none", "plain", "cwd", "random", "budget"}));
  EXPECT_FALSE(plan.arms[0].grid);
  EXPECT_EQ(plan.arms[3].density_of, "cwd");
  EXPECT_EQ(plan.arms[4].budget_of, "cwd");
  ASSERT_EQ(plan.grid.size(), 1u);
  EXPECT_EQ(plan.grid[0].values, (std::vector<std::string>{"0.1", "0.4", "1"}));
  std::vector<std::string> primary;
  for (const Contrast& contrast : plan.contrasts) {
    EXPECT_TRUE(contrast.best);
    if (contrast.primary) primary.push_back(contrast.a + " - " + contrast.b);
  }
  EXPECT_EQ(primary, (std::vector<std::string>{"cwd - plain", "cwd - random"}));
  EXPECT_EQ(expand(plan).size(), 2u * (1 + 4 * 3));
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
  EXPECT_EQ(compare_plan({.optimizer = "lion"}).grid[0].values, (std::vector<std::string>{"0.5", "2", "5"}));
  EXPECT_EQ(compare_plan({.lr = 0.05}).grid[0].values, (std::vector<std::string>{"0.01", "0.04", "0.1"}));
  EXPECT_EQ(compare_plan({.optimizer = "lion", .lambdas = {3}}).grid[0].values, (std::vector<std::string>{"3"}));
}

TEST(Compare, AGivenRateAndDataAreTaken) {
  for (const PlannedRun& run : expand(compare_plan({.data = "a.txt", .seeds = 1, .lambdas = {2}, .lr = 0.25}))) {
    EXPECT_EQ(run.config.optimizer.lr, 0.25);
    EXPECT_EQ(run.config.data.path, std::vector<std::string>{"a.txt"});
    EXPECT_EQ(run.config.train.tokens_per_param, 20);
  }
}

TEST(Compare, WhatIsWrongIsALine) {
  EXPECT_EQ(message([] { compare_plan({.optimizer = "adamww"}); }),
            "no optimizer named 'adamww'; did you mean 'adamw'? choices: sgd, sgdm, adam, adamw, adamc, lion, lion-k, muon");
  EXPECT_NE(message([] { compare_plan({.lambdas = {0}}); }).find("a value of lambdas is 0"), std::string::npos);
  EXPECT_NE(message([] { compare_plan({.seeds = 0}); }).find("seeds is 0"), std::string::npos);
  EXPECT_NE(message([] { expand(compare_plan({.preset = "nano-100"})); }).find("did you mean 'nano-100k'"), std::string::npos);
}

}  // namespace compare_test
}  // namespace cautious::study
