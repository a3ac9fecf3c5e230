// Which directory a plan may work in, and what is left as it was when it may not.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "fake_train.h"

namespace cautious::study {
namespace study_directory_test {

class StudyFolder : public FakeStudy {
 protected:
  std::string refused_run(Fault fault, const Plan& plan) const {
    std::string line = refused(fault, [&] { run(plan); });
    const std::string place = directory_.string() + "/";
    for (std::size_t at; (at = line.find(place)) != std::string::npos;) line.erase(at, place.size());
    return line;
  }
};

TEST_F(StudyFolder, SomeoneElsesFolder) {
  std::filesystem::create_directories(study());
  store(study() / "letter.txt", "");
  EXPECT_EQ(refused_run(Fault::usage, plan_of({"a"})),
            "out: 'study' is not empty and not a study: it has 'letter.txt', but no plan.toml; choose another directory");
  EXPECT_EQ(names(study()), std::set<std::string>{"letter.txt"});
}

TEST_F(StudyFolder, AFolderWithAPlanOfTheUser) {
  std::filesystem::create_directories(study());
  store(study() / "plan.toml", "# mine");
  EXPECT_EQ(refused_run(Fault::usage, plan_of({"a"})),
            "out: 'study' is not empty and not a study: it has 'plan.toml', but no runs; choose another directory");
  std::filesystem::create_directories(study() / "runs" / "mine");
  EXPECT_NE(refused_run(Fault::usage, plan_of({"a"})).find("but no configs"), std::string::npos);
  EXPECT_EQ(content(study() / "plan.toml"), "# mine");
  EXPECT_EQ(names(study()), (std::set<std::string>{"plan.toml", "runs"}));
}

TEST_F(StudyFolder, AnotherStudy) {
  Plan first = plan_of({"a", "b"});
  first.title = "The first one";
  EXPECT_TRUE(run(first));
  EXPECT_EQ(refused_run(Fault::usage, plan_of({"c"})),
            "out: 'study' is the study 'The first one', and none of its 2 runs is one of this plan; choose another directory");
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(first));
  EXPECT_EQ(calls().size(), 2u);
}

TEST_F(StudyFolder, APlanThatHasGrown) {
  EXPECT_TRUE(run(plan_of({"a"})));
  Plan more = plan_of({"a", "b"}, {0, 1});
  more.title = "Another title";
  EXPECT_TRUE(run(more));
  EXPECT_EQ(calls().size(), 4u);
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(more));
  EXPECT_NE(content(study() / "log.txt").find("the plan has changed"), std::string::npos);
}

TEST_F(StudyFolder, AStudyWithoutRunsTakesAnyPlan) {
  const Plan empty = plan_of({"x"});
  { const StudyDirectory made(study(), empty, expand(empty)); }
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(empty));
  EXPECT_TRUE(run(plan_of({"a"})));
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(plan_of({"a"})));
}

// The plan does not change under those who are at work.
TEST_F(StudyFolder, TwoPlansAtOnce) {
  const Plan plan = plan_of({"a"}), more = plan_of({"a", "b"});
  StudyDirectory first(study(), plan, expand(plan));
  ASSERT_TRUE(first.claims().take("a run"));
  EXPECT_EQ(refused_run(Fault::failure, more),
            fmt::format("out: 'study' is in use by {} with another plan; wait until it ends or choose another directory",
                        first.claims().worker().name()));
  EXPECT_TRUE(calls().empty());
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(plan));
  first.check_plan();
  first.claims().give_back("a run");
  EXPECT_TRUE(run(more));
  EXPECT_NE(refused(Fault::failure, [&] { first.check_plan(); }).find("is not this one any more"), std::string::npos);
}

// Another process was killed, or is just now at it.
TEST_F(StudyFolder, HalfMade) {
  for (const char* const made : {"claims", "runs", "configs"}) {
    std::filesystem::create_directories(study() / made);
    const Plan plan = plan_of({"a"});
    const StudyDirectory continued(study(), plan, expand(plan));
    EXPECT_EQ(content(study() / "plan.toml"), to_toml(plan));
    std::filesystem::remove(study() / "plan.toml");
    std::filesystem::remove(study() / "log.txt");
  }
}

TEST_F(StudyFolder, AFileInItsPlace) {
  store(study(), "");
  EXPECT_NE(refused_run(Fault::failure, plan_of({"a"})).find("cannot make the directory"), std::string::npos);
}

TEST_F(StudyFolder, NothingToStart) {
  std::filesystem::remove(program());
  EXPECT_EQ(refused_run(Fault::failure, plan_of({"a"})), "cannot start train: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(study()));
}

TEST_F(StudyFolder, NoData) {
  Plan plan = plan_of({"a"});
  plan.base.erase(plan.base.begin());
  EXPECT_EQ(refused_run(Fault::usage, plan),
            "arm 'a': data.path is not set; put data.path = FILE, or a set's name from 'cautious data list', under [base]");
  EXPECT_FALSE(std::filesystem::exists(study()));
}

TEST_F(StudyFolder, NoJobs) {
  EXPECT_EQ(refused(Fault::usage, [&] { run(plan_of({"a"}), 0); }), "jobs is 0; valid: [1, 4096]");
}

// A control that was interrupted reads the trace at a place that is gone.
TEST_F(StudyFolder, Moved) {
  Plan plan = with_control(plan_of({"a"}), "a");
  plan.arms.back().name = "long";
  const auto listens = [&] { return !content(directory_ / "ready").empty(); };
  EXPECT_FALSE(run(plan, study(), {.program = program(), .jobs = 1, .stop = listens, .watch = {}}));
  const auto moved = directory_ / "moved";
  std::filesystem::rename(study(), moved);
  EXPECT_FALSE(run(plan, moved,
                   {.program = program(),
                    .jobs = 1,
                    .stop = [&] { return content(directory_ / "ready") == "ready\nready\n"; },
                    .watch = {}}));
  ASSERT_EQ(calls().size(), 3u);
  EXPECT_EQ(calls()[2].how, "new");
  const Results results = read_results(moved);
  const run::RunConfig config =
      run::read_config({.files = {moved / "runs" / results.runs[1].run.folder / "config.toml"}, .preset = "", .overrides = {}});
  EXPECT_EQ(config.optimizer.density_from, (moved / "runs" / results.runs[0].run.folder).string());
  EXPECT_TRUE(run(plan, moved, {.program = program(), .jobs = 1, .stop = {}, .watch = {}}));
  EXPECT_EQ(calls().back().how, "resumed");
}

// The process that started a run is killed: the run is told to save.
TEST_F(StudyFolder, NoOrphans) {
  const pid_t child = ::fork();
  if (child == 0) {
    run(plan_of({"long"}));
    ::_exit(0);
  }
  const auto summary = [&] { return study() / "runs" / expand(plan_of({"long"}))[0].folder / "summary.json"; };
  const auto within_seconds = [](const auto& condition) {
    for (int i = 0; i < 500 && !condition(); ++i) ::usleep(20000);
    return condition();
  };
  EXPECT_TRUE(within_seconds([&] { return !content(directory_ / "ready").empty(); }));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(within_seconds([&] { return content(summary()).find("stopped") != std::string::npos; }));
}

}  // namespace study_directory_test
}  // namespace cautious::study
