// Means over studies against a published meta-analysis, the equations that define them written out, and simulated studies.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "simulated.h"
#include "study/statistics.h"
#include "usage_message.h"

namespace cautious::study {
namespace statistics_combined_test {

// Vaccination against tuberculosis (Colditz and others 1994): the logarithm of the relative risk in 13 trials, from the cases
// among the vaccinated and the others.
std::vector<Finding> trials() {
  struct Trial {
    double sick, healthy, sick_without, healthy_without;
  };
  constexpr Trial kTrials[]{{4, 119, 11, 128},     {6, 300, 29, 274},      {3, 228, 11, 209},        {62, 13536, 248, 12619},
                            {33, 5036, 47, 5761},  {180, 1361, 372, 1079}, {8, 2537, 10, 619},       {505, 87886, 499, 87892},
                            {29, 7470, 45, 7232},  {17, 1699, 65, 1600},   {186, 50448, 141, 27197}, {5, 2493, 3, 2338},
                            {27, 16886, 29, 17825}};
  std::vector<Finding> findings;
  for (const Trial& trial : kTrials) {
    const double with = trial.sick + trial.healthy, without = trial.sick_without + trial.healthy_without;
    findings.push_back({std::log(trial.sick / with / (trial.sick_without / without)),
                        std::sqrt(1 / trial.sick - 1 / with + 1 / trial.sick_without - 1 / without)});
  }
  return findings;
}

struct Squares {
  double mean, sum, weights;
};

Squares squares_at(const std::vector<Finding>& findings, double variance) {
  double weights = 0, total = 0, sum = 0;
  for (const Finding& finding : findings) {
    weights += 1 / (std::pow(finding.error, 2) + variance);
    total += finding.value / (std::pow(finding.error, 2) + variance);
  }
  for (const Finding& finding : findings)
    sum += std::pow(finding.value - total / weights, 2) / (std::pow(finding.error, 2) + variance);
  return {total / weights, sum, weights};
}

// The variance 0.318 and the mean -0.715 are what meta-analyses of these trials by this method print.
TEST(Combined, PublishedTrials) {
  const Combined all = combined(trials());
  EXPECT_EQ(all.studies, 13u);
  EXPECT_NEAR(std::pow(all.between, 2), 0.318, 0.0005);
  EXPECT_NEAR(all.mean, -0.715, 0.0005);
  const Squares at = squares_at(trials(), std::pow(all.between, 2));
  EXPECT_NEAR(at.sum, 12, 1e-9);
  EXPECT_NEAR(at.mean, all.mean, 1e-12);
  constexpr double kQuantile12 = 2.1788128296634177;  // of Student's t with 12 degrees of freedom, 97.5%
  EXPECT_NEAR(all.interval.high - all.interval.low, 2 * kQuantile12 / std::sqrt(at.weights), 1e-9);
  EXPECT_NEAR((all.interval.high + all.interval.low) / 2, all.mean, 1e-12);
  EXPECT_GT(all.p, 0.001);
  EXPECT_LT(all.p, 0.005);
}

TEST(Combined, StudiesThatAgreeAreWeightedByTheirErrorsAlone) {
  const std::vector<Finding> findings{{1.0, 0.1}, {1.1, 0.2}, {0.9, 0.4}};
  const Combined all = combined(findings);
  EXPECT_EQ(all.between, 0);
  EXPECT_NEAR(all.mean, (1.0 * 100 + 1.1 * 25 + 0.9 * 6.25) / 131.25, 1e-12);
  constexpr double kQuantile2 = 4.302652729749464;
  EXPECT_NEAR(all.interval.high - all.mean, kQuantile2 / std::sqrt(131.25), 1e-9);
}

// With two of one precision the mean is between them, whatever their distance, and t has one degree of freedom.
TEST(Combined, TwoStudies) {
  const Combined all = combined(std::vector<Finding>{{-0.5, 0.1}, {0.7, 0.1}});
  EXPECT_NEAR(all.mean, 0.1, 1e-12);
  EXPECT_NEAR(all.between, std::sqrt(0.72 - 0.01), 1e-9);
  EXPECT_NEAR(all.interval.high - all.mean, 12.706204736432095 * 0.6, 1e-6);
  EXPECT_NEAR(all.p, 1 - 2 / std::acos(-1.0) * std::atan(0.1 / 0.6), 1e-9);
}

TEST(Combined, OneOrNone) {
  const Combined one = combined(std::vector<Finding>{{0.25, 0.1}});
  EXPECT_EQ(one.mean, 0.25);
  EXPECT_TRUE(std::isnan(one.interval.low) && std::isnan(one.p));
  EXPECT_TRUE(std::isnan(combined({}).mean));
}

TEST(Combined, SizeDoesNotMatter) {
  std::vector<Finding> findings = trials();
  const Combined before = combined(findings);
  for (Finding& finding : findings) finding = {finding.value * 0x1p40, finding.error * 0x1p40};
  const Combined after = combined(findings);
  EXPECT_NEAR(after.mean * 0x1p-40, before.mean, 1e-9);
  EXPECT_NEAR(after.between * 0x1p-40, before.between, 1e-9);
  EXPECT_NEAR(after.p, before.p, 1e-9);
}

// How often 0 is outside the interval where it is the truth: 5%, but for chance; less where the studies do not differ.
TEST(Combined, Coverage) {
  Normal normal(7);
  constexpr int kStudies = 10, kRepeats = 4000;
  for (const double between : {0.0, 0.005, 0.02}) {
    int outside = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      std::vector<Finding> findings;
      for (int study = 0; study < kStudies; ++study) {
        const double error = study % 3 == 0 ? 0.004 : 0.01;
        findings.push_back({between * normal() + error * normal(), error});
      }
      const Combined all = combined(findings);
      const bool wrong = all.interval.low > 0 || all.interval.high < 0;
      EXPECT_EQ(wrong, all.p < 0.05);
      outside += wrong;
    }
    EXPECT_LT(outside, 0.065 * kRepeats) << between;
    EXPECT_GT(outside, (between == 0 ? 0.01 : 0.03) * kRepeats) << between;
  }
}

TEST(Combined, ErrorsArePositive) {
  for (const double error : {0.0, -1.0, std::nan("")}) {
    EXPECT_NE(message([&] {
                combined(std::vector<Finding>{{1, 0.1}, {1, error}});
              }).find("the standard error of a study is"),
              std::string::npos);
  }
}

}  // namespace statistics_combined_test
}  // namespace cautious::study
