// Studies of runs that a program of the user's makes: what it is told, that nothing is made twice, and what is said at the end.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <cautious/recipe.h>

#include "external_study.h"
#include "study/runner.h"

namespace cautious::study {
namespace external_study_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ExternalStudies : public ExternalFiles {};

TEST_F(ExternalStudies, ArmsOfCompareAndNothingOfOurs) {
  const Plan plan = external_plan(comparison());
  std::set<std::string> arms;
  for (const PlannedRun& run : expand(plan)) {
    arms.insert(run.arm);
    for (const run::ConfigKey& key : run::config_keys(run.config)) {
      const std::string section = key.name.substr(0, key.name.find('.'));
      EXPECT_TRUE((std::set<std::string>{"task", "optimizer", "objective", "train", "log"}).contains(section)) << key.name;
    }
  }
  EXPECT_EQ(arms, (std::set<std::string>{"none", "plain", "cwd", "shuffled", "opposed"}));
  const std::vector<Contrast> own = plan.contrasts, ours = compare_plan({}).contrasts;
  ASSERT_EQ(own.size(), ours.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].a + own[i].b, ours[i].a + ours[i].b);
    EXPECT_EQ(own[i].primary, ours[i].primary);
  }
}

TEST_F(ExternalStudies, ARunIsToldAllOfItsOptimizer) {
  ExternalStudy study(external_plan(comparison()), this->study());
  std::map<std::string, std::set<std::string>> decays;
  while (const auto run = study.next()) {
    const Recipe recipe = parse_recipe(run->recipe);
    decays[run->arm].insert(std::string(name_of(recipe.decay)));
    EXPECT_EQ(name_of(recipe.decay), run->decay);
    EXPECT_EQ(recipe.weight_decay, run->weight_decay);
    EXPECT_TRUE(run->decay != "none" || run->weight_decay == 0);
    EXPECT_EQ(run->lr, 1e-3);
    EXPECT_EQ(run->rest, "");
    EXPECT_EQ(run->directory, this->study() / "runs" / run->folder);
    const run::RunConfig config = run::read_config({.files = {run->directory / "config.toml"}, .preset = "", .overrides = {}});
    EXPECT_EQ(config.train.seed, run->seed);
    study.finish(loss_of(*run, helpful));
  }
  EXPECT_EQ(decays["shuffled"], std::set<std::string>{"shuffled"});
  EXPECT_EQ(decays["opposed"], std::set<std::string>{"opposed"});
  EXPECT_EQ(decays["cwd"], std::set<std::string>{"cautious"});
}

TEST_F(ExternalStudies, MatricesAndTheRestHaveARecipeEach) {
  Comparison muon = comparison();
  muon.optimizer = "muon";
  muon.settings.emplace_back("optimizer.rest.lr_multiplier", "0.5");
  ExternalStudy study(external_plan(muon), this->study());
  const auto run = study.next();
  ASSERT_TRUE(run);
  EXPECT_EQ(name_of(parse_recipe(run->recipe).rule), "muon");
  EXPECT_EQ(name_of(parse_recipe(run->rest).rule), "adam");
  EXPECT_EQ(parse_recipe(run->rest).weight_decay, run->weight_decay);
  EXPECT_EQ(run->rest_lr, 0.5e-3);
}

TEST_F(ExternalStudies, WhereDecayHelpsThatIsSaid) {
  make(helpful);
  const Conclusion found = conclusion();
  ASSERT_EQ(found.verdict.answers.size(), 3u);
  EXPECT_TRUE(found.verdict.answers[0].starts_with(
      "Weight decay helps here: plain (weight_decay=0.2) has a lower loss than none, by 0."))
      << found.verdict.answers[0];
  EXPECT_NE(found.verdict.answers[0].find(" nats (95%, 5 seeds, p < 0.001, corrected for 3 contrasts p < 0.001)"),
            std::string::npos)
      << found.verdict.answers[0];
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_NE(found.verdict.answers[i].find("practically equal, within 0.005 nats"), std::string::npos)
        << found.verdict.answers[i];
  }
  EXPECT_NE(found.text.find("report: " + (study() / "report.html").string()), std::string::npos);
}

TEST_F(ExternalStudies, WhereNothingMattersNothingIsClaimed) {
  make(idle);
  const Conclusion found = conclusion();
  for (const std::string& answer : found.verdict.answers) {
    EXPECT_EQ(answer.find(" has a "), std::string::npos) << answer;
    EXPECT_TRUE(answer.find("practically") != answer.npos || answer.find("nothing") != answer.npos) << answer;
  }
}

