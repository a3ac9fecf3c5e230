// How often the whole verdict is wrong: simulated studies with a known truth, in memory and through files.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "study/verdict.h"
#include "study_plan.h"
#include "study_truth.h"

namespace cautious::study {
namespace verdict_truth_test {

// What an arm's decay removes, in units of plain decay's weight decay.
double amount_of(const std::string& arm, double weight_decay) { return arm == "plain" ? weight_decay : 0.4 * weight_decay; }

// A parabola over the order of magnitude of the amount, and a loss without decay.
Truth amount_alone(double best) {
  return [best](const std::string& arm, double weight_decay) {
    return weight_decay == 0 ? 0.03 : 0.03 * std::pow(std::log10(amount_of(arm, weight_decay) / best), 2);
  };
}

Truth mask_helps(double nats) {
  return [nats](const std::string& arm, double weight_decay) {
    const double gain = arm == "cwd" && weight_decay > 0 ? nats : 0;
    return amount_alone(0.4)(arm, weight_decay) - gain;
  };
}

double nothing_matters(const std::string&, double) { return 0; }

const std::string kGrid = "[0, 0.1, 0.4, 1]", kCautiousGrid = "[0, 0.25, 1, 2.5]";

bool claims(const ContrastResult& result) { return result.outcome == Outcome::lower || result.outcome == Outcome::higher; }

// A difference that another choice of the point could not explain.
bool claims_firmly(const ContrastResult& result) { return claims(result) && result.regret < std::abs(result.difference.value); }

class VerdictTruth : public StudyPlan {};

struct Rates {
  double single = 0;  // of the first contrast, if it were the only one
  double primary = 0, decay = 0;
};

Rates rates_of(const Plan& plan, int studies) {
  SimulatedStudy study(plan);
  Normal normal(plan.seeds.size());
  Rates sums;
  for (int i = 0; i < studies; ++i) {
    const Verdict verdict = verdict_of(study.draw(normal, nothing_matters));
    sums.single += verdict.contrasts.at(0).difference.p < 0.05;
    sums.primary += std::ranges::any_of(verdict.contrasts, claims);
    sums.decay += claims(verdict.decay.at(0));
  }
  return {sums.single / studies, sums.primary / studies, sums.decay / studies};
}

// The table of docs/studies.md.
TEST_F(VerdictTruth, FalsePositiveRatesWhereNothingMatters) {
  constexpr int kStudies = 600;
  struct Design {
    std::size_t seeds;
    std::string lambdas, cautious;
  };
  const std::vector<Design> designs{
      {3, "[0.4]", "[1]"},       {20, "[0.4]", "[1]"},      {5, "[0.1, 0.4, 1]", "[0.25, 1, 2.5]"},
      {3, kGrid, kCautiousGrid}, {8, kGrid, kCautiousGrid}, {5, "[0.05, 0.1, 0.2, 0.4, 0.8]", "[0.125, 0.25, 0.5, 1, 2]"}};
  Rates mean;
  for (const Design& design : designs) {
    const Rates rates = rates_of(read(truth_plan(design.seeds, design.lambdas, design.cautious)), kStudies);
    for (const double rate : {rates.single, rates.decay}) {  // three standard errors of the simulation around 4.5%
      EXPECT_GE(rate, 0.02) << design.seeds << " seeds, " << design.lambdas;
      EXPECT_LE(rate, 0.07) << design.seeds << " seeds, " << design.lambdas;
    }
    EXPECT_LE(rates.primary, 0.065) << design.seeds << " seeds, " << design.lambdas;
    mean.single += rates.single / static_cast<double>(designs.size());
    mean.primary += rates.primary / static_cast<double>(designs.size());
  }
  EXPECT_GE(mean.single, 0.04);
  EXPECT_LE(mean.single, 0.06);
  EXPECT_LE(mean.primary, 0.05);
}

// What the verdicts on studies of one truth say.
struct Said {
  int lower = 0, higher = 0, edge = 0, equal = 0, firm = 0;  // cwd against plain
  int mask_lower = 0, mask_claims = 0;                       // cwd against random
  int decay_helps = 0, decay_claims = 0;
};

class VerdictThroughFiles : public StudyPlan {
 protected:
  static constexpr int kStudies = 200, kWritten = 8;

