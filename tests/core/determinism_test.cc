// Bits depend neither on threads nor on chunking nor on the instruction set, and optimizers do not disturb each other.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <thread>

#include "fixture.h"

namespace determinism_test {

using cautious::Options;
using fixture::Bf16;
using fixture::every_decay;
using fixture::every_rule;
using fixture::make;
using fixture::RuleName;

constexpr std::size_t kSteps = 3;

// Many tensors, small and large, through a few steps.
template <class T>
struct Fleet {
  std::vector<std::vector<T>> x;
  std::vector<std::vector<std::pair<std::string, std::vector<unsigned char>>>> state;
  std::vector<cautious::StepReport> reports;
};

template <class T>
Fleet<T> sail(const cautious::Recipe& recipe, const Options& options, const std::vector<std::size_t>& sizes) {
  Fleet<T> fleet;
  cautious::Optimizer optimizer(recipe, options);
  std::vector<std::vector<T>> g(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) fleet.x.push_back(fixture::weights<T>(sizes[k], k));
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    optimizer.add<T>("tensor" + std::to_string(k), {static_cast<std::int64_t>(sizes[k])}, fleet.x[k].data(), nullptr);
  }
  for (std::size_t t = 0; t < kSteps; ++t) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      g[k] = fixture::weights<T>(sizes[k], 100 * (t + 1) + k);
      optimizer.bind(k, fleet.x[k].data(), g[k].data());
    }
    fleet.reports.push_back(optimizer.step(fixture::rates(t)));
  }
  for (std::size_t k = 0; k < sizes.size(); ++k) fleet.state.push_back(fixture::state_bytes(optimizer, k, sizes[k]));
  return fleet;
}

template <class T>
void expect_same_fleet(const Fleet<T>& a, const Fleet<T>& b) {
  for (std::size_t k = 0; k < a.x.size(); ++k) {
    EXPECT_EQ(fixture::bytes(a.x[k]), fixture::bytes(b.x[k])) << "parameters of tensor " << k;
    EXPECT_EQ(a.state[k], b.state[k]) << "state of tensor " << k;
  }
  for (std::size_t t = 0; t < kSteps; ++t) {
    EXPECT_TRUE(fixture::same(a.reports[t].total, b.reports[t].total)) << "total of step " << t;
    EXPECT_EQ(a.reports[t].clip_scale, b.reports[t].clip_scale);
    for (std::size_t k = 0; k < a.x.size(); ++k) {
      EXPECT_TRUE(fixture::same(a.reports[t].tensors[k], b.reports[t].tensors[k])) << "tensor " << k << " of step " << t;
    }
  }
}

const std::vector<std::size_t> kMixed{70001, 5, 0, 130, 64, 33000, 1, 1025, 4096};

// Options under which something happens before, inside and after the pass.
Options busy(int threads) {
  Options options;
  options.threads = threads;
  options.grad_clip = 1;
  options.update_rms_clip = 0.5;
  options.rounding = cautious::Rounding::stochastic;
  options.seed = 9;
  return options;
}

void reversed(std::size_t count, const std::function<void(std::size_t)>& body) {
  while (count-- > 0) body(count);
}

void on_another_thread(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::thread([&] {
    for (std::size_t i = 0; i < count; ++i) body(i);
  }).join();
}

void one_thread_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t begin = 0; begin < count; begin += 4) {
    std::vector<std::thread> threads;
    for (std::size_t i = begin; i < count && i < begin + 4; ++i) threads.emplace_back([&body, i] { body(i); });
    for (auto& thread : threads) thread.join();
  }
}

template <class T>
void check_threads(const RuleName& rule, const std::string& decay) {
  SCOPED_TRACE(rule.text() + " " + decay);
  const auto recipe = make(rule, decay);
  for (const bool clips : {false, true}) {
    const auto with = [&](int threads) { return clips ? busy(threads) : Options{.threads = threads, .parallel_for = {}}; };
    const Fleet<T> alone = sail<T>(recipe, with(1), kMixed);
    for (const int threads : {2, 3, 7}) expect_same_fleet(alone, sail<T>(recipe, with(threads), kMixed));
    for (const auto& loop : {reversed, on_another_thread, one_thread_each}) {
      Options options = with(2);
      options.parallel_for = loop;
      expect_same_fleet(alone, sail<T>(recipe, options, kMixed));
    }
  }
}