// The number of decimals follows from the target, and a unit may be missing.
TEST_F(ExternalStudies, TheObjectiveIsNamedAsTheUserNamesIt) {
  Comparison named = comparison();
  named.settings = {{"objective.name", "Word error"}, {"objective.target", "0.2"}};
  {
    ExternalStudy study(external_plan(named), this->study());
    while (const auto run = study.next()) study.finish(100 * loss_of(*run, helpful));
  }
  const Conclusion found = ExternalStudy(external_plan(named), study()).conclude();
  EXPECT_NE(found.verdict.answers[0].find("has a lower Word error than none, by 9.9"), std::string::npos)
      << found.verdict.answers[0];
  for (const std::string& answer : found.verdict.answers) EXPECT_EQ(answer.find("  "), std::string::npos) << answer;
  named.settings[1].second = "0.5";
  ExternalStudy again(external_plan(named), study());
  EXPECT_FALSE(again.next()) << "another target is another reading of the same runs";
  named.settings[0].second = "character error";
  EXPECT_NE(message([&] { ExternalStudy(external_plan(named), study()); }).find("none of its"), std::string::npos);
}

TEST_F(ExternalStudies, AStudyInPartsIsTheSameStudy) {
  std::vector<std::string> parts;
  for (const std::size_t most : {1u, 7u, 100u}) {
    for (const std::string& folder : make(helpful, most)) parts.push_back(folder);
  }
  const std::string verdict = conclusion().verdict.sentence;
  EXPECT_EQ(std::set<std::string>(parts.begin(), parts.end()).size(), parts.size()) << "no run is made twice";
  EXPECT_TRUE(make(helpful).empty());
  std::filesystem::remove_all(study());
  EXPECT_EQ(make(helpful), parts);
  EXPECT_EQ(conclusion().verdict.sentence, verdict);
}

TEST_F(ExternalStudies, ARunWithoutAnEndIsGivenOutAgain) {
  std::string first;
  {
    ExternalStudy study(external_plan(comparison()), this->study());
    first = study.next()->folder;
    EXPECT_EQ(study.next()->folder, first);
  }
  ExternalStudy study(external_plan(comparison()), this->study());
  EXPECT_EQ(study.next()->folder, first);
  EXPECT_EQ(message([&] { ExternalStudy(external_plan(comparison()), directory_ / "other").finish(1); }),
            "there is no run to finish; next() gives one out");
}

// Each in turn, as two processes would: no run is given out twice, and both come to the verdict of one.
TEST_F(ExternalStudies, TwoShareTheRuns) {
  std::vector<std::string> alone = make(helpful);
  const std::string verdict = conclusion().verdict.sentence;
  std::filesystem::remove_all(study());
  std::vector<std::string> shared;
  ExternalStudy first(external_plan(comparison()), study()), second(external_plan(comparison()), study());
  while (const auto run = first.next()) {
    const auto other = second.next();
    EXPECT_TRUE(other || second.waits());
    EXPECT_TRUE(!other || other->folder != run->folder);
    first.finish(loss_of(*run, helpful), 100 * run->weight_decay);
    shared.push_back(run->folder);
    if (!other) continue;
    second.finish(loss_of(*other, helpful), 100 * other->weight_decay);
    shared.push_back(other->folder);
  }
  EXPECT_FALSE(second.next() || first.waits() || second.waits());
  std::ranges::sort(alone);
  std::ranges::sort(shared);
  EXPECT_EQ(shared, alone);
  EXPECT_EQ(first.conclude().verdict.sentence, verdict);
  EXPECT_EQ(second.conclude().verdict.sentence, verdict);
}

TEST_F(ExternalStudies, OfARunThatWasTakenOverNothingIsWritten) {
  ExternalStudy study(external_plan(comparison()), this->study());
  for (const bool fails : {false, true}) {
    const ExternalRun run = *study.next();
    store(this->study() / "claims" / run.folder, "node7 1 another 1 token 1\n");
    fails ? study.fail("why", "log") : study.finish(1);
    EXPECT_EQ(names(run.directory), std::set<std::string>{"config.toml"});
    EXPECT_FALSE(std::filesystem::exists(this->study() / "logs" / (run.folder + ".txt")));
    EXPECT_NE(study.next()->folder, run.folder);
    EXPECT_TRUE(study.waits());
  }
}

TEST_F(ExternalStudies, FailuresAreRecordedAndTriedAgain) {
  {
    ExternalStudy study(external_plan(comparison()), this->study());
    while (const auto run = study.next()) {
      if (run->arm == "opposed") {
        study.fail("ValueError: two\nlines", "Traceback\n  all of it\n");
      } else {
        study.finish(loss_of(*run, helpful));
      }
    }
    EXPECT_EQ(study.count(RunStatus::failed), 5u);
    EXPECT_NE(study.progress().find("5 failed"), std::string::npos) << study.progress();
    EXPECT_NE(study.conclude().text.find("Weight decay helps here"), std::string::npos);
  }
  std::size_t failed = 0;
  for (const FinishedRun& run : read_results(study()).runs) {
    if (run.status != RunStatus::failed) continue;
    ++failed;
    EXPECT_EQ(run.failure, "ValueError: two lines");
    EXPECT_EQ(content(study() / "logs" / (run.run.folder + ".txt")), "Traceback\n  all of it\n");
  }
  EXPECT_EQ(failed, 5u);
  EXPECT_EQ(make(helpful).size(), 5u);
  EXPECT_EQ(conclusion().verdict.sentence.find("failed"), std::string::npos);
}

