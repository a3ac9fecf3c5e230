// Studies of external runs whose decay is recorded: controls that repeat it wait for it, are told where it is, and fail where
// there is none.
#include <map>
#include <set>

#include "external_study.h"
#include "run/decay_trace.h"
#include "study/runner.h"

namespace cautious::study {
namespace external_recorded_test {

class RecordedStudies : public ExternalFiles {
 protected:
  using Act = std::function<void(const ExternalRun&)>;

  // One tensor that decays in half of its coordinates, for two steps.
  static void record(const ExternalRun& run) {
    run::DecayTraceWriter writer(run.directory, {"w"}, 0);
    StepReport report;
    report.tensors = {{.count = 8, .decayed = 4, .budget = 0.25}};
    writer.add(report);
    writer.add(report);
  }

  // The arms that were made. `act` is what a run does besides its loss.
  std::multiset<std::string> made(const Act& act) {
    ExternalStudy study(recorded_plan(comparison()), this->study());
    std::multiset<std::string> arms;
    while (const auto run = study.next()) {
      arms.insert(run->arm);
      act(*run);
      study.finish(loss_of(*run, helpful));
    }
    failed_ = study.count(RunStatus::failed);
    return arms;
  }

  std::set<std::string> reasons() const {
    std::set<std::string> all;
    for (const FinishedRun& run : read_results(study()).runs) {
      if (run.status == RunStatus::failed) all.insert(run.failure.substr(0, run.failure.find(',')));
    }
    return all;
  }

  std::size_t failed_ = 0;
};

TEST_F(RecordedStudies, TwoMoreControlsAndTheSameQuestions) {
  const Plan plan = recorded_plan(comparison()), other = external_plan(comparison());
  EXPECT_EQ(plan.arms.size(), other.arms.size() + 2);
  const auto questions = [](const Plan& of) {
    std::vector<std::string> all;
    for (const Contrast& contrast : of.contrasts) {
      if (contrast.primary) all.push_back(contrast.a + " " + contrast.b);
    }
    return all;
  };
  EXPECT_EQ(questions(plan), questions(other));
  EXPECT_EQ(questions(plan), questions(compare_plan({})));
}

TEST_F(RecordedStudies, ControlsAreToldWhatToRepeat) {
  std::map<std::uint64_t, std::string> recorded;
  const auto arms = made([&](const ExternalRun& run) {
    EXPECT_EQ(run.decay_trace, run.arm == "cwd" && run.seed < 100) << run.folder;
    if (run.decay_trace) {
      record(run);
      recorded[run.seed] = run.directory.string();
    }
    EXPECT_EQ(run.density_from, run.arm == "random" ? recorded.at(run.seed) : "");
    EXPECT_EQ(run.budget_from, run.arm == "budget" ? recorded.at(run.seed) : "");
    EXPECT_TRUE(run.arm != "random" || run.decay == "random");
    EXPECT_TRUE(run.arm != "budget" || run.decay == "decoupled");
    const bool control = !run.density_from.empty() || !run.budget_from.empty();
    EXPECT_TRUE(!control || run.weight_decay == 0.5) << "at the point of cwd";
  });
  EXPECT_EQ(arms.count("random"), 5u);
  EXPECT_EQ(arms.count("budget"), 5u);
  EXPECT_EQ(failed_, 0u);
  const Conclusion found = ExternalStudy(recorded_plan(comparison()), study()).conclude();
  EXPECT_EQ(found.verdict.answers.size(), 3u);
  const std::string page = content(found.page);
  for (const char* const words : {"cwd - random", "cwd - budget"}) EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST_F(RecordedStudies, WhereNothingWasRecordedControlsFailAndNothingIsMadeAgain) {
  const auto arms = made([](const ExternalRun&) {});
  EXPECT_EQ(arms.count("random") + arms.count("budget"), 0u);
  EXPECT_EQ(failed_, 10u);
  for (const std::string& reason : reasons()) EXPECT_EQ(reason, "its reference run");
  EXPECT_TRUE(made([](const ExternalRun&) {}).empty());
  EXPECT_EQ(failed_, 10u);
}

// A study of the version before, whose runs kept no record: those that have controls now are made again.
TEST_F(RecordedStudies, AStudyWithoutRecordsGoesOn) {
  make(helpful);
  const auto arms = made([](const ExternalRun& run) {
    if (run.decay_trace) record(run);
  });
  EXPECT_EQ(arms.count("cwd"), 5u);
  EXPECT_EQ(arms.count("random"), 5u);
  EXPECT_EQ(arms.size(), 15u);
  EXPECT_EQ(failed_, 0u);
}

// What is there when a run ends counts, not what an attempt before left.
TEST_F(RecordedStudies, HalfATraceIsNotRepeated) {
  {
    ExternalStudy study(recorded_plan(comparison()), this->study());
    while (const auto run = study.next()) {
      if (run->decay_trace) {
        record(*run);
        break;  // killed
      }
      study.finish(loss_of(*run, helpful));
    }
  }
  bool ended = false;
  made([&](const ExternalRun& run) {
    if (run.decay_trace) record(run);
    ended = ended || run.decay_trace;
    EXPECT_TRUE(ended || run.arm != "random");
  });
  EXPECT_EQ(failed_, 0u);
}

TEST_F(RecordedStudies, ACommandCannotRepeat) {
  const Plan plan = recorded_plan(comparison());
  const std::string line = message([&] {
    run_study(plan, expand(plan), study(), {.program = "", .command = "echo 1", .jobs = 1, .stop = {}, .watch = {}});
  });
  EXPECT_NE(line.find("arm 'random' is a control of 'cwd', but a command keeps no record of its decay"), std::string::npos)
      << line;
  EXPECT_FALSE(std::filesystem::exists(study()));
}

}  // namespace external_recorded_test
}  // namespace cautious::study
