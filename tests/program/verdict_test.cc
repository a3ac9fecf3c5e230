// Verdicts on studies with known outcomes: the right seeds choose, the right pairs are compared, and no sentence claims more.
#include "study/verdict.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "study/statistics.h"

namespace cautious::study {
namespace verdict_test {

constexpr const char* kLambda = "optimizer.weight_decay";

Overrides at(const std::string& lambda) { return {{kLambda, lambda}}; }

// Losses of an arm at a point, by seed.
using Losses = std::map<std::pair<std::string, std::string>, std::vector<double>>;

Results study_of(const Losses& losses, std::vector<Contrast> contrasts) {
  Results results;
  Plan& plan = results.plan;
  plan.arms = {{.name = "plain", .overrides = {}, .density_of = "", .budget_of = ""},
               {.name = "cwd", .overrides = {}, .density_of = "", .budget_of = ""},
               {.name = "random", .overrides = {}, .density_of = "cwd", .budget_of = ""}};
  plan.grid = {{kLambda, {"0.1", "1"}}};
  plan.contrasts = std::move(contrasts);
  const std::size_t seeds = losses.begin()->second.size();
  for (std::size_t seed = 0; seed < seeds; ++seed) plan.seeds.push_back(seed);
  for (const auto& [where, values] : losses) {
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      FinishedRun run;
      run.run.arm = where.first;
      run.run.point = at(where.second);
      run.run.seed = seed;
      run.status = std::isnan(values[seed]) ? RunStatus::diverged : RunStatus::done;
      run.loss = values[seed];
      results.runs.push_back(run);
    }
  }
  return results;
}

const Contrast kBest{.a = "cwd", .b = "plain", .best = true, .primary = true};
const Contrast kControl{.a = "cwd", .b = "random", .best = true, .primary = true};

Losses clear(double random) {
  return {{{"plain", "0.1"}, {2.00, 2.01, 2.02, 1.99}},
          {{"plain", "1"}, {3, 3, 3, 3}},
          {{"cwd", "0.1"}, {1.90, 1.91, 1.921, 1.889}},
          {{"cwd", "1"}, {3, 3, 3, 3}},
          {{"random", "0.1"}, {random, random + 0.012, random + 0.019, random - 0.011}},
          {{"random", "1"}, {3, 3, 3, 3}}};
}

TEST(Verdict, SaysWhenItOnlyDecaysLess) {
  const std::string sentence = verdict_of(study_of(clear(1.9), {kBest, kControl})).sentence;
  EXPECT_TRUE(sentence.starts_with("cwd has a lower validation loss than plain, by 0.1000 +/- ")) << sentence;
  EXPECT_NE(sentence.find("4 seeds, p < 0.001"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("not distinguishable from a random mask of the same density"), std::string::npos) << sentence;
}

TEST(Verdict, ATTestThatSignFlipsDoNotConfirmIsSaidToStandAlone) {
  const std::string four = verdict_of(study_of(clear(1.9), {kBest})).sentence;
  EXPECT_TRUE(four.ends_with("(95%, 4 seeds, p < 0.001 in a t-test; p = 0.12 by sign flips, the lowest that 4 seeds can give)"))
      << four;
  // One seed says the opposite: 2 of the 64 patterns, the observed one and that of equal signs, are as far from 0. t = 4.38.
  const std::vector<double> plain(7, 2.0), cwd{1.9, 1.9, 1.9, 1.9, 1.9, 1.9, 2.03};
  const std::string seven =
      verdict_of(study_of({{{"plain", "1"}, plain}, {{"cwd", "1"}, cwd}}, {kBest})).contrasts.at(0).sentence;
  EXPECT_TRUE(seven.ends_with("(95%, 7 seeds, p = 0.0046)")) << seven;
}

TEST(Verdict, AControlMayStandFirst) {
  const Contrast turned{.a = "random", .b = "cwd", .best = true, .primary = true};
  const ContrastResult there = verdict_of(study_of(clear(1.95), {kControl})).contrasts.at(0);
  const ContrastResult back = verdict_of(study_of(clear(1.95), {turned})).contrasts.at(0);
  EXPECT_EQ(back.paired.difference, -there.paired.difference);
  EXPECT_EQ(back.name, "random - cwd, at the best weight_decay of cwd");
}

TEST(Verdict, APointWhereRunsDivergeIsNotTheBest) {
  const double none = std::nan("");
  const Results results = study_of({{{"plain", "0.1"}, {2.0, 2.0, 2.0, 2.0}},
                                    {{"plain", "1"}, {1.0, none, none, 1.0}},
                                    {{"cwd", "0.1"}, {1.9, 1.9, 1.9, 1.9}},
                                    {{"cwd", "1"}, {3, 3, 3, 3}}},
                                   {kBest});
  const Verdict verdict = verdict_of(results);
  EXPECT_EQ(verdict.contrasts.at(0).paired.n, 4U);
  EXPECT_NEAR(verdict.contrasts.at(0).paired.difference, -0.1, 1e-12);
  EXPECT_TRUE(verdict.sentence.ends_with("; 2 of 16 runs diverged and are left out")) << verdict.sentence;
}

TEST(Verdict, SaysWhenTheMaskItselfHelps) {
  const std::string sentence = verdict_of(study_of(clear(1.95), {kBest, kControl})).sentence;
  EXPECT_NE(sentence.find("; it is better than a random mask of the same density, by 0.05"), std::string::npos) << sentence;
}

TEST(Verdict, SaysHowManySeedsWouldBeNeeded) {
  const Results results = study_of({{{"plain", "0.1"}, {2.00, 2.00, 2.00}},
                                    {{"plain", "1"}, {3, 3, 3}},
                                    {{"cwd", "0.1"}, {2.01, 1.99, 1.995}},
                                    {{"cwd", "1"}, {3, 3, 3}}},
                                   {kBest});
  const ContrastResult result = verdict_of(results).contrasts.at(0);
  EXPECT_TRUE(result.sentence.starts_with("no difference between cwd and plain is detectable: -0.0017 +/- 0.0"))
      << result.sentence;
  EXPECT_EQ(result.needed, pairs_needed(result.paired.difference, result.paired.sd));
  EXPECT_TRUE(result.sentence.ends_with(" would need " + std::to_string(result.needed))) << result.sentence;
}

TEST(Verdict, ExploratoryContrastsAreCountedAndComeLast) {
  Contrast every{.a = "cwd", .b = "plain", .best = false, .primary = false};
  const Verdict verdict = verdict_of(study_of(clear(1.9), {every, kBest}));
  ASSERT_EQ(verdict.contrasts.size(), 3U);
  EXPECT_TRUE(verdict.contrasts[0].primary);
  EXPECT_EQ(verdict.exploratory, 2U);
  EXPECT_EQ(verdict.contrasts[1].name, "cwd - plain at weight_decay=0.1");
  EXPECT_EQ(verdict.contrasts[2].name, "cwd - plain at weight_decay=1");
  EXPECT_EQ(verdict.sentence.find("at weight_decay"), std::string::npos);
}

TEST(Verdict, MissingRunsAreLeftOut) {
  Losses losses = clear(1.9);
  losses[{"cwd", "0.1"}][2] = std::nan("");
  losses[{"cwd", "1"}][2] = std::nan("");
  const ContrastResult three = verdict_of(study_of(losses, {kBest})).contrasts.at(0);
  EXPECT_EQ(three.paired.n, 3U);
  EXPECT_NE(three.sentence.find("(95%, 3 of 4 seeds, p"), std::string::npos) << three.sentence;
  for (double& loss : losses[{"plain", "0.1"}]) loss = std::nan("");
  for (double& loss : losses[{"plain", "1"}]) loss = std::nan("");
  const Verdict none = verdict_of(study_of(losses, {kBest}));
  EXPECT_EQ(none.sentence, "cwd against plain: no seed has both runs done; 10 of 24 runs diverged and are left out");
}

TEST(Verdict, OneSeedSaysNothingAboutChance) {
  const Results results =
      study_of({{{"plain", "0.1"}, {2.0}}, {{"plain", "1"}, {2.1}}, {{"cwd", "0.1"}, {1.9}}, {{"cwd", "1"}, {2.2}}}, {kBest});
  EXPECT_EQ(verdict_of(results).sentence,
            "cwd against plain: -0.1000 nats from one seed, which says nothing about chance; use more seeds");
}

TEST(Verdict, WithoutContrastsEverythingIsExploratory) {
  EXPECT_EQ(verdict_of(study_of(clear(1.9), {})).sentence, "no contrast was prespecified: everything here is exploratory");
}

}  // namespace verdict_test
}  // namespace cautious::study