TEST_F(ExternalStudies, WhenATuningRunFailsItsArmIsNotJudged) {
  ExternalStudy study(external_plan(comparison()), this->study());
  while (const auto run = study.next()) {
    if (run->arm == "cwd") {
      study.fail("no memory", "");
    } else {
      study.finish(loss_of(*run, helpful));
    }
  }
  const Conclusion found = study.conclude();
  EXPECT_TRUE(found.verdict.answers[0].starts_with("Weight decay helps here")) << found.verdict.answers[0];
  EXPECT_NE(found.verdict.answers[1].find("the tuning runs of cwd are not all done"), std::string::npos);
}

// Neither of them is a result that could be the best, and neither is made again.
TEST_F(ExternalStudies, WhatIsNotFiniteHasDiverged) {
  const ExternalTruth wild = [](const ExternalRun& run) {
    return run.weight_decay == 1 ? kNaN : run.weight_decay == 2.5 ? -1 / 0.0 : helpful(run);
  };
  make(wild);
  EXPECT_TRUE(make(wild).empty());
  std::size_t diverged = 0;
  for (const FinishedRun& run : read_results(study()).runs) diverged += run.status == RunStatus::diverged;
  EXPECT_EQ(diverged, 4u);
  const Conclusion found = conclusion();
  EXPECT_NE(found.verdict.sentence.find("Training diverges at plain (weight_decay=1) (2 of 2 runs), cwd (weight_decay=2.5)"),
            std::string::npos)
      << found.verdict.sentence;
  EXPECT_TRUE(found.verdict.answers[0].starts_with("Weight decay helps here")) << found.verdict.answers[0];
}

TEST_F(ExternalStudies, ProgressCountsWhatIsLeft) {
  ExternalStudy study(external_plan(comparison()), this->study());
  EXPECT_TRUE(study.progress().starts_with("0/")) << study.progress();
  const auto run = study.next();
  study.finish(2.5);
  EXPECT_TRUE(study.progress().starts_with("tuning plain weight_decay=0 seed=100000: done, loss 2.5000, 0:00 | 1/"))
      << study.progress();
}

TEST_F(ExternalStudies, PlansThatCannotBe) {
  const auto refused_with = [&](const Overrides& settings) {
    Comparison wrong = comparison();
    wrong.settings = settings;
    return message([&] { expand(external_plan(wrong)); });
  };
  EXPECT_EQ(refused_with({{"optimizer.weight_decay", "0.1"}}),
            "optimizer.weight_decay cannot be set: give lambdas to choose from");
  EXPECT_NE(refused_with({{"train.steps", "100"}}).find("no key named 'train.steps'"), std::string::npos);
  EXPECT_NE(refused_with({{"model.preset", "nano-100k"}}).find("no key named 'model.preset'"), std::string::npos);
  EXPECT_NE(refused_with({{"objective.name", ""}}).find("objective.name is not a short text"), std::string::npos);
  EXPECT_NE(refused_with({{"objective.target", "0"}}).find("objective.target"), std::string::npos);
  EXPECT_NE(message([] { external_plan({.lambdas = {1}, .lrs = {}}); }).find("lr is missing"), std::string::npos);
  EXPECT_NE(message([] { external_plan({.lambdas = {}, .lrs = {1}}); }).find("lambdas is missing"), std::string::npos);
  EXPECT_EQ(refused_with({{"log.decay_trace", "true"}}), "log.decay_trace cannot be set: runs that a control repeats have it");
  EXPECT_NE(message([&] { ExternalStudy(compare_plan({}), study()); }).find("set task = \"external\""), std::string::npos);
}

TEST_F(ExternalStudies, ARecipeIsItsSettings) {
  EXPECT_EQ(settings_of_recipe("adamw beta2=0.95 eps=1e-6"),
            (Overrides{{"optimizer.name", "adamw"}, {"optimizer.beta2", "0.95"}, {"optimizer.eps", "1e-6"}}));
  EXPECT_NE(message([] { settings_of_recipe("adamw beta3=1"); }), "");
}

TEST_F(ExternalStudies, TheRunnerCannotMakeThem) {
  const Plan plan = external_plan(comparison());
  const std::string line =
      message([&] { run_study(plan, expand(plan), study(), {.program = "/bin/true", .jobs = 1, .stop = {}, .watch = {}}); });
  EXPECT_NE(line.find("task is 'external', so a program of yours makes the runs"), std::string::npos) << line;
  EXPECT_FALSE(std::filesystem::exists(study()));
}

}  // namespace external_study_test
}  // namespace cautious::study
