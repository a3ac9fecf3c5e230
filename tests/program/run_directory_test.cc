// Run directories: new, continued, in use, in the way; the messages and the log.
#include "run/directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>

#include "run_fixture.h"

namespace cautious::run {
namespace run_directory_test {

class Directories : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(directory_);  // for messages with short names
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    RunFiles::TearDown();
  }
  static std::string create_refused(Fault fault, const std::filesystem::path& path) {
    return refused(fault, [&] { run::RunDirectory::create(path, ""); });
  }
  static std::string open_refused(Fault fault, const std::filesystem::path& path) {
    return refused(fault, [&] { run::RunDirectory::open(path); });
  }

 private:
  std::filesystem::path before_;
};

TEST_F(Directories, NewWithParents) {
  const auto run = run::RunDirectory::create("runs/deep/a", "steps = 1\n");
  EXPECT_EQ(run.path(), "runs/deep/a");
  EXPECT_EQ(content(run.config()), "steps = 1\n");
  EXPECT_EQ(names(run.path()), (std::set<std::string>{".lock", "config.toml"}));
  EXPECT_EQ(content("runs/deep/a/.lock"), std::to_string(::getpid()) + "\n");
  EXPECT_EQ(run.metrics(), "runs/deep/a/metrics.jsonl");
  EXPECT_EQ(run.checkpoints(), "runs/deep/a/checkpoints");
  EXPECT_EQ(run.summary(), "runs/deep/a/summary.json");
}

TEST_F(Directories, AnEmptyDirectoryIsTaken) {
  std::filesystem::create_directory("a");
  run::RunDirectory::create("a/", "x");
  EXPECT_EQ(content("a/config.toml"), "x");
}

TEST_F(Directories, WhatAKilledCreateLeftIsNoContent) {
  std::filesystem::create_directory("a");
  store("a/.lock", "1\n");
  store("a/.cautious-17-0.tmp", "half");
  run::RunDirectory::create("a", "x");
  EXPECT_EQ(content("a/config.toml"), "x");
}

TEST_F(Directories, ARunInTheWay) {
  run::RunDirectory::create("runs/a", "old");
  EXPECT_EQ(create_refused(Fault::usage, "runs/a"),
            "out: 'runs/a' is not empty (config.toml); to continue it: cautious train --out runs/a --resume; or choose another "
            "directory");
  for (const char* name : {"metrics.jsonl", "metrics.csv", "tb"}) store(std::filesystem::path("runs/a") / name, "");
  EXPECT_EQ(
      create_refused(Fault::usage, "runs/a"),
      "out: 'runs/a' is not empty (config.toml, metrics.csv, metrics.jsonl, ...); to continue it: cautious train --out runs/a "
      "--resume; or choose another directory");
  EXPECT_EQ(content("runs/a/config.toml"), "old");
  std::filesystem::rename("runs/a", "my runs");
  EXPECT_NE(create_refused(Fault::usage, "my runs").find("cautious train --out 'my runs' --resume"), std::string::npos);
}

TEST_F(Directories, SomethingElseInTheWayStaysAsItIs) {
  std::filesystem::create_directory("photos");
  store("photos/a\nb.jpg", "");
  EXPECT_EQ(create_refused(Fault::usage, "photos"), "out: 'photos' is not empty (a\\x0ab.jpg); choose another directory");
  EXPECT_EQ(names("photos"), std::set<std::string>{"a\nb.jpg"});
}

TEST_F(Directories, PlacesThatCannotBeMade) {
  store("file", "");
  EXPECT_EQ(create_refused(Fault::failure, "file"), "out: cannot make the directory 'file': Not a directory");
  EXPECT_EQ(create_refused(Fault::failure, "file/a/b"), "out: cannot make the directory 'file/a/b': Not a directory");
  const std::string empty = "out: is empty; expected a directory, as in: cautious train --out runs/a";
  EXPECT_EQ(create_refused(Fault::usage, ""), empty);
  EXPECT_EQ(open_refused(Fault::usage, ""), empty);
  const std::string long_name(300, 'n');
  EXPECT_NE(create_refused(Fault::failure, long_name).find("File name too long"), std::string::npos);
  std::filesystem::create_directory("closed");
  ::chmod("closed", 0555);
  ::chmod(".", 0755);
  {
    const NotRoot nobody;
    EXPECT_EQ(create_refused(Fault::failure, "closed/a"), "out: cannot make the directory 'closed/a': Permission denied");
    EXPECT_EQ(create_refused(Fault::failure, "closed"), "out: cannot open 'closed/.lock': Permission denied");
  }
  EXPECT_TRUE(names("closed").empty());
}

TEST_F(Directories, Continue) {
  run::RunDirectory::create("a", "x");
  EXPECT_EQ(run::RunDirectory::open("a").path(), "a");
  EXPECT_EQ(content("a/config.toml"), "x");
}

TEST_F(Directories, NothingToContinue) {
  EXPECT_EQ(open_refused(Fault::usage, "a"),
            "out: 'a' is not a run directory: there is no such directory; to begin a run: cautious train --out a");
  std::filesystem::create_directory("b");
  EXPECT_EQ(open_refused(Fault::usage, "b"),
            "out: 'b' is not a run directory: it has no config.toml; to begin a run: cautious train --out b");
  EXPECT_TRUE(names("b").empty());
  store("file", "");
  EXPECT_EQ(open_refused(Fault::usage, "file"),
            "out: 'file' is not a run directory: there is no such directory; to begin a run: cautious train --out file");
}

TEST_F(Directories, OneProcessAtATime) {
  auto first = run::RunDirectory::create("a", "x");
  const std::string busy =
      "out: 'a' is in use by process " + std::to_string(::getpid()) + "; wait until it ends or choose another directory";
  EXPECT_EQ(open_refused(Fault::failure, "a"), busy);
  {
    const run::RunDirectory moved(std::move(first));
    EXPECT_EQ(open_refused(Fault::failure, "a"), busy);
  }
  run::RunDirectory::open("a");
  run::RunDirectory::open("a");
}

TEST_F(Directories, AKilledProcessHoldsNoLock) {
  run::RunDirectory::create("a", "x");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto run = run::RunDirectory::open("a");
    if (::write(ready[1], "r", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(open_refused(Fault::failure, "a"),
            "out: 'a' is in use by process " + std::to_string(child) + "; wait until it ends or choose another directory");
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  run::RunDirectory::open("a");
  EXPECT_EQ(content("a/.lock"), std::to_string(::getpid()) + "\n");
  for (const int end : ready) ::close(end);
}

TEST_F(Directories, Log) {
  const auto run = run::RunDirectory::create("a", "x");
  run.log("begun");
  run.log("ended: 7");
  const std::string text = content("a/log.txt");
  ASSERT_EQ(text.size(), 2 * 21 + std::string("begun\nended: 7\n").size()) << text;
  EXPECT_EQ(text.substr(20, 7), " begun\n");
  EXPECT_TRUE(text.ends_with("Z ended: 7\n"));
  EXPECT_TRUE(text.starts_with("20") && text[4] == '-' && text[10] == 'T' && text[19] == 'Z') << text;
  std::filesystem::remove("a/log.txt");
  std::filesystem::create_symlink("/dev/full", "a/log.txt");
  EXPECT_EQ(refused(Fault::failure, [&] { run.log("x"); }), "a/log.txt: cannot append: No space left on device");
}

}  // namespace run_directory_test
}  // namespace cautious::run
