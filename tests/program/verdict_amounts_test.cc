// Arms at equal amounts of decay: exact where the truth is a curve, against normal equations, and by simulation.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "study/verdict.h"
#include "study_plan.h"
#include "study_truth.h"
#include "verdict_study.h"

namespace cautious::study {
namespace verdict_amounts_test {

const Contrast kEveryPoint{.a = "cwd", .b = "plain", .best = false, .primary = false};
const std::vector<std::string> kPlain{"0.05", "0.1", "0.2", "0.4"}, kCautious{"0.125", "0.25", "0.5", "1"};

double budget_at(const std::string& arm, double lambda) { return (arm == "plain" ? 1000 : 400) * lambda; }

// loss(arm, lambda, seed).
template <class Loss>
Results grid_study(std::size_t seeds, const Loss& loss) {
  ArmLosses losses;
  for (const std::string arm : {"cwd", "plain"}) {
    for (const std::string& lambda : arm == "plain" ? kPlain : kCautious) {
      for (std::size_t seed = 0; seed < seeds; ++seed) losses[{arm, lambda}].push_back(loss(arm, std::stod(lambda), seed));
    }
  }
  Results results = study_of(losses, {kEveryPoint});
  for (FinishedRun& run : results.runs) run.decay_budget = budget_at(run.run.arm, std::stod(run.run.point.front().second));
  return results;
}

TEST(EqualAmounts, ACurveAndAConstantAreFound) {
  const auto loss = [](const std::string& arm, double lambda, std::size_t seed) {
    const double z = std::log(budget_at(arm, lambda) / 100), own = static_cast<double>(seed);
    return 2 + 0.1 * own + 0.03 * z * z - 0.01 * z * z * z + (arm == "cwd" ? -0.02 - 0.001 * own : 0);
  };
  const EqualAmounts found = equal_amounts(grid_study(3, loss)).at(0);
  EXPECT_NEAR(found.difference.mean, -0.021, 1e-12);
  EXPECT_NEAR(found.difference.sd, 0.001, 1e-12);
  EXPECT_EQ(found.difference.n, 3U);
}

TEST(EqualAmounts, TheBestWeightDecaysAreComparedByTheirRatio) {
  const auto loss = [](const std::string& arm, double lambda, std::size_t seed) {
    const double z = std::log(lambda / (arm == "plain" ? 0.15 : 0.3));
    return 2 + 0.1 * static_cast<double>(seed) + 0.03 * z * z;
  };
  const EqualAmounts found = equal_amounts(grid_study(3, loss)).at(0);
  EXPECT_NEAR(found.ratio, 2, 1e-9);
  EXPECT_NEAR(found.ratio_interval.low, 2, 1e-9);
  EXPECT_NEAR(found.ratio_interval.high, 2, 1e-9);
  EXPECT_NE(found.sentence.find("; the best weight_decay of cwd is 2 (2 to 2) times that of plain (exploratory)"),
            std::string::npos)
      << found.sentence;
  const auto falling = [](const std::string&, double lambda, std::size_t seed) {
    return 2 - lambda + 0.1 * static_cast<double>(seed);
  };
  EXPECT_TRUE(std::isnan(equal_amounts(grid_study(3, falling)).at(0).ratio));
}

// Gaussian elimination of the normal equations of one seed: constant, z, z^2, z^3, and 1 for cwd.
double constant_by_elimination(const Results& results, std::uint64_t seed) {
  double m[5][6] = {};
  for (const FinishedRun& run : results.runs) {
    if (run.run.seed != seed) continue;
    const double z = std::log(run.decay_budget / 100);
    const double row[6] = {1, z, z * z, z * z * z, run.run.arm == "cwd" ? 1.0 : 0.0, run.loss};
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 6; ++j) m[i][j] += row[i] * row[j];
    }
  }
  for (int i = 0; i < 5; ++i) {
    for (int k = i + 1; k < 5; ++k) {
      const double factor = m[k][i] / m[i][i];
      for (int j = i; j < 6; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  return m[4][5] / m[4][4];
}

TEST(EqualAmounts, EverySeedIsALeastSquaresFit) {
  Normal normal(4);
  const Results results = grid_study(4, [&](const std::string&, double, std::size_t) { return 2 + 0.01 * normal(); });
  std::vector<double> constants;
  for (const std::uint64_t seed : results.plan.seeds) constants.push_back(constant_by_elimination(results, seed));
  const Spread wanted = spread_of(constants);
  const EqualAmounts found = equal_amounts(results).at(0);
  EXPECT_NEAR(found.difference.mean, wanted.mean, 1e-12);
  EXPECT_NEAR(found.difference.interval.high, wanted.interval.high, 1e-12);
  EXPECT_NEAR(found.p, paired(constants, std::vector<double>(4, 0.0)).t_p, 1e-9);
}

TEST(EqualAmounts, NeedTwoGridsThatOverlapAndEveryRun) {
  const auto loss = [](const std::string&, double, std::size_t) { return 2.0; };
  Results results = grid_study(3, loss);
  EXPECT_EQ(equal_amounts(results).size(), 1U);
  for (FinishedRun& run : results.runs) run.decay_budget *= run.run.arm == "cwd" ? 20 : 1;
  EXPECT_TRUE(equal_amounts(results).empty());
  results = grid_study(3, loss);
  for (FinishedRun& run : results.runs) {
    if (run.run.arm == "cwd" && run.run.point.front().second >= "0.5" && run.run.seed == 1) run.status = RunStatus::failed;
  }
  EXPECT_TRUE(equal_amounts(results).empty());
  results = grid_study(3, loss);
  results.plan.contrasts.front().best = true;
  EXPECT_TRUE(equal_amounts(results).empty());
  EXPECT_TRUE(equal_amounts(grid_study(1, loss)).empty());
}

class EqualAmountsSimulated : public StudyPlan {};

// Truths of docs/studies.md: a parabola over the amount that is best at 0.15 of plain's weight decay, and the mask's gain.
TEST_F(EqualAmountsSimulated, RatesAndCoverage) {
  constexpr int kStudies = 1000;
  const std::string every = "[[contrast]]\na = \"cwd\"\nb = \"plain\"\nprimary = false\n";
  for (const std::size_t seeds : {4u, 8u}) {
    SimulatedStudy study(read(truth_plan(seeds, "[0, 0.05, 0.1, 0.2, 0.4]", "[0, 0.125, 0.25, 0.5, 1]") + every));
    for (const double gain : {0.0, 0.005}) {
      const Truth truth = [gain](const std::string& arm, double lambda) {
        if (lambda == 0) return 0.05;
        const double z = std::log10((arm == "plain" ? 1 : 0.4) * lambda / 0.15);
        return 0.1 * z * z * (1 + z / 3) - (arm == "cwd" ? gain : 0);
      };
      Normal normal(seeds);
      double found = 0, sum = 0, ratios = 0, covered = 0;
      for (int i = 0; i < kStudies; ++i) {
        const EqualAmounts amounts = equal_amounts(study.draw(normal, truth)).at(0);
        found += amounts.p < 0.05;
        sum += amounts.difference.mean;
        if (!std::isfinite(amounts.ratio)) continue;
        ++ratios;
        covered += amounts.ratio_interval.low <= 2.5 && 2.5 <= amounts.ratio_interval.high;
      }
      EXPECT_NEAR(sum / kStudies, -gain, 2e-4);
      EXPECT_GE(covered / ratios, 0.92);
      EXPECT_GE(ratios / kStudies, 0.9);
      if (gain == 0) {
        EXPECT_NEAR(found / kStudies, 0.05, 0.02) << seeds;
      } else {
        EXPECT_GE(found / kStudies, seeds == 4 ? 0.5 : 0.9);
      }
    }
  }
}

}  // namespace verdict_amounts_test
}  // namespace cautious::study
