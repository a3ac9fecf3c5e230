// Parallel regions: an exception leaves them as from a plain loop, and a child of fork(), which has none of the threads that
// OpenMP remembers, steps alone with the same bits.
#include "base/parallel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace parallel_test {

TEST(ParallelRegions, AnExceptionComesOutOnceAndTheNextRegionWorks) {
  for (const int threads : {1, 2, 8}) {
    for (int round = 0; round < 20; ++round) {
      std::string said;
      try {
        cautious::base::parallel_for(100, threads, [](std::size_t i) {
          if (i % 3 == 1) throw std::runtime_error("body " + std::to_string(i));
        });
      } catch (const std::runtime_error& error) {
        said = error.what();
      }
      EXPECT_TRUE(said.starts_with("body ")) << said;
      std::atomic<std::size_t> sum = 0;
      cautious::base::parallel_for(100, threads, [&](std::size_t i) { sum += i; });
      EXPECT_EQ(sum, 4950u);
    }
  }
}

// A loop of the caller's own may throw as well; what it has done stays done, as the step cannot know it.
TEST(ParallelRegions, AnExceptionOfTheCallersLoopReachesTheCaller) {
  std::vector<float> x = fixture::weights<float>(100'000, 1), g = fixture::weights<float>(100'000, 2);
  cautious::Options options;
  options.parallel_for = [](std::size_t, const std::function<void(std::size_t)>&) { throw std::runtime_error("no threads"); };
  cautious::Optimizer optimizer(fixture::make({"adam", ""}, "cautious"), options);
  optimizer.add<float>("x", {100'000}, x.data(), g.data());
  EXPECT_THROW(optimizer.step(fixture::rates(0)), std::runtime_error);
}

struct Stepped {
  std::vector<float> x = fixture::weights<float>(100'000, 1), g = fixture::weights<float>(100'000, 2);
  cautious::Optimizer optimizer;

  explicit Stepped(const std::string& rule)
      : optimizer(fixture::make({rule, ""}, "cautious"), {.threads = 4, .parallel_for = {}}) {
    optimizer.add<float>("x", {250, 400}, x.data(), g.data());
    optimizer.step(fixture::rates(0));
  }
};

TEST(ParallelRegions, AChildOfForkStepsOn) {
  for (const char* rule : {"adam", "muon"}) {
    Stepped stepped(rule);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // instead of waiting for ever
      Stepped alone(rule);
      stepped.optimizer.step(fixture::rates(1));
      alone.optimizer.step(fixture::rates(1));
      ::_exit(fixture::bytes(stepped.x) == fixture::bytes(alone.x) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << rule << ": status " << status;
    stepped.optimizer.step(fixture::rates(1));  // the parent has its threads
  }
}

}  // namespace parallel_test
