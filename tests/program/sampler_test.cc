// The order of the data: every window once per epoch, by (seed, number) alone, and what evaluation reads.
#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data_fixture.h"

namespace cautious::data {
namespace sampler_test {

using Numbers = std::vector<std::int64_t>;

class Samplers : public DataFiles {
 protected:
  // Tokens 0, 1, 2, ...; a file without documents.
  Stream counting(std::int64_t size) const {
    Numbers numbers(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    return Stream({{Tokens::open(write("a.bin", bytes_of(numbers, 2))), 0, size}});
  }
};

Numbers epoch_of(const Sampler& sampler, std::int64_t epoch) {
  Numbers firsts;
  for (std::int64_t i = 0; i < sampler.per_epoch(); ++i) firsts.push_back(sampler.first_of(epoch * sampler.per_epoch() + i));
  return firsts;
}

TEST_F(Samplers, EveryEpochVisitsEachWindowOnce) {
  for (const std::int64_t length : {1, 2, 7, 64}) {
    for (const std::int64_t size :
         {length + 1, length + 2, 2 * length + 1, 3 * length, 3 * length + 1, std::int64_t{1000}, std::int64_t{4097}}) {
      const Stream stream = counting(size);
      const Sampler sampler(stream, length, 5);
      EXPECT_EQ(sampler.per_epoch(), std::max<std::int64_t>(1, size / length - 1));
      for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
        Numbers firsts = epoch_of(sampler, epoch);
        std::sort(firsts.begin(), firsts.end());
        EXPECT_GE(firsts.front(), 0);
        EXPECT_LT(firsts.front(), 2 * length);
        EXPECT_LE(firsts.back() + length + 1, size);
        for (std::size_t i = 1; i < firsts.size(); ++i) ASSERT_EQ(firsts[i] - firsts[i - 1], length);
      }
    }
  }
}

TEST_F(Samplers, EveryTokenIsReachedInSomeEpoch) {
  for (const std::int64_t size : {std::int64_t{9}, std::int64_t{23}, std::int64_t{24}, std::int64_t{100}}) {
    const Stream stream = counting(size);
    const Sampler sampler(stream, 8, 1);
    std::set<std::int64_t> offsets;
    for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
      const Numbers firsts = epoch_of(sampler, epoch);
      offsets.insert(*std::min_element(firsts.begin(), firsts.end()));
    }
    EXPECT_EQ(*offsets.begin(), 0) << size;
    EXPECT_EQ(*offsets.rbegin() + sampler.per_epoch() * 8, size - 1) << size;
    EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), *offsets.rbegin() + 1) << size;  // all between, too
  }
}

TEST_F(Samplers, SequencesAreWindowsOfTheStream) {
  const Stream stream = counting(1000);
  const Sampler sampler(stream, 16, 9);
  Numbers tokens(16), target(16), starts(16);
  for (std::int64_t number = 0; number < 200; ++number) {
    sampler.sequence(number, tokens, target, starts);
    EXPECT_EQ(starts, Numbers(16));
    for (std::size_t i = 0; i < 16; ++i) {
      ASSERT_EQ(tokens[i], sampler.first_of(number) + static_cast<std::int64_t>(i));
      ASSERT_EQ(target[i], tokens[i] + 1);
    }
  }
}

TEST_F(Samplers, SeedAndNumberDecideAlone) {
  const Stream stream = counting(4000);
  const Sampler one(stream, 8, 42), same(stream, 8, 42), other(stream, 8, 43);
  EXPECT_EQ(one.first_of(1234), same.first_of(1234));
  Numbers backwards;
  for (std::int64_t i = one.per_epoch(); i-- > 0;) backwards.push_back(same.first_of(i));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(epoch_of(one, 0), backwards);
  // Two independent orders of n windows agree in about one place; offsets make even that rarer.
  const auto agreements = [](const Numbers& a, const Numbers& b) {
    int equal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
    return equal;
  };
  EXPECT_LT(agreements(epoch_of(one, 0), epoch_of(other, 0)), 8);
  EXPECT_LT(agreements(epoch_of(one, 0), epoch_of(one, 1)), 8);
  EXPECT_LT(agreements(epoch_of(one, 1), epoch_of(other, 0)), 8);
}