  // The first studies are also written and read again, with the same verdict.
  Said said(const Truth& truth) {
    SimulatedStudy study(read(truth_plan(6, kGrid, kCautiousGrid)));
    Normal normal(7);
    Said counts;
    for (int i = 0; i < kStudies; ++i) {
      const Verdict verdict = verdict_of(study.draw(normal, truth));
      if (i < kWritten) {
        const auto directory = directory_ / std::to_string(i);
        study.write(directory);
        EXPECT_EQ(verdict_of(read_results(directory)).sentence, verdict.sentence);
      }
      const ContrastResult &plain = verdict.contrasts.at(0), &mask = verdict.contrasts.at(1), &decay = verdict.decay.at(0);
      counts.lower += plain.outcome == Outcome::lower;
      counts.higher += plain.outcome == Outcome::higher;
      counts.edge += plain.outcome == Outcome::edge;
      counts.equal += plain.outcome == Outcome::equal;
      counts.firm += claims_firmly(plain);
      counts.mask_lower += mask.outcome == Outcome::lower;
      counts.mask_claims += claims(mask);
      counts.decay_helps += decay.outcome == Outcome::lower;
      counts.decay_claims += claims(decay);
    }
    return counts;
  }
};

// At most 5%, and what chance adds to that in 200 studies.
constexpr int kFewWrong = 15;

TEST_F(VerdictThroughFiles, NothingMatters) {
  const Said counts = said(nothing_matters);
  EXPECT_LE(counts.lower + counts.higher, kFewWrong);
  EXPECT_LE(counts.mask_claims, kFewWrong);
  EXPECT_LE(counts.decay_claims, kFewWrong);
}

TEST_F(VerdictThroughFiles, OnlyTheAmountMattersAndTheGridHasTheBest) {
  const Said counts = said(amount_alone(0.4));
  EXPECT_GE(counts.decay_helps, kStudies - 3);
  EXPECT_LE(counts.firm, kFewWrong);
  EXPECT_LE(counts.mask_claims, kFewWrong);
}

// Beyond the largest: both arms would decay more, and neither is at its best.
TEST_F(VerdictThroughFiles, OnlyTheAmountMattersAndTheGridEndsBeforeTheBest) {
  const Said counts = said(amount_alone(4));
  EXPECT_GE(counts.edge, kStudies - 2);
  EXPECT_EQ(counts.lower + counts.higher, 0);
  EXPECT_LE(counts.mask_claims, kFewWrong);
  EXPECT_GE(counts.decay_helps, kStudies - 3);
}

// The best is in plain's grid and beyond that of cwd, which decays a sixteenth at equal weight decay.
TEST_F(VerdictThroughFiles, AGridThatIsTooShortForOneArmIsNoDifference) {
  const Truth less = [](const std::string& arm, double weight_decay) {
    return amount_alone(0.4)(arm, arm == "plain" ? weight_decay : weight_decay / 6.25);
  };
  const Said counts = said(less);
  EXPECT_GE(counts.edge, kStudies * 95 / 100);
  EXPECT_LE(counts.lower + counts.higher, kFewWrong);
}

// Nothing that is said is the opposite; most of what could be found is.
TEST_F(VerdictThroughFiles, TheMaskHelps) {
  const Said counts = said(mask_helps(0.01));
  EXPECT_EQ(counts.higher, 0);
  EXPECT_EQ(counts.mask_claims, counts.mask_lower);
  EXPECT_GE(counts.mask_lower, kStudies * 80 / 100);
  EXPECT_GE(counts.lower, (kStudies - counts.edge) * 75 / 100);
  EXPECT_EQ(counts.equal, 0);
}

}  // namespace verdict_truth_test
}  // namespace cautious::study
