// The paper's experiments as plans: sound at every scale, quick where they say so, judged by what their tables have.
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "study/reproduce.h"
#include "study_plan.h"

namespace cautious::study {
namespace paper_plans_test {

constexpr std::array<Scale, 3> kScales{Scale::quick, Scale::day, Scale::full};

// A file of stories15M's shape with a longer context, of zeros, in the place of the models that plans start from: those need
// not be here.
class PaperPlans : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    model_ = directory_ / "stories15M.bin";
    const std::array<std::int32_t, 7> shape{288, 768, 6, 6, 6, 32000, 2048};
    std::ofstream(model_, std::ios::binary).write(reinterpret_cast<const char*>(shape.data()), sizeof shape);
    std::filesystem::resize_file(model_, 61'160'092);
    std::ofstream(directory_ / "tokenizer.bin") << "only its name is looked at";
  }

  Experiment with_model(Experiment experiment) const {
    for (auto& [key, value] : experiment.plan.base) {
      if (key == "model.from") value = model_.string();
    }
    return experiment;
  }

  std::filesystem::path model_;
};

TEST_F(PaperPlans, ExpandAtEveryScale) {
  for (const BundledPlan& bundled : bundled_plans()) {
    for (const Scale scale : kScales) {
      SCOPED_TRACE(bundled.name + " " + std::string(cautious::name_of(scale)));
      const Experiment experiment = with_model(read_experiment(bundled, scale));
      Plan one = experiment.plan;
      one.seeds.resize(1);
      const std::vector<PlannedRun> runs = expand(one);
      EXPECT_FALSE(runs.empty());
      EXPECT_FALSE(experiment.plan.title.empty());
      EXPECT_NE(experiment.plan.about.find("The paper"), std::string::npos);
      EXPECT_NE(experiment.plan.about.find("Ours"), std::string::npos);
      EXPECT_FALSE(experiment.plan.paper.empty());
      // Of halving all runs of a stage must have the same length.
      std::set<std::int64_t> steps;
      for (const PlannedRun& run : runs) steps.insert(steps_of(run.config));
      EXPECT_TRUE(experiment.stages == 1 || steps.size() == 1);
    }
  }
}

TEST_F(PaperPlans, QuickIsMinutesAndDayIsANightOnTwoCores) {
  for (const std::string& name : reproducible()) {
    SCOPED_TRACE(name);
    double quick = 0, day = 0;
    for (const Experiment& experiment : experiments(name, Scale::quick)) quick += cost_of(with_model(experiment)).core_hours;
    for (const Experiment& experiment : experiments(name, Scale::day)) day += cost_of(with_model(experiment)).core_hours;
    EXPECT_LT(quick / 2 * 60, 6) << "minutes";
    EXPECT_LT(day / 2, 14) << "hours";
  }
}

// Tables 4 and 5: the paper's benchmarks with its numbers of examples at full scale, ours below.
TEST_F(PaperPlans, OfBenchmarksAreJudgedByThem) {
  for (const char* name : {"table-downstream", "table-spd"}) {
    for (const Scale scale : kScales) {
      Experiment experiment = with_model(experiments(name, scale).at(0));
      experiment.plan.seeds.resize(1);
      for (const PlannedRun& run : expand(experiment.plan)) {
        EXPECT_EQ(measure_of(run).columns[0].key, experiment.plan.objective);
        EXPECT_EQ(measure_of(run).unit, "points");
      }
    }
  }
  std::map<std::string, std::string> numbers;
  for (const char* name : {"table-downstream", "table-spd"}) {
    const Experiment full = experiments(name, Scale::full).at(0);
    for (const PaperNumber& entry : full.plan.paper) numbers[entry.what] = entry.number;
  }
  EXPECT_EQ(numbers.size(), 24u + 24u);
  EXPECT_EQ(numbers["Muon + CWD, OLMo-1B, PIQA (acc_norm)"], "0.71");
  EXPECT_EQ(numbers["TinyLlama, SPD, AGIEval (3-shot)"], "20.21 +/- 0.10");
  EXPECT_EQ(numbers["Mistral-7B, elementwise CWD, MMLU (5-shot)"], "62.13 +/- 0.07");
}

}  // namespace paper_plans_test
}  // namespace cautious::study