// The order must never change: a run that is continued with a later version keeps the same one. Numbers of another
// implementation, in Python.
TEST_F(Samplers, TheOrderIsFixed) {
  const Stream stream = counting(100);
  const Sampler sampler(stream, 10, 1);
  Numbers firsts;
  for (std::int64_t i = 0; i < 12; ++i) firsts.push_back(sampler.first_of(i));
  EXPECT_EQ(firsts, (Numbers{10, 20, 80, 50, 60, 0, 40, 70, 30, 81, 31, 11}));
}

TEST_F(Samplers, AnEpochIsShuffled) {
  const std::int64_t size = 40001;
  const Stream stream = counting(size);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sampler sampler(stream, 4, seed);
    const Numbers firsts = epoch_of(sampler, 3);
    const std::size_t quarter = firsts.size() / 4;
    double sum = 0;
    for (std::size_t i = 0; i < quarter; ++i) sum += static_cast<double>(firsts[i]);
    const double deviation = static_cast<double>(size) / std::sqrt(12.0 * static_cast<double>(quarter));
    EXPECT_NEAR(sum / static_cast<double>(quarter), static_cast<double>(size) / 2, 4 * deviation) << seed;
    int ascents = 0;
    for (std::size_t i = 1; i < firsts.size(); ++i) ascents += firsts[i] > firsts[i - 1];
    const auto n = static_cast<double>(firsts.size());
    EXPECT_NEAR(ascents, n / 2, 4 * std::sqrt(n / 12)) << seed;  // ascents of a random order: n / 2, variance n / 12
  }
}

// Of four windows all 24 orders come, each about as often: a chi-squared of 23 degrees is below 49.7 in 999 of 1000 cases.
TEST_F(Samplers, SmallEpochsHaveEveryOrder) {
  const Stream stream = counting(50);
  const Sampler sampler(stream, 10, 77);
  ASSERT_EQ(sampler.per_epoch(), 4);
  std::map<Numbers, int> orders;
  constexpr int kEpochs = 12000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Numbers firsts = epoch_of(sampler, epoch);
    const std::int64_t offset = *std::min_element(firsts.begin(), firsts.end());
    for (auto& first : firsts) first -= offset;
    ++orders[firsts];
  }
  ASSERT_EQ(orders.size(), 24u);
  double chi = 0;
  for (const auto& [order, count] : orders) chi += std::pow(count - kEpochs / 24.0, 2) / (kEpochs / 24.0);
  EXPECT_LT(chi, 49.7);
}

TEST_F(Samplers, Refusals) {
  const Stream stream = counting(64);
  EXPECT_TRUE(has(line_of(Fault::data, [&] { Sampler(stream, 64, 1); }),
                  "the stream has 64 tokens, but sequences of 64 need at least 65: give more text or a smaller train.seq_len"));
  EXPECT_TRUE(has(line_of(Fault::data, [&] { fixed_windows(stream, 64, 3); }), "sequences of 64 need at least 65"));
  EXPECT_NE(line_of(Fault::usage, [&] { Sampler(stream, 0, 1); }), "");
  EXPECT_NE(line_of(Fault::usage, [&] { fixed_windows(stream, 4, 0); }), "");
  const Sampler sampler(stream, 63, 1);
  EXPECT_EQ(sampler.first_of(1'000'000'000'000), 0);
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { sampler.first_of(-1); }), "sequence number -1"));
  Numbers few(5);
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { sampler.sequence(0, few, few, few); }), "room for 5 tokens; sequences have 63"));
}

TEST_F(Samplers, FixedWindowsAreEvenAndApart) {
  for (const std::int64_t size : {11, 12, 21, 22, 100, 999, 5000}) {
    const Stream stream = counting(size);
    for (const std::int64_t count : {1, 2, 3, 7, 10, 1000}) {
      const Numbers firsts = fixed_windows(stream, 10, count);
      ASSERT_EQ(static_cast<std::int64_t>(firsts.size()), std::min(count, (size - 1) / 10));
      EXPECT_EQ(firsts.front(), 0);
      EXPECT_LE(firsts.back() + 11, size);
      for (std::size_t i = 0; i < firsts.size(); ++i)
        EXPECT_EQ(firsts[i], static_cast<std::int64_t>(i) * (size - 1) / static_cast<std::int64_t>(firsts.size()));
      for (std::size_t i = 1; i < firsts.size(); ++i) EXPECT_GE(firsts[i] - firsts[i - 1], 10);
      EXPECT_EQ(firsts, fixed_windows(stream, 10, count));
    }
  }
}

}  // namespace sampler_test
}  // namespace cautious::data
