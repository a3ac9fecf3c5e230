// A control that repeats a reference run: with the densities and factors it is given, its tensors decay as much.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/reference_run.h"
#include "run_fixture.h"

namespace cautious::reference_run_test {

using run::OwnDecay;
using run::ReferenceRun;

class ReferenceRunTest : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    run::DecayTraceWriter writer(directory_, {"a", "b", "c"}, 0);
    for (const double budget : {0.5, 0.125}) {
      StepReport report;
      report.tensors = {{.count = 8, .decayed = 2, .budget = budget},
                        {.count = 8, .decayed = 6, .budget = 3 * budget},
                        {.count = 8, .decayed = 0, .budget = 0}};
      writer.add(report);
    }
  }
  ReferenceRun of(ReferenceRun::What what) { return ReferenceRun(what, directory_, {"a", "b", "c"}); }

  static constexpr double kDensity[] = {0.25, 0.75, 0}, kBudget[] = {0.5, 1.5, 0};
};

// What decays is density x factor x strength x sum of |x|.
TEST_F(ReferenceRunTest, TheBudgetOfEveryTensorIsSpent) {
  const std::vector<OwnDecay> own{{.strength = 0.01, .sum = 400}, {.strength = 0.02, .sum = 300}, {.strength = 0.01, .sum = 7}};
  for (const auto what : {ReferenceRun::What::density, ReferenceRun::What::budget}) {
    const ReferenceRun reference = of(what);
    EXPECT_EQ(reference.steps(), 2);
    for (const int step : {1, 2}) {
      const auto [densities, factors, all] = reference.follow(step, own);
      double wanted = 0, plain = 0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(densities[i], what == ReferenceRun::What::density ? kDensity[i] : 1);
        const double unscaled = densities[i] * own[i].strength * own[i].sum, budget = kBudget[i] / (step == 1 ? 1 : 4);
        EXPECT_DOUBLE_EQ(factors[i] * unscaled, budget);
        wanted += budget;
        plain += unscaled;
      }
      EXPECT_DOUBLE_EQ(all, wanted / plain);
    }
  }
}

TEST_F(ReferenceRunTest, NeverMoreThanAllOfAWeightAndNothingOfNothing) {
  const std::vector<OwnDecay> own{{.strength = 0.5, .sum = 0.01}, {.strength = 0, .sum = 300}, {.strength = 0.5, .sum = 0}};
  for (const auto what : {ReferenceRun::What::density, ReferenceRun::What::budget}) {
    EXPECT_EQ(of(what).follow(1, own).factors, (std::vector<double>{2, 0, 0}));
  }
}

TEST_F(ReferenceRunTest, OtherTensorsAndMoreStepsAreRefused) {
  const auto refusal = [&](const std::vector<std::string>& names) {
    return refused(Fault::data, [&] { ReferenceRun(ReferenceRun::What::budget, directory_, names); });
  };
  EXPECT_NE(refusal({"a", "x", "c"})
                .find("the 3 tensors of its decay trace are not the 3 of this run: where it has 'b', this one "
                      "has 'x'"),
            std::string::npos)
      << refusal({"a", "x", "c"});
  EXPECT_NE(refusal({"a", "b"}).find("where it has 'c', this one has nothing"), std::string::npos);
  EXPECT_NE(refusal({"a", "b", "c", "d"}).find("where it has nothing, this one has 'd'"), std::string::npos);
  const ReferenceRun reference = of(ReferenceRun::What::density);
  const std::vector<OwnDecay> own(3);
  for (const int step : {0, 3}) {
    const std::string line = refused(Fault::data, [&] { (void)reference.follow(step, own); });
    EXPECT_NE(line.find(fmt::format("has 2 steps, this run is at step {}", step)), std::string::npos) << line;
  }
}

}  // namespace cautious::reference_run_test
