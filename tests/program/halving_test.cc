// Successive halving: points as arms, the best third, twice the steps.
#include <algorithm>
#include <cmath>

#include "study/halving.h"
#include "study_plan.h"

namespace cautious::study {
namespace halving_test {

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

TEST(Halving, TheBestGoOnWithTwiceTheSteps) {
  const Plan plan = without_grid(searched());
  const Plan next = next_stage(plan, finished(plan, {2.3, 2.1, 2.4, 2.2}));
  ASSERT_EQ(next.arms.size(), 2u);
  EXPECT_EQ(next.arms[0].name, "lr-0.001+beta1-0.9");
  EXPECT_EQ(next.arms[1].name, "lr-0.01+beta1-0.9");
  EXPECT_EQ(next.seeds, plan.seeds);
  for (const PlannedRun& run : expand(next)) EXPECT_EQ(steps_of(run.config), 40);  // 20480 tokens are 20 steps
}

TEST(Halving, RunsThatDivergedAreOut) {
  const Plan plan = without_grid(searched());
  const double none = std::nan("");
  const Plan next = next_stage(plan, finished(plan, {none, none, 9.0, none}));
  ASSERT_EQ(next.arms.size(), 1u);
  EXPECT_EQ(next.arms[0].name, "lr-0.01+beta1-0.85");
  try {
    next_stage(plan, finished(plan, {none, none, none, none}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::failure);
    EXPECT_STREQ(error.what(), "stage-1: no run of this stage is done; see its log.txt");
  }
}

}  // namespace halving_test
}  // namespace cautious::study
