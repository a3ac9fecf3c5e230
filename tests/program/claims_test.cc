// Claims: one owner at a time, whatever the others do, die or sleep.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "run_fixture.h"
#include "study/claims.h"

namespace cautious::study {
namespace claims_test {

using std::chrono::milliseconds;

constexpr Lease kShort{milliseconds(10), milliseconds(200)};
constexpr Lease kLong{milliseconds(10), std::chrono::hours(1)};  // nobody is dead for being slow
constexpr Lease kSilent{std::chrono::hours(1), std::chrono::hours(1)};

class ClaimFiles : public RunFiles {
 protected:
  // As if this process were on another machine, where process numbers mean nothing here.
  static Worker stranger(const std::string& host = "node7") {
    Worker worker = this_worker();
    worker.host = host;
    worker.kernel = "another";
    return worker;
  }

  template <class Condition>
  static bool in_time(const Condition& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) ::usleep(10000);
    return condition();
  }

  // That of x, which is created before it is written.
  static bool knows_owner(Claims& claims) {
    const std::map<std::string, std::string> others = claims.others();
    return others.contains("x") && others.at("x") != "an unknown process";
  }

  // A process that does this and is then killed, or ends with what it returned.
  static pid_t process(const std::function<int()>& call) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(call());
    return child;
  }
};

TEST_F(ClaimFiles, OneOwner) {
  Claims a(directory_), b(directory_);
  EXPECT_TRUE(a.take("x"));
  EXPECT_TRUE(a.holds("x"));
  EXPECT_FALSE(a.take("x"));
  EXPECT_FALSE(b.take("x"));
  EXPECT_FALSE(b.holds("x"));
  EXPECT_EQ(b.others(), (std::map<std::string, std::string>{{"x", a.worker().name()}}));
  EXPECT_TRUE(a.others().empty());
  b.give_back("x");
  EXPECT_TRUE(a.holds("x"));
  a.give_back("x");
  EXPECT_FALSE(a.holds("x"));
  EXPECT_TRUE(b.take("x"));
}

TEST_F(ClaimFiles, NothingIsLeftBehind) {
  {
    Claims a(directory_, kLong);
    EXPECT_TRUE(a.take("x") && a.take("y"));
    const std::string before = content(directory_ / "x");
    EXPECT_TRUE(in_time([&] { return content(directory_ / "x") != before; })) << "it is renewed";
    EXPECT_EQ(content(directory_ / "x").size(), before.size());
  }
  EXPECT_TRUE(names(directory_).empty());
}

TEST_F(ClaimFiles, ManyWorkersShareWithoutOverlap) {
  constexpr int kWorkers = 6, kNames = 200;
  std::atomic<int> taken = 0, tried = 0;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&] {
      Claims claims(directory_);
      for (int i = 0; i < kNames; ++i) taken += claims.take(std::to_string(i)) ? 1 : 0;
      for (++tried; tried < kWorkers;) std::this_thread::yield();
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(taken, kNames);
}

// Whether it has been waited for or not.
TEST_F(ClaimFiles, AKilledProcessOfThisMachine) {
  for (const bool zombie : {true, false}) {
    const pid_t child = process([&] {
      Claims claims(directory_, kLong);
      claims.take("x");
      return ::pause();
    });
    Claims ours(directory_, kSilent);
    EXPECT_TRUE(in_time([&] { return knows_owner(ours); }));
    ::kill(child, SIGKILL);
    if (!zombie) ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(in_time([&] { return ours.others().empty(); }));
    EXPECT_TRUE(ours.take("x"));
    if (zombie) ::waitpid(child, nullptr, 0);
  }
}

