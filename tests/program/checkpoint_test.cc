// Checkpoints are complete or not there, whatever fails and whenever the process is killed.
#include "run/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/aside_folder.h"
#include "base/atomic_file.h"
#include "run_fixture.h"
#include "traced.h"

namespace cautious::run {
namespace checkpoint_test {

using Steps = std::vector<std::int64_t>;

class Checkpoints : public RunFiles {
 protected:
  std::filesystem::path folder() const { return directory_ / "checkpoints"; }

  static void write_files(const std::filesystem::path& aside, const std::string& text) {
    std::filesystem::create_directory(aside / "sub");
    store(aside / "config.json", text);
    store(aside / "sub" / "more", text);
    base::write_atomically(aside / "model.safetensors", text);
  }
  void write(std::int64_t step, run::Keeping keeping = {100}, const std::string& text = "") const {
    run::write_checkpoint(folder(), step, keeping, [&](const auto& aside) { write_files(aside, std::to_string(step) + text); });
  }
  // The steps listed; each must have all its files, of that step.
  Steps complete() const {
    Steps steps;
    for (const auto& [step, path] : run::list_checkpoints(folder())) {
      steps.push_back(step);
      for (const char* name : {"config.json", "sub/more", "model.safetensors"})
        EXPECT_TRUE(content(path / name).starts_with(std::to_string(step))) << path / name;
      EXPECT_EQ(content(path / "config.json"), content(path / "model.safetensors"));
      EXPECT_EQ(names(path).size(), 3u);
    }
    return steps;
  }
};

TEST_F(Checkpoints, NamesSortAsNumbers) {
  EXPECT_TRUE(run::list_checkpoints(folder()).empty());
  for (const std::int64_t step : {1000, 0, 99999999, 100000000, 7}) write(step);
  EXPECT_EQ(complete(), (Steps{0, 7, 1000, 99999999, 100000000}));
  EXPECT_EQ(names(folder()),
            (std::set<std::string>{"step_00000000", "step_00000007", "step_00001000", "step_99999999", "step_100000000"}));
}

TEST_F(Checkpoints, OtherNamesAreNotCheckpoints) {
  for (const char* name : {"step_1", "step_000000001", "step_-0000001", "step_0000000x", "step_", "best", "step_00000001.old",
                           ".step_00000001.tmp-1", "Step_00000001", "step_99999999999999999999"})
    std::filesystem::create_directories(folder() / name);
  store(folder() / "step_00000002", "a file");
  EXPECT_TRUE(run::list_checkpoints(folder()).empty());
}

TEST_F(Checkpoints, TheOldestGo) {
  for (std::int64_t step = 10; step <= 50; step += 10) write(step, {2});
  EXPECT_EQ(complete(), (Steps{40, 50}));
  EXPECT_EQ(names(folder()).size(), 2u);
  write(60, {1});
  EXPECT_EQ(complete(), Steps{60});
  write(5, {1});  // never the one just written
  EXPECT_EQ(complete(), Steps{5});
}

TEST_F(Checkpoints, TheSameStepIsReplaced) {
  write(10);
  write(20, {2}, "first");
  write(20, {2}, "second");
  EXPECT_EQ(complete(), (Steps{10, 20}));
  EXPECT_EQ(content(folder() / "step_00000020" / "config.json"), "20second");
  EXPECT_EQ(names(folder()).size(), 2u);
}

TEST_F(Checkpoints, WhatDeadWritersLeftGoesAndWhatIsBeingWrittenStays) {
  std::filesystem::create_directories(folder());
  const base::AsideFolder alive(folder() / "step_00000003");
  for (const char* name : {".step_00000001.tmp-1", ".step_00000002.tmp-99999", ".step_00000001.old.tmp-7"})
    std::filesystem::create_directories(folder() / name / "sub");
  write(2);
  EXPECT_EQ(names(folder()), (std::set<std::string>{"step_00000002", alive.path().filename().string()}));
}

TEST_F(Checkpoints, TheBestStaysBesidesTheNewest) {
  const auto best = [&] { return std::filesystem::read_symlink(folder() / "best").string(); };
  write(10, {2, true});
  for (const std::int64_t step : {20, 30, 40}) write(step, {2});
  EXPECT_EQ(complete(), (Steps{10, 30, 40}));
  EXPECT_EQ(best(), "step_00000010");
  EXPECT_EQ(content(folder() / "best" / "config.json"), "10");
  std::filesystem::create_symlink("step_00000010", folder() / ".best.tmp");  // killed before the next became the best
  write(50, {2, true});
  EXPECT_EQ(complete(), (Steps{40, 50}));
  EXPECT_EQ(best(), "step_00000050");
  EXPECT_EQ(names(folder()), (std::set<std::string>{"best", "step_00000040", "step_00000050"}));
  write(60, {1});
  run::tidy_checkpoints(folder(), 1);
  EXPECT_EQ(complete(), (Steps{50, 60}));
}

TEST_F(Checkpoints, AreTidiedUp) {
  write(10), write(20), write(30);
  std::filesystem::create_directories(folder() / ".step_00000020.tmp-1");
  run::tidy_checkpoints(folder(), 2);
  EXPECT_EQ(names(folder()), (std::set<std::string>{"step_00000020", "step_00000030"}));
}

TEST_F(Checkpoints, AFailureLeavesTheOlderOnes) {
  write(10, {1});
  const auto failing = [](const std::filesystem::path& aside) {
    store(aside / "half", "h");
    throw std::domain_error("not today");
  };
  EXPECT_THROW(run::write_checkpoint(folder(), 20, {1}, failing), std::domain_error);
  EXPECT_THROW(run::write_checkpoint(folder(), 10, {1, true}, failing), std::domain_error);
  EXPECT_THROW(run::write_checkpoint(folder(), 30, {1}, [](const auto&) { throw 7; }), int);
  {
    const SmallFiles small(1000);
    const std::string large(5000, 'x');
    const auto message = refused(Fault::failure, [&] { write(40, {1}, large); });
    EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  }
  EXPECT_EQ(complete(), Steps{10});
  EXPECT_EQ(names(folder()).size(), 1u);
}

TEST_F(Checkpoints, PlacesThatCannotBeWritten) {
  store(folder(), "a file");
  EXPECT_EQ(refused(Fault::failure, [&] { write(1); }), folder().string() + ": cannot make the directory: Not a directory");
  std::filesystem::remove(folder());
  std::filesystem::create_directory(folder());
  ::chmod(folder().c_str(), 0555);
  ::chmod(directory_.c_str(), 0755);
  {
    const NotRoot nobody;
    const std::string aside = ".step_00000001.tmp-" + std::to_string(::getpid());
    EXPECT_EQ(refused(Fault::failure, [&] { write(1); }),
              (folder() / aside).string() + ": cannot make the directory: Permission denied");
  }
  EXPECT_EQ(refused(Fault::usage, [&] { write(1, {0}); }), "the number of checkpoints to keep is 0; valid: [1, inf)");
  EXPECT_EQ(refused(Fault::usage, [&] { write(-1); }), "the step of a checkpoint is -1; valid: [0, inf)");
}

// At every system call of writing a third one with two to keep: the old two, all three, or the newer two; never a part.
TEST_F(Checkpoints, CompleteAtEverySystemCall) {
  std::set<Steps> seen;
  write(10), write(20);
  const int calls = traced([&] { write(30, {2}); }, [&](int) { return seen.insert(complete()), true; });
  ASSERT_GT(calls, 0) << "this system lets no process trace its child";
  EXPECT_EQ(seen, (std::set<Steps>{{10, 20}, {10, 20, 30}, {20, 30}}));
  EXPECT_EQ(names(folder()), (std::set<std::string>{"step_00000020", "step_00000030"}));

  for (int n = 1; n <= calls; n += calls / 8) {  // the next writer continues and clears up
    std::filesystem::remove_all(folder());
    write(10), write(20);
    traced([&] { write(30, {2}); }, [&](int call) { return call < n; });
    const std::size_t left = complete().size();
    write(40);
    EXPECT_EQ(names(folder()).size(), left + 1) << "killed at call " << n;
  }
}

// While a step is replaced there is always one of it, the old or the new.
TEST_F(Checkpoints, ReplacedInOneMoment) {
  std::set<std::string> seen;
  write(10, {1}, "old");
  const int calls = traced([&] { write(10, {1}, "new"); },
                           [&](int call) {
                             EXPECT_EQ(complete(), Steps{10}) << "call " << call;
                             seen.insert(content(folder() / "step_00000010" / "config.json"));
                             return true;
                           });
  ASSERT_GT(calls, 0) << "this system lets no process trace its child";
  EXPECT_EQ(seen, (std::set<std::string>{"10old", "10new"}));
}

TEST_F(Checkpoints, KilledInsideTheCallersPart) {
  write(10);
  const pid_t child = ::fork();
  if (child == 0) {
    run::write_checkpoint(folder(), 20, {1}, [](const auto& aside) {
      store(aside / "config.json", "20");
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(complete(), Steps{10});
  EXPECT_EQ(names(folder()).size(), 2u);
  write(20);
  EXPECT_EQ(complete(), (Steps{10, 20}));
  EXPECT_EQ(names(folder()).size(), 2u);
}

TEST_F(Checkpoints, Find) {
  const std::string name = "'" + directory_.string() + "'";
  EXPECT_EQ(refused(Fault::data, [&] { run::find_checkpoint(directory_); }),
            name +
                " holds no checkpoint; looked for checkpoints/step_* (of a run), for config.json with model.safetensors or its "
                "index, and for a .bin of llama2.c");
  write(10), write(200);
  EXPECT_EQ(run::find_checkpoint(directory_), folder() / "step_00000200");
  EXPECT_EQ(run::find_checkpoint(folder() / "step_00000010"), folder() / "step_00000010");
  std::filesystem::copy(folder() / "step_00000010", directory_ / "mine");
  EXPECT_EQ(run::find_checkpoint(directory_ / "mine"), directory_ / "mine");
  std::filesystem::remove(folder() / "step_00000200" / "config.json");
  EXPECT_EQ(refused(Fault::data, [&] { run::find_checkpoint(directory_); }),
            "'" + (folder() / "step_00000200").string() + "' has no model.safetensors with config.json");
  EXPECT_EQ(refused(Fault::data, [&] { run::find_checkpoint("nowhere"); }),
            "'nowhere' does not exist; expected a run directory, a folder with config.json and model.safetensors or its index, "
            "a .gguf, a .bin of llama2.c, or a known model");
  EXPECT_EQ(refused(Fault::data, [&] { run::find_checkpoint("stories15"); }).substr(0, 73),
            "'stories15' does not exist; did you mean 'stories15m'? expected a run dir");
}

}  // namespace checkpoint_test
}  // namespace cautious::run
