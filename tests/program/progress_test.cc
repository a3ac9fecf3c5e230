// What a person sees of a study that runs, and how long it will still take.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "study/progress.h"
#include "study_plan.h"

namespace cautious::study {
namespace progress_test {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct State {
  RunStatus status;
  double progress = 0, loss = kNone, seconds = 0;
};

struct Watched {
  std::vector<FinishedRun> runs;
  std::vector<double> progress;
};

// Runs of 100 steps, an arm after the other.
Watched watched(const std::vector<std::pair<std::string, std::vector<State>>>& arms) {
  Watched all;
  for (const auto& [arm, states] : arms) {
    std::uint64_t seed = 0;
    for (const State& state : states) {
      FinishedRun run{.run = {}, .status = state.status, .loss = state.loss, .seconds = state.seconds, .failure = {}};
      run.run.arm = arm;
      run.run.point = {{"optimizer.weight_decay", "0.1"}};
      run.run.seed = seed++;
      run.run.folder = fmt::format("{} {}", arm, run.run.seed);
      run.run.config.train.steps = 100;
      run.run.config.train.tokens_per_param = 0;
      all.runs.push_back(run);
      all.progress.push_back(state.progress);
    }
  }
  return all;
}

using enum RunStatus;

TEST(ProgressRows, ARowForEachRunOfASmallStudy) {
  const Watched study = watched({{"a", {{done, 1, 2.5}, {running, 0.5}}}, {"long-name", {{failed, 0.1}, {waiting, 0}}}});
  EXPECT_EQ(progress_rows(study.runs, study.progress, 100, 50),
            (std::vector<std::string>{"a weight_decay=0.1 seed=0            1/1   [####################]   2.5000  done",
                                      "a weight_decay=0.1 seed=1            0/1   [##########..........]        -  running",
                                      "long-name weight_decay=0.1 seed=0    0/1   [####################]        -  failed",
                                      "long-name weight_decay=0.1 seed=1    0/1   [....................]        -  waiting"}));
  EXPECT_EQ(overall(study.runs, study.progress), "1/4 runs done, 1 failed   62%");
}

TEST(ProgressRows, WhoElseIsAtWork) {
  Watched study = watched({{"a", {{running}, {running}, {running}, {running}, {running}}}, {"b", {{running}, {left_out}}}});
  EXPECT_EQ(elsewhere(study.runs), "");
  for (FinishedRun& run : study.runs) run.worker = run.run.arm == "a" ? "node7:4711" : "node8:312";
  study.runs[4].run.folder = study.runs[3].run.folder;  // which are one
  EXPECT_EQ(elsewhere(study.runs),
            "node7:4711 makes a weight_decay=0.1 seed=0, a weight_decay=0.1 seed=1, a weight_decay=0.1 seed=2, and 1 more; "
            "node8:312 makes b weight_decay=0.1 seed=0");
}

TEST(ProgressRows, ARowForEachArmOfALargeOne) {
  std::vector<State> seeds(15, {waiting});
  seeds[0] = {done, 1, 2};
  seeds[1] = {done, 1, 3};
  seeds[2] = {diverged, 0.5};
  seeds[3] = seeds[4] = {running, 0.75};
  const Watched study = watched({{"a", seeds}, {"b", {{waiting}, {waiting}}}});
  EXPECT_EQ(progress_rows(study.runs, study.progress, 60, 50),
            (std::vector<std::string>{"a weight_decay=0.1    2/15  [###.......]   2.5000  2 running, 1 diverged",
                                      "b weight_decay=0.1    0/2   [..........]        -"}));
  EXPECT_EQ(overall(study.runs, study.progress), "2/17 runs done, 1 diverged   26%");
}

// Of the points of an arm one will be run for each seed, and a run without decay is every arm's.
TEST(ProgressRows, CandidatesCountByTheirChance) {
  Watched study = watched({{"a", {{waiting}, {waiting}, {waiting}, {waiting}}}});
  for (std::size_t i = 0; i < 4; ++i) {
    PlannedRun& run = study.runs[i].run;
    run.seed = i / 2;
    run.candidate = true;
    run.share = 0.5;
    run.point[0].second = i % 2 == 0 ? "0.1" : "1";
  }
  EXPECT_EQ(overall(study.runs, study.progress), "0/2 runs done    0%");
  EXPECT_EQ(progress_rows(study.runs, study.progress, 100, 50).front(),
            "a at its best point seed=0    0/1   [....................]        -  waiting");
  EXPECT_EQ(seconds_left(study.runs, study.progress, 1, 0.1), 2 * 100 * 0.1);
  study.runs[1].status = study.runs[3].status = left_out;
  study.runs[0].status = done;
  study.runs[0].loss = 2;
  EXPECT_EQ(overall(study.runs, study.progress), "1/2 runs done   50%");
  EXPECT_EQ(progress_rows(study.runs, study.progress, 100, 50).back(),
            "a weight_decay=0.1 seed=1    0/1   [....................]        -  waiting");
  study.runs[2].run.folder = study.runs[0].run.folder;
  EXPECT_EQ(overall(study.runs, study.progress), "1/1 runs done  100%");
}

TEST(ProgressRows, WhatIsDoneIsLeftOutFirst) {
  const Watched study = watched({{"a", {{done, 1, 2}, {running, 0.5}, {done, 1, 2}, {waiting}, {waiting}}}});
  const auto ends = [&](std::size_t height) {
    std::vector<std::string> words;
    for (const std::string& line : progress_rows(study.runs, study.progress, 100, height)) {
      words.push_back(line.starts_with("...") ? line : line.substr(line.rfind(' ') + 1));
    }
    return words;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(ends(5), (Words{"done", "running", "done", "waiting", "waiting"}));
  EXPECT_EQ(ends(4), (Words{"running", "waiting", "waiting", "... and 2 more"}));
  EXPECT_EQ(ends(3), (Words{"running", "waiting", "... and 3 more"}));
  EXPECT_EQ(ends(1), (Words{"... and 5 more"}));
}

TEST(ProgressRows, Endings) {
  Watched study = watched({{"a", {{done, 1, 2.50341, 65}, {diverged}, {failed}}}});
  study.runs[2].failure = "no memory";
  EXPECT_EQ(ending_of(study.runs[0]), "a weight_decay=0.1 seed=0: done, validation loss 2.5034, 1:05");
  EXPECT_EQ(ending_of(study.runs[1]), "a weight_decay=0.1 seed=1: diverged");
  EXPECT_EQ(ending_of(study.runs[2]), "a weight_decay=0.1 seed=2: failed: no memory");
}

TEST(Pace, TheArmsOwnThenAnyThenTheGiven) {
  const Watched none = watched({{"a", {{running, 0.5}, {waiting}}}});
  EXPECT_TRUE(std::isnan(seconds_left(none.runs, none.progress, 1, kNone)));
  EXPECT_DOUBLE_EQ(seconds_left(none.runs, none.progress, 1, 0.1), 5 + 10);
  EXPECT_DOUBLE_EQ(seconds_left(none.runs, none.progress, 2, 0.1), 10);  // no run is faster than itself
  const Watched some = watched({{"a", {{done, 1, 2, 50}, {waiting}}}, {"b", {{waiting}, {failed}, {diverged}}}});
  EXPECT_DOUBLE_EQ(seconds_left(some.runs, some.progress, 1, 9), 50 + 50);
  const Watched both =
      watched({{"a", {{done, 1, 2, 50}, {waiting}}}, {"b", {{waiting}, {done, 1, 2, 150}}}, {"c", {{waiting}}}});
  EXPECT_DOUBLE_EQ(seconds_left(both.runs, both.progress, 1, 9), 50 + 150 + 100);
  const Watched all = watched({{"a", {{done, 1, 2, 50}}}});
  EXPECT_EQ(seconds_left(all.runs, all.progress, 1, kNone), 0);
}

}  // namespace progress_test
}  // namespace cautious::study