TEST(Threads, AnyNumberAndAnyLoopGiveTheSameBits) {
  for (const RuleName& rule : {RuleName{"adam", ""}, RuleName{"lion-k", "l2"}, RuleName{"lion-k", "topk"}}) {
    for (const std::string decay : {"cautious", "random", "shuffled", "layerwise", "selective", "anchored"})
      check_threads<float>(rule, decay);
  }
  check_threads<double>({"sgdm", ""}, "cautious");
  check_threads<Bf16>({"adam", ""}, "cautious");
  check_threads<Bf16>({"lion", ""}, "random");
  check_threads<Bf16>({"lion", ""}, "shuffled");
}

TEST(Threads, TwoOptimizersAtOnceDoNotDisturbEachOther) {
  const auto first = make({"adam", ""}, "cautious"), second = make({"lion-k", "l2"}, "selective");
  const Fleet<float> a = sail<float>(first, busy(2), kMixed), b = sail<float>(second, busy(2), kMixed);
  for (int round = 0; round < 5; ++round) {
    Fleet<float> c, d;
    std::thread one([&] { c = sail<float>(first, busy(2), kMixed); });
    std::thread two([&] { d = sail<float>(second, busy(2), kMixed); });
    one.join();
    two.join();
    expect_same_fleet(a, c);
    expect_same_fleet(b, d);
  }
}

// The portable kernels do every tile in two stages, so this also compares the two ways through a chunk.
TEST(InstructionSets, GiveTheSameBits) {
  const std::vector<std::size_t> sizes{0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 5001};
  const auto check = [&]<class T>(T, const cautious::Recipe& recipe, Options options) {
    options.isa = cautious::Isa::portable;
    const Fleet<T> portable = sail<T>(recipe, options, sizes);
    for (const cautious::Isa isa : fixture::isas()) {
      options.isa = isa;
      expect_same_fleet(portable, sail<T>(recipe, options, sizes));
    }
    options.isa = cautious::Isa::best;
    expect_same_fleet(portable, sail<T>(recipe, options, sizes));
  };
  for (const RuleName& rule : every_rule()) {
    for (const std::string& decay : every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto recipe = make(rule, decay);
      check(float{}, recipe, {});
      check(double{}, recipe, busy(1));
      check(Bf16{}, recipe, busy(1));
      const bool walks = decay == "none" || decay == "decoupled" || decay == "cautious";
      for (const auto rounding : {cautious::Rounding::nearest, cautious::Rounding::stochastic}) {
        if (walks) check(Bf16{}, recipe, Options{.rounding = rounding, .parallel_for = {}});
      }
      Options split;
      split.rounding = cautious::Rounding::split;
      split.moments = cautious::Element::bf16;
      check(Bf16{}, recipe, split);
    }
  }
}

// One tensor, or the same data as several tensors cut anywhere: elementwise recipes cannot tell.
template <class T>
void check_cuts(const cautious::Recipe& recipe, const std::vector<std::size_t>& cuts) {
  const std::size_t n = cuts.back();
  auto whole = fixture::weights<T>(n, 1);
  auto parts = whole;
  cautious::Optimizer one(recipe), several(recipe);
  one.add<T>("whole", {static_cast<std::int64_t>(n)}, whole.data(), nullptr);
  for (std::size_t k = 0, begin = 0; k < cuts.size(); begin = cuts[k++]) {
    several.add<T>("part" + std::to_string(k), {static_cast<std::int64_t>(cuts[k] - begin)}, parts.data() + begin, nullptr);
  }
  for (std::size_t t = 0; t < kSteps; ++t) {
    const auto g = fixture::weights<T>(n, 7 + t);
    one.bind(0, whole.data(), g.data());
    for (std::size_t k = 0, begin = 0; k < cuts.size(); begin = cuts[k++])
      several.bind(k, parts.data() + begin, g.data() + begin);
    const cautious::Tally a = one.step(fixture::rates(t)).total, b = several.step(fixture::rates(t)).total;
    EXPECT_EQ(fixture::bytes(whole), fixture::bytes(parts));
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.decayed, b.decayed);
    EXPECT_EQ(a.active, b.active);
    EXPECT_NEAR(a.u2, b.u2, 1e-6 * a.u2);
    EXPECT_NEAR(a.budget, b.budget, 1e-6 * a.budget);
  }
}

TEST(Chunking, CutsDoNotChangeBits) {
  for (const RuleName& rule : every_rule()) {
    for (const std::string& decay : every_decay()) {
      if (!is_elementwise(rule) || !fixture::is_elementwise(decay) || decay == "random") continue;
      SCOPED_TRACE(rule.text() + " " + decay);
      check_cuts<float>(make(rule, decay), {64, 192, 1024, 5001});
      check_cuts<double>(make(rule, decay), {1, 2, 65, 700, 1000});
      check_cuts<Bf16>(make(rule, decay), {64, 97, 131, 1024, 3000});
    }
  }
}

}  // namespace determinism_test