TEST_F(ClaimFiles, AStoppedProcessOfThisMachineIsNotDead) {
  const pid_t child = process([&] {
    Claims claims(directory_, kShort);
    claims.take("x");
    return ::pause();
  });
  Claims patient(directory_, kSilent), ours(directory_, {milliseconds(1), milliseconds(1)});
  EXPECT_TRUE(in_time([&] { return knows_owner(patient); }));
  ::kill(child, SIGSTOP);
  for (int i = 0; i < 20; ++i, ::usleep(1000)) EXPECT_TRUE(ours.others().contains("x"));
  EXPECT_EQ(ours.someone_else(), ours.others().at("x"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(ClaimFiles, AProcessNumberThatIsUsedAgain) {
  Worker before = this_worker();
  before.start += 1;
  Claims old(directory_, kSilent, before), ours(directory_, kSilent);
  EXPECT_TRUE(old.take("x"));
  EXPECT_TRUE(ours.others().empty());
  EXPECT_FALSE(old.holds("x"));
}

TEST_F(ClaimFiles, AnotherMachineLivesAsLongAsItRenews) {
  Claims theirs(directory_, kSilent, stranger()), ours(directory_, kShort);
  EXPECT_TRUE(theirs.take("x"));
  std::string claim = content(directory_ / "x");
  for (int i = 0; i < 10; ++i, ::usleep(50000)) {  // longer than the lease
    claim[claim.size() - 2] = static_cast<char>('0' + i);
    store(directory_ / "x", claim);
    EXPECT_TRUE(ours.others().contains("x"));
  }
  Claims patient(directory_, kLong);
  Claims beating(directory_, kLong, stranger());
  EXPECT_TRUE(beating.take("y"));
  EXPECT_EQ(patient.someone_else(), beating.worker().name());
}

TEST_F(ClaimFiles, AnotherMachineThatIsSilentIsDead) {
  Claims theirs(directory_, kSilent, stranger()), patient(directory_, kSilent), ours(directory_, kShort);
  EXPECT_TRUE(theirs.take("x"));
  EXPECT_TRUE(patient.others().contains("x"));
  EXPECT_EQ(ours.someone_else(), "");
  EXPECT_TRUE(ours.take("x"));
  EXPECT_FALSE(theirs.holds("x"));
  theirs.give_back("x");
  EXPECT_TRUE(ours.holds("x")) << "not the former owner's to give back";
}

TEST_F(ClaimFiles, WhatNobodyCanReadIsDeadLater) {
  store(directory_ / "empty", "");
  store(directory_ / "strange", "hello\n");
  store(directory_ / ".hidden", "hello\n");
  std::filesystem::create_directory(directory_ / "folder");
  std::filesystem::create_symlink("loop", directory_ / "loop");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  Claims ours(directory_, kShort);
  const std::map<std::string, std::string> others = ours.others();
  for (const char* name : {"strange", "folder", "loop", "pipe"}) {
    EXPECT_EQ(others.at(name), "an unknown process");
    EXPECT_FALSE(ours.take(name));
    EXPECT_FALSE(ours.holds(name));
  }
  EXPECT_FALSE(ours.take("empty"));
  ours.wait_for("empty");
  EXPECT_TRUE(ours.holds("empty"));
  EXPECT_TRUE(in_time([&] { return ours.others().empty(); }));
  EXPECT_EQ(names(directory_), (std::set<std::string>{".hidden", "empty"}));
}

TEST_F(ClaimFiles, WhoeverWaitsIsToldForWhomAndMayGiveUp) {
  struct Enough {};
  Claims theirs(directory_, kLong), ours(directory_, kLong);
  EXPECT_TRUE(theirs.take("x"));
  std::vector<std::string> waited_for;
  {
    const WhileWaiting while_waiting([&](const std::string& who, milliseconds waited) {
      waited_for.push_back(who);
      if (waited >= milliseconds(100)) throw Enough{};
    });
    EXPECT_THROW(ours.wait_for("x"), Enough);
    EXPECT_FALSE(ours.holds("x"));
    store(directory_ / "y", "hello\n");
    theirs.give_back("x");
    EXPECT_THROW((void)ours.someone_else(), Enough);
  }
  EXPECT_GE(waited_for.size(), 4u);
  EXPECT_EQ(waited_for.front(), fmt::format("{} ({})", theirs.worker().name(), (directory_ / "x").string()));
  EXPECT_EQ(waited_for.back(), fmt::format("an unknown process ({})", (directory_ / "y").string()));
  ours.wait_for("x");
  EXPECT_TRUE(ours.holds("x"));
}

// All see the same dead claim at the same time; whoever takes it away and takes it keeps it.
TEST_F(ClaimFiles, OneOfManyTakesOver) {
  constexpr int kWorkers = 4;
  for (int round = 0; round < 50; ++round) {
    const std::string name = "x" + std::to_string(round);
    Worker gone = this_worker();
    gone.start += 1;
    Claims dead(directory_, kSilent, gone);
    ASSERT_TRUE(dead.take(name));
    std::atomic<int> owners = 0, ready = 0, tried = 0;
    std::vector<std::thread> workers;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&] {
        Claims claims(directory_, kSilent);
        for (++ready; ready < kWorkers;) std::this_thread::yield();
        (void)claims.others();
        claims.take(name);
        for (++tried; tried < kWorkers;) std::this_thread::yield();
        owners += claims.holds(name) ? 1 : 0;
        for (++ready; ready < 2 * kWorkers;) std::this_thread::yield();
      });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(owners, 1) << name;
  }
}

// It wakes up, renews and gives back what is not its own any more.
TEST_F(ClaimFiles, ASleeperDoesNotDisturbTheNextOwner) {
  const pid_t child = process([&] {
    Claims claims(directory_, kShort, stranger());
    claims.take("x");
    while (claims.holds("x")) ::usleep(1000);
    ::usleep(100000);  // beats
    claims.give_back("x");
    return 0;
  });
  Claims patient(directory_, kSilent), ours(directory_, kShort);
  EXPECT_TRUE(in_time([&] { return knows_owner(patient); }));
  ::kill(child, SIGSTOP);
  ours.wait_for("x");
  ::kill(child, SIGCONT);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ours.holds("x"));
  EXPECT_EQ(names(directory_), std::set<std::string>{"x"});
}

TEST_F(ClaimFiles, ACopyInAForkedProcessDoesNothing) {
  auto ours = std::make_unique<Claims>(directory_, kLong);
  EXPECT_TRUE(ours->take("x"));
  int status = -1;
  ::waitpid(process([&] {
              ours.reset();
              return 0;
            }),
            &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ours->holds("x"));
}

TEST_F(ClaimFiles, AFolderThatIsGone) {
  Claims ours(directory_ / "none");
  EXPECT_NE(refused(Fault::failure, [&] { ours.take("x"); }).find("cannot create the claim"), std::string::npos);
  EXPECT_NE(refused(Fault::failure, [&] { (void)ours.others(); }).find("cannot list the claims"), std::string::npos);
}

}  // namespace claims_test
}  // namespace cautious::study
