// Which runs a plan with tuning seeds has: points to choose from, grids of single arms, points of other arms.
#include <set>

#include "study_plan.h"

namespace cautious::study {
namespace expand_tuning_test {

class ExpandTuning : public StudyPlan {};

// Points are chosen on the tuning seeds; what is compared point by point needs them all on the others too.
TEST_F(ExpandTuning, AContrastPointByPointRunsAllPoints) {
  for (const PlannedRun& run : expand(read(with(kExample, "best = true\n", "")))) {
    EXPECT_FALSE(run.tuning || run.candidate);
  }
  const std::string both = std::string(kExample) + "[[contrast]]\na = \"cwd\"\nb = \"plain\"\nprimary = false\n";
  for (const PlannedRun& run : expand(read(both))) EXPECT_EQ(run.candidate, !run.tuning && run.arm == "random") << run.folder;
}

TEST_F(ExpandTuning, AnArmsOwnGridAndThePointOfAnother) {
  const auto runs = expand(read(R"(seeds = 1
tune_seeds = [7]
[base]
model.preset = "nano-100k"
[grid]
"optimizer.weight_decay" = [0, 0.1]
[[arm]]
name = "none"
grid = false
optimizer.decay = "none"
[[arm]]
name = "plain"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
grid."optimizer.weight_decay" = [0, 0.25]
[[arm]]
name = "gradient"
optimizer.decay = "gradient"
point_of = "cwd"
[[contrast]]
a = "cwd"
b = "plain"
best = true
)"));
  std::vector<std::string> names;
  std::set<std::string> folders;
  for (const PlannedRun& run : runs) {
    names.push_back(name_of(run.arm, run.point) + (run.tuning ? " tuning" : ""));
    folders.insert(run.folder);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"plain weight_decay=0 tuning", "plain weight_decay=0.1 tuning",
                                      "cwd weight_decay=0 tuning", "cwd weight_decay=0.25 tuning", "none",
                                      "plain weight_decay=0", "plain weight_decay=0.1", "cwd weight_decay=0",
                                      "cwd weight_decay=0.25", "gradient weight_decay=0", "gradient weight_decay=0.25"}));
  EXPECT_EQ(folders.size(), 3u + 4u);  // no decay is no decay
  EXPECT_EQ(runs[9].folder, runs[4].folder);
  EXPECT_EQ(runs[9].share, 0);
}

}  // namespace expand_tuning_test
}  // namespace cautious::study
