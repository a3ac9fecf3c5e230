// Streams in fixed shares: how many sequences of which, each of a stream's own once per epoch, by (seed, number) alone.
#include "data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "data_fixture.h"

namespace cautious::data {
namespace mixture_test {

using Numbers = std::vector<std::int64_t>;

class Mixtures : public DataFiles {
 protected:
  // `count` streams, the i-th of tokens i, of a length of its own.
  std::vector<Stream> streams(int count) const {
    std::vector<Stream> all;
    for (int i = 0; i < count; ++i) {
      const std::int64_t size = 100 + 37 * i;
      const Numbers numbers(static_cast<std::size_t>(size), i);
      all.push_back(Stream({{Tokens::open(write(fmt::format("{}.bin", i), bytes_of(numbers, 2))), 0, size}}));
    }
    return all;
  }
};

TEST_F(Mixtures, EachStreamHasItsShareAndItsSequencesInOrder) {
  const std::vector<std::vector<double>> cases = {{1}, {0.7, 0.3}, {1, 1, 1}, {1000, 1, 0.001}, {3, 1e-6}, {1, 2, 3, 4, 5}};
  for (const auto& weights : cases) {
    const auto all = streams(static_cast<int>(weights.size()));
    const Mixture mixture(all, weights, 8, 5);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<std::set<std::int64_t>> seen(weights.size());
    for (std::int64_t number = 0; number < 40 * 1024; ++number) {
      const auto [stream, own] = mixture.origin(number);
      ASSERT_TRUE(seen[stream].insert(own).second) << number;
      if ((number + 1) % 1024 != 0) continue;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto count = static_cast<double>(seen[i].size());
        EXPECT_NEAR(count, static_cast<double>(number + 1) * weights[i] / sum, static_cast<double>(weights.size()));
        EXPECT_TRUE(seen[i].empty() || *seen[i].rbegin() + 1 == static_cast<std::int64_t>(count));  // none is missing
      }
    }
  }
}

TEST_F(Mixtures, SequencesAreOfTheirStream) {
  const auto all = streams(3);
  const Mixture mixture(all, std::vector<double>{2, 1, 1}, 8, 11), same(all, std::vector<double>{0.5, 0.25, 0.25}, 8, 11),
      other(all, std::vector<double>{2, 1, 1}, 8, 12);
  Numbers tokens(8), target(8), starts(8);
  int moved = 0;
  std::vector<int> early(3);
  for (std::int64_t number = 0; number < 2048; ++number) {
    const auto origin = mixture.origin(number);
    mixture.sequence(number, tokens, target, starts);
    EXPECT_EQ(tokens, Numbers(8, static_cast<std::int64_t>(origin.stream)));
    EXPECT_EQ(same.origin(number).stream, origin.stream);
    EXPECT_EQ(same.origin(number).number, origin.number);
    moved += other.origin(number).stream != origin.stream ? 1 : 0;
    if (number < 200) ++early[origin.stream];
  }
  EXPECT_GT(moved, 500);
  EXPECT_GT(*std::min_element(early.begin(), early.end()), 20);  // mixed within a block too
  EXPECT_EQ(mixture.per_epoch(), 11 + 16 + 20);
  EXPECT_EQ(mixture.origin(std::int64_t{1} << 62).stream, same.origin(std::int64_t{1} << 62).stream);  // nothing overflows
}

TEST_F(Mixtures, OneStreamIsAsWithoutAMixture) {
  Numbers numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::vector<Stream> one = {Stream({{Tokens::open(write("a.bin", bytes_of(numbers, 2))), 0, 1000}})};
  const Sampler sampler(one[0], 8, 3);
  const Mixture mixture(one, std::vector<double>{5}, 8, 3);
  Numbers tokens(8), target(8), starts(8), expected(8);
  for (std::int64_t number = 0; number < 500; ++number) {
    mixture.sequence(number, tokens, target, starts);
    sampler.sequence(number, expected, target, starts);
    ASSERT_EQ(tokens, expected);
  }
}

TEST_F(Mixtures, WhatIsWrong) {
  const auto all = streams(2);
  EXPECT_EQ(line_of(Fault::usage, [&] { Mixture(all, std::vector<double>{1}, 8, 1); }), "1 weights for 2 streams");
  for (const double wrong : {0.0, -1.0, std::nan(""), HUGE_VAL})
    EXPECT_TRUE(has(line_of(Fault::usage,
                            [&] {
                              Mixture(all, std::vector<double>{1, wrong}, 8, 1);
                            }),
                    fmt::format("a weight of {}", wrong)))
        << wrong;
  EXPECT_TRUE(has(line_of(Fault::data, [&] { Mixture(all, std::vector<double>{1, 1}, 100, 1); }), "sequences of 100"));
  const Mixture mixture(all, std::vector<double>{1, 1}, 8, 1);
  EXPECT_TRUE(has(line_of(Fault::usage, [&] { mixture.origin(-1); }), "the first is 0"));
}

}  // namespace mixture_test
}  // namespace cautious::data
