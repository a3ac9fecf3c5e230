// Verdicts on studies with known outcomes: the right points and pairs are compared, and no sentence claims more.
#include "study/verdict.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "study/statistics.h"
#include "verdict_study.h"

namespace cautious::study {
namespace verdict_test {

using Losses = ArmLosses;
const double kNone = std::nan("");

Overrides at(const std::string& lambda) { return at_lambda(lambda); }

std::string plus_minus(const ContrastResult& result) {
  return fmt::format("{:+.4f} +/- {:.4f} nats", result.difference.value,
                     (result.difference.interval.high - result.difference.interval.low) / 2);
}

TEST(Verdict, PointsAreChosenOnTheTuningSeedsAlone) {
  const Losses judged{{{"cwd", "0.1"}, {3, 3, 3}},         {{"cwd", "1"}, {1.9, 1.8, 1.7}},   {{"cwd", "3"}, {0, 0, 0}},
                      {{"plain", "0.1"}, {2.0, 2.1, 2.2}}, {{"plain", "1"}, {1.0, 1.0, 1.0}}, {{"plain", "3"}, {0, 0, 0}},
                      {{"random", "0.1"}, {3, 3, 3}},      {{"random", "1"}, {1.9, 1.9, 1.7}}};
  const Losses tuning{{{"cwd", "0.1"}, {2, 2}},   {{"cwd", "1"}, {1.9, 1.9}}, {{"cwd", "3"}, {2, 2}},
                      {{"plain", "0.1"}, {1, 1}}, {{"plain", "1"}, {1.1, 1}}, {{"plain", "3"}, {2, 2}}};
  Results results = study_of(judged, {kBest, kControl}, tuning);
  const Verdict verdict = verdict_of(results);
  const ContrastResult &plain = verdict.contrasts.at(0), &control = verdict.contrasts.at(1);
  EXPECT_EQ(plain.point_a, at("1"));
  EXPECT_EQ(plain.point_b, at("0.1"));
  EXPECT_NEAR(plain.difference.value, ((1.9 - 2.0) + (1.8 - 2.1) + (1.7 - 2.2)) / 3, 1e-12);
  EXPECT_EQ(plain.name, "cwd (weight_decay=1) - plain (weight_decay=0.1)");
  EXPECT_NEAR(control.difference.value, -0.1 / 3, 1e-12);
  EXPECT_EQ(control.name, "cwd - random at weight_decay=1");
  EXPECT_NE(verdict.sentence.find("Each arm is judged at the point with the lowest mean loss on 2 tuning seeds"),
            std::string::npos)
      << verdict.sentence;
  results.runs.back().status = RunStatus::running;  // of plain's tuning
  const Verdict waiting = verdict_of(results);
  EXPECT_EQ(waiting.contrasts.at(0).outcome, Outcome::missing);
  EXPECT_EQ(waiting.contrasts.at(0).sentence, "cwd against plain: the tuning runs of plain are not all done");
  EXPECT_EQ(waiting.contrasts.at(1).outcome, control.outcome);
}

TEST(Verdict, ADifferenceIsJudgedByTheResidualsOfAllArms) {
  const Losses losses = matched(0.05);
  const Verdict verdict = verdict_of(study_of(losses, {kBest, kControl}));
  std::vector<std::vector<double>> table;
  for (const auto& [where, values] : losses) table.push_back(values);
  const Layout layout = layout_of(table);
  const std::vector<double> adjusted = holm({difference_in(layout, -0.1005).p, difference_in(layout, -0.0495).p});
  for (std::size_t i = 0; i < 2; ++i) {
    const ContrastResult& result = verdict.contrasts.at(i);
    EXPECT_EQ(result.layout.arms, 3U);
    EXPECT_EQ(result.layout.freedom(), 6U);
    EXPECT_NEAR(result.layout.sd / layout.sd, 1, 1e-12);
    EXPECT_NEAR(result.difference.value, i == 0 ? -0.1005 : -0.0495, 1e-12);
    EXPECT_NEAR(result.holm_p / adjusted[i], 1, 1e-9);
    EXPECT_EQ(result.outcome, Outcome::lower);
  }
  EXPECT_EQ(verdict.family, 2U);
  const ContrastResult& first = verdict.contrasts.at(0);
  EXPECT_EQ(first.sentence, "cwd (weight_decay=1) has a lower validation loss than plain (weight_decay=1), by " +
                                plus_minus(first).substr(1) +
                                " (95%, 4 seeds, p < 0.001, corrected for 2 contrasts p < 0.001)");
  EXPECT_TRUE(verdict.sentence.starts_with(first.sentence + ".\n")) << verdict.sentence;
  EXPECT_TRUE(verdict.sentence.ends_with("\nNothing here speaks about other models, data or lengths of training."));
}

TEST(Verdict, HolmDecidesAboutPrimaryContrasts) {
  // p is about 0.02: enough alone, not among three.
  Losses losses{{{"cwd", "1"}, {2.0, 2.0, 2.0, 2.0, 2.0}},
                {{"plain", "1"}, {2.01, 2.01, 2.015, 2.0, 2.005}},
                {{"random", "1"}, {2.005, 2.003, 1.996, 2.0, 2.006}}};
  const ContrastResult alone = verdict_of(study_of(losses, {kBest})).contrasts.at(0);
  EXPECT_LT(alone.difference.p, 0.05);
  EXPECT_DOUBLE_EQ(alone.holm_p, alone.difference.p);
  EXPECT_EQ(alone.outcome, Outcome::lower);
  const Contrast third{.a = "random", .b = "plain", .best = true, .primary = true};
  const Verdict several = verdict_of(study_of(losses, {kBest, kControl, third}));
  EXPECT_DOUBLE_EQ(several.contrasts.at(0).holm_p, 3 * alone.difference.p);
  EXPECT_EQ(several.contrasts.at(0).outcome, Outcome::open);
  EXPECT_NE(several.contrasts.at(0).sentence.find("no difference between cwd (weight_decay=1) and plain (weight_decay=1)"),
            std::string::npos)
      << several.contrasts.at(0).sentence;
  Contrast exploratory = third;
  exploratory.primary = false;
  const Verdict two = verdict_of(study_of(losses, {exploratory, kBest, kControl}));
  EXPECT_DOUBLE_EQ(two.contrasts.at(0).holm_p, 2 * alone.difference.p);
  EXPECT_TRUE(std::isnan(two.contrasts.at(2).holm_p));
  EXPECT_EQ(two.exploratory, 1U);
}

TEST(Verdict, PracticallyEqualIsSaid) {
  const Losses losses{{{"cwd", "1"}, {2.0, 2.1, 2.2, 1.9}}, {{"plain", "1"}, {2.001, 2.1, 2.199, 1.9}}};
  const ContrastResult result = verdict_of(study_of(losses, {kBest})).contrasts.at(0);
  EXPECT_EQ(result.outcome, Outcome::equal);
  EXPECT_EQ(result.sentence, fmt::format("cwd (weight_decay=1) and plain (weight_decay=1) are practically equal, within 0.005 "
                                         "nats: {} (95%, 4 seeds, p = 1)",
                                         plus_minus(result)));
}

TEST(Verdict, ASmallDifferenceIsCalledSmall) {
  const Losses losses{{{"cwd", "1"}, {2.0, 2.1, 2.2, 1.9}}, {{"plain", "1"}, {2.0021, 2.1019, 2.202, 1.902}}};
  const ContrastResult result = verdict_of(study_of(losses, {kBest})).contrasts.at(0);
  EXPECT_EQ(result.outcome, Outcome::lower);
  EXPECT_TRUE(result.sentence.ends_with("; that is within 0.005 nats, practically equal")) << result.sentence;
}

TEST(Verdict, SeedsAreCountedForAFixedDifference) {
  const Losses losses{{{"cwd", "1"}, {2.01, 1.99, 1.995}}, {{"plain", "1"}, {2, 2, 2}}};
  const ContrastResult result = verdict_of(study_of(losses, {kBest})).contrasts.at(0);
  EXPECT_EQ(result.outcome, Outcome::open);
  const Interval sd = sd_interval(result.layout);
  EXPECT_EQ(result.power.needed, seeds_needed(0.005, 2, result.layout.sd));
  EXPECT_EQ(result.power.needed_low, seeds_needed(0.005, 2, sd.low));
  EXPECT_EQ(result.power.needed_high, seeds_needed(0.005, 2, sd.high));
  EXPECT_EQ(result.power.detectable, detectable_difference(result.layout));
  EXPECT_NEAR(result.power.detectable_interval.high / result.power.detectable, sd.high / result.layout.sd, 1e-12);
  EXPECT_TRUE(
      result.sentence.ends_with(fmt::format("; {} (95%: {} to more than 1000) seeds would find 0.005 nats with 80% power",
                                            result.power.needed, result.power.needed_low)))
      << result.sentence;
  const Verdict two = verdict_of(study_of(matched(0.001), {kBest, kControl}));
  EXPECT_EQ(two.contrasts.at(1).power.needed, seeds_needed(0.005, 3, two.contrasts.at(1).layout.sd, 0.8, 0.025));
}

// Three points; cwd's best is the last.
Losses flat(const std::vector<double>& cwd, const std::vector<double>& plain) {
  Losses losses;
  for (const char* lambda : {"0", "1", "3"}) losses[{"cwd", lambda}] = cwd, losses[{"plain", lambda}] = plain;
  return losses;
}

TEST(Verdict, AnEdgeOfTheGridIsNotCalledBest) {
  const Losses tuning{{{"cwd", "0"}, {2, 2}},   {{"cwd", "1"}, {1.9, 1.9}},   {{"cwd", "3"}, {1.8, 1.8}},
                      {{"plain", "0"}, {2, 2}}, {{"plain", "1"}, {1.9, 1.9}}, {{"plain", "3"}, {2, 2}}};
  const Verdict verdict = verdict_of(study_of(flat({1.9, 1.91, 1.89}, {2.0, 2.01, 2.0}), {kBest}, tuning));
  const ContrastResult& result = verdict.contrasts.at(0);
  EXPECT_EQ(result.outcome, Outcome::edge);
  EXPECT_TRUE(std::isnan(result.holm_p));
  EXPECT_TRUE(
      result.sentence.starts_with("cwd against plain is not decided: cwd is at the edge of its grid (weight_decay=3): "
                                  "extend it. Where they are, cwd (weight_decay=3) - plain (weight_decay=1) is -0.1033"))
      << result.sentence;
  EXPECT_EQ(verdict.sentence.find("best"), std::string::npos) << verdict.sentence;
}

TEST(Verdict, BothWithoutDecayHaveNothingToCompare) {
  const Losses tuning{{{"cwd", "0"}, {1, 1}},   {{"cwd", "1"}, {1.9, 1.9}},   {{"cwd", "3"}, {1.8, 1.8}},
                      {{"plain", "0"}, {1, 1}}, {{"plain", "1"}, {1.9, 1.9}}, {{"plain", "3"}, {2, 2}}};
  const ContrastResult result =
      verdict_of(study_of(flat({1.9, 1.91, 1.89}, {1.9, 1.91, 1.89}), {kBest}, tuning)).contrasts.at(0);
  EXPECT_EQ(result.outcome, Outcome::same);
  EXPECT_EQ(result.sentence,
            "nothing to compare between cwd and plain: on the tuning seeds both were best without weight decay");
}

// On the tuning seeds another point of plain is as good as the chosen one, within their noise.
TEST(Verdict, AChoiceThatCouldExplainTheDifferenceIsSaid) {
  Losses tuning{{{"cwd", "0"}, {2, 2}},   {{"cwd", "1"}, {1.9, 1.9}},   {{"cwd", "3"}, {2.8, 2.8}},
                {{"plain", "0"}, {2, 2}}, {{"plain", "1"}, {1.9, 1.9}}, {{"plain", "3"}, {1.901, 1.901}}};
  const Losses judged = flat({2.0, 2.1, 2.2, 2.0}, {2.01, 2.112, 2.208, 2.01});
  const ContrastResult open = verdict_of(study_of(judged, {kBest}, tuning)).contrasts.at(0);
  EXPECT_EQ(open.outcome, Outcome::lower);
  EXPECT_NEAR(open.regret, difference_in(open.layout, -0.001, 2).interval.high, 1e-15);
  EXPECT_EQ(open.sentence.find("tuning"), std::string::npos) << open.sentence;
  const Losses close = flat({2.0, 2.1, 2.2, 2.0}, {2.002, 2.103, 2.202, 2.003});
  const ContrastResult small = verdict_of(study_of(close, {kBest}, tuning)).contrasts.at(0);
  EXPECT_EQ(small.outcome, Outcome::lower);
  tuning[{"plain", "3"}] = {2.5, 2.5};
  EXPECT_EQ(verdict_of(study_of(close, {kBest}, tuning)).contrasts.at(0).regret, 0.0);
  const Losses noisy = flat({2.0, 2.1, 2.2, 2.0}, {2.001, 2.104, 2.206, 2.004});
  tuning[{"plain", "3"}] = {1.9, 1.9};
  const ContrastResult choice = verdict_of(study_of(noisy, {kBest}, tuning)).contrasts.at(0);
  EXPECT_EQ(choice.outcome, Outcome::lower);
  EXPECT_NE(choice.sentence.find("; the tuning seeds leave open whether another weight_decay of plain is better by up to 0.00"),
            std::string::npos)
      << choice.sentence;
}

// Whether decay matters comes first, whatever the plan's contrasts are.
TEST(Verdict, WhetherDecayMattersComesFirst) {
  Losses losses = matched(0.001);
  losses[{"none", ""}] = {2.10, 2.11, 2.12, 2.09};
  const auto first_line = [&] {
    const Verdict verdict = verdict_of(study_of(losses, {kBest, kControl}));
    EXPECT_EQ(verdict.decay.size(), 1U);
    EXPECT_EQ(verdict.contrasts.size(), 2U);
    return verdict.answers.at(0);
  };
  EXPECT_TRUE(
      first_line().starts_with("Weight decay helps here: plain (weight_decay=1) has a lower validation loss than none, "
                               "by 0.0995 +/- 0.0"))
      << first_line();
  losses[{"none", ""}] = {1.90, 1.91, 1.92, 1.89};
  EXPECT_TRUE(first_line().starts_with("Weight decay hurts here: plain (weight_decay=1) has a higher")) << first_line();
  losses[{"none", ""}] = {2.001, 2.012, 2.02, 1.99};
  EXPECT_TRUE(first_line().starts_with("Weight decay makes practically no difference here: ")) << first_line();
  losses[{"none", ""}] = {2.02, 2.0, 2.03, 1.98};
  EXPECT_TRUE(first_line().starts_with("Whether weight decay matters here is open: ")) << first_line();
  const Contrast asked{.a = "plain", .b = "none", .best = true, .primary = true};
  const Verdict primary = verdict_of(study_of(losses, {asked, kBest, kControl}));
  EXPECT_EQ(primary.family, 3U);
  EXPECT_EQ(primary.contrasts.size(), 2U);
  EXPECT_FALSE(std::isnan(primary.decay.at(0).holm_p));
}

TEST(Verdict, NoDecayThatWasBestIsTheAnswer) {
  Losses losses = flat({1.9, 1.91, 1.89}, {1.9, 1.91, 1.89});
  losses[{"none", ""}] = {1.9, 1.91, 1.89};
  const Losses tuning{{{"cwd", "0"}, {2, 2}},   {{"cwd", "1"}, {1.9, 1.9}},   {{"cwd", "3"}, {2.8, 2.8}},
                      {{"plain", "0"}, {1, 1}}, {{"plain", "1"}, {1.9, 1.9}}, {{"plain", "3"}, {2, 2}}};
  Results results = study_of(losses, {kBest}, tuning);
  results.plan.arms.at(1).grid = false;  // none
  EXPECT_EQ(verdict_of(results).answers.at(0),
            "Weight decay did not help on the 2 tuning seeds: plain was best without it, so there is nothing that a mask could "
            "improve.");
}

TEST(Verdict, MissingRunsLeaveAPairedTest) {
  Losses losses = matched(0.05);
  losses[{"cwd", "1"}][2] = kNone;
  const Verdict verdict = verdict_of(study_of(losses, {kBest}));
  const ContrastResult& three = verdict.contrasts.at(0);
  EXPECT_EQ(three.paired.n, 3U);
  EXPECT_FALSE(three.complete);
  EXPECT_DOUBLE_EQ(three.difference.p, three.paired.t_p);
  EXPECT_NE(three.sentence.find("(95%, 3 of 4 seeds, paired t-test of the seeds that have both, p"), std::string::npos)
      << three.sentence;
  EXPECT_NE(verdict.sentence.find("Training diverges at cwd (weight_decay=1) (1 of 4 runs); these runs are in no difference."),
            std::string::npos)
      << verdict.sentence;
  for (double& loss : losses[{"plain", "1"}]) loss = kNone;
  EXPECT_EQ(verdict_of(study_of(losses, {kBest})).contrasts.at(0).sentence, "cwd against plain: no seed has both runs done");
}

TEST(Verdict, APairThatScattersMoreIsSaidToStandAlone) {
  const Losses losses{{{"cwd", "1"}, {2.0, 2.03, 1.98, 2.05}},
                      {{"other", "1"}, {2.001, 2.002, 2.001, 2.0}},
                      {{"plain", "1"}, {2.0, 1.97, 2.02, 1.96}},
                      {{"random", "1"}, {2.001, 2.0, 2.001, 2.0}}};
  const Contrast other{.a = "other", .b = "plain", .best = true, .primary = false};
  const ContrastResult result = verdict_of(study_of(losses, {kBest, other})).contrasts.at(0);
  EXPECT_EQ(result.layout.arms, 2U);
  EXPECT_NE(result.sentence.find("4 seeds, paired t-test of these two, which scatter unlike the other arms, p"),
            std::string::npos)
      << result.sentence;
}

// Arms that no contrast connects do not lend each other their residuals.
TEST(Verdict, GroupsOfArmsAreJudgedApart) {
  Losses losses = matched(0.05);
  losses[{"lion", "1"}] = {2.0, 2.3, 1.9, 2.2};
  losses[{"lion+cwd", "1"}] = {2.3, 2.0, 2.1, 1.9};
  const Contrast other{.a = "lion+cwd", .b = "lion", .best = true, .primary = true};
  const Verdict apart = verdict_of(study_of(losses, {kBest, other}));
  EXPECT_EQ(apart.contrasts.at(0).layout, verdict_of(study_of(matched(0.05), {kBest})).contrasts.at(0).layout);
  EXPECT_EQ(apart.contrasts.at(1).layout.arms, 2U);
}

// Arms without weight decay are the same runs: their residuals count once.
TEST(Verdict, TheSameRunsCountOnce) {
  Losses losses = matched(0.05);
  losses[{"copy", "1"}] = losses[{"random", "1"}];
  const Contrast other{.a = "copy", .b = "plain", .best = true, .primary = false};
  EXPECT_EQ(verdict_of(study_of(losses, {kBest, other})).contrasts.at(0).layout,
            verdict_of(study_of(matched(0.05), {kBest})).contrasts.at(0).layout);
}

TEST(Verdict, OneSeedSaysNothingAboutChance) {
  const Verdict verdict = verdict_of(study_of({{{"plain", "1"}, {2.0}}, {{"cwd", "1"}, {1.9}}}, {kBest}));
  EXPECT_EQ(verdict.answers.at(0),
            "cwd against plain: -0.1000 nats from one seed, which says nothing about chance; use more seeds.");
}

TEST(Verdict, PointByPointContrastsAreEachAtTheirPoint) {
  Losses losses = matched(0.05);
  losses[{"cwd", "3"}] = {1, 1, 1, 1};
  losses[{"plain", "3"}] = {1, 1.1, 1, 1.1};
  const Contrast every{.a = "cwd", .b = "plain", .best = false, .primary = false};
  const Verdict verdict = verdict_of(study_of(losses, {every}));
  ASSERT_EQ(verdict.contrasts.size(), 2U);
  EXPECT_EQ(verdict.exploratory, 2U);
  EXPECT_EQ(verdict.contrasts[0].name, "cwd - plain at weight_decay=1");
  EXPECT_EQ(verdict.contrasts[0].layout.arms, 3U);
  EXPECT_EQ(verdict.contrasts[1].name, "cwd - plain at weight_decay=3");
  EXPECT_NEAR(verdict.contrasts[1].difference.value, -0.05, 1e-15);
  EXPECT_TRUE(verdict.sentence.starts_with("No contrast was prespecified: everything here is exploratory.\n"));
}

}  // namespace verdict_test
}  // namespace cautious::study
