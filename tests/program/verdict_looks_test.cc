// Looks at a study before its last seeds: remembered in its directory, and said.
#include "run_fixture.h"
#include "study/verdict.h"
#include "verdict_study.h"

namespace cautious::study {
namespace verdict_looks_test {

class Looks : public RunFiles {};

TEST_F(Looks, AreRememberedAndSaid) {
  Results results = study_of(matched(0.05), {kBest});
  results.directory = directory_;
  EXPECT_TRUE(looks_of(directory_).empty());
  record_look(results);
  record_look(results);
  EXPECT_EQ(looks_of(directory_), (std::vector<Look>{{.seeds = 4, .tune_seeds = 0}}));
  EXPECT_TRUE(verdict_of(results).looks.empty());
  Results fewer = results;
  fewer.plan.seeds.pop_back();
  EXPECT_TRUE(verdict_of(fewer).looks.empty());
  Results tuned = results;
  tuned.plan.tune_seeds = {100};
  EXPECT_EQ(verdict_of(tuned).looks.size(), 1U);
  for (const char* arm : {"cwd", "plain", "random"}) results.runs.push_back(run_of(arm, "1", 4, 2.0));
  results.plan.seeds.push_back(4);
  EXPECT_EQ(judged_seeds(results), 5U);
  record_look(results);
  results.plan.seeds.push_back(5);
  results.runs.push_back(run_of("cwd", "1", 5, 2.0));
  const Verdict verdict = verdict_of(results);
  EXPECT_EQ(verdict.looks.size(), 2U);
  EXPECT_NE(verdict.sentence.find("Seeds were added after looks at 4 and 5 seeds; no p here accounts for that."),
            std::string::npos)
      << verdict.sentence;
  results.runs.back().status = RunStatus::running;
  EXPECT_EQ(judged_seeds(results), 5U);
}

TEST_F(Looks, ADamagedLineIsNamed) {
  store(directory_ / "looks.jsonl", "{\"seeds\":3,\"tune_seeds\":2}\n{\"seeds\":-1}\n");
  EXPECT_EQ(refused(Fault::data, [&] { looks_of(directory_); }),
            (directory_ / "looks.jsonl").string() + ":2: 'seeds' is missing or not a number; remove the line");
}

}  // namespace verdict_looks_test
}  // namespace cautious::study
