// Cases that nearly attain the bound and the lemmas: they are within them, and a constant or a term that is left out shows.
#include "lab/bound/tight.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "lab/bound/bound.h"

namespace cautious::lab {
namespace tight_test {

std::size_t violations(const BoundTally& tally, std::string_view change) {
  for (std::size_t i = 0; i < bound_mutations().size(); ++i) {
    if (bound_mutations()[i].change == change) return tally.mutants_violated[i];
  }
  throw Error(Fault::usage, "no such mutation");
}

// Each case with a mutation of the constant that it is for.
TEST(TightCases, NoticeConstantsThatAreTooSmall) {
  const std::vector<std::string> changes{"K4 divided by 50", "K1 halved", "K3 divided by 3"};
  const auto cases = tight_theorem_cases();
  ASSERT_EQ(cases.size(), changes.size());
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const TightCase& tight = cases[k];
    BoundTally tally;
    tally.add(over_steps(usual_case(tight.problem, tight.setting, tight.seeds, 3), {tight.steps}), "here");
    EXPECT_EQ(tally.paper_violated, 0u) << tight.problem.name;
    EXPECT_EQ(tally.sharper_violated, 0u) << tight.problem.name;
    EXPECT_EQ(violations(tally, changes[k]), 1u) << tight.problem.name;
    EXPECT_EQ(violations(tally, "without K2"), 0u) << tight.problem.name;
  }
}

// Maxima of the closed forms, found with another program; random search stays just below.
TEST(NoiseSearch, FindsTheMaxima) {
  const NoiseSearch found = search_two_values(100'000, 5);
  EXPECT_NEAR(found.update, 0.0275, 0.0006);
  EXPECT_NEAR(found.stationary, 0.0287, 0.001);
  EXPECT_NEAR(found.mask, 0.5, 0.01);
  EXPECT_LE(found.mask, 0.5);
  EXPECT_LE(found.first, 0.5);  // what the proof without K2 needs
}

TEST(BoundTally, CountsViolations) {
  BoundTally tally;
  tally.add({{1, {2, 2, 2}, 1, 4, {.k1 = 1}}, {2, {2, 2, 2}, 4, 8, {.k1 = 2.5, .k3 = 1.5}}}, "here");
  EXPECT_EQ(tally.count, 2u);
  EXPECT_EQ(tally.paper_violated, 1u);
  EXPECT_EQ(tally.sharper_violated, 0u);
  EXPECT_DOUBLE_EQ(tally.paper, 2);
  EXPECT_DOUBLE_EQ(tally.sharper, 0.5);
  EXPECT_EQ(tally.paper_where, "here");
  EXPECT_EQ(violations(tally, "without K1"), 2u);  // 0 and 1.5
  EXPECT_EQ(violations(tally, "without K3"), 1u);  // 1 and 2.5
}

// The lemmas are nearly attained there, and a term that is left out shows, but for one that is not needed.
TEST(TightCases, AreTight) {
  double momentum = 0, direction = 0, mask = 0, martingale = 0;
  for (const TightCase& tight : tight_lemma_cases()) {
    for (const LemmaCheck& check : check_lemmas(tight.problem, tight.setting, tight.seeds, tight.steps, 7)) {
      EXPECT_TRUE(check.holds()) << tight.problem.name << ": " << source_of(check.lemma) << " " << check.worst;
      const auto raise = [&](Lemma lemma, double& worst) {
        if (check.lemma == lemma) worst = std::max(worst, check.worst);
      };
      raise(Lemma::momentum, momentum);
      raise(Lemma::direction, direction);
      raise(Lemma::mask, mask);
      raise(Lemma::martingale, martingale);
      if (tight.problem.name == "crossing" && check.lemma == Lemma::mask) {
        EXPECT_GT(check.without_drift, 1);
        EXPECT_LT(check.without_start, 1);
      }
      if (tight.problem.name == "ramp" && check.lemma == Lemma::direction) {
        EXPECT_GT(check.without_drift, 1);
        EXPECT_GT(check.without_start, 1);
      }
    }
  }
  EXPECT_GT(momentum, 0.98);
  EXPECT_GT(direction, 0.9);
  EXPECT_GT(mask, 0.8);
  EXPECT_GT(martingale, 0.98);
}

}  // namespace tight_test
}  // namespace cautious::lab
