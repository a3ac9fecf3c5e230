// Ranks that share an optimizer give the bits of one process: parameters, reports, files; and keep their part of the moments.
#include <barrier>
#include <fstream>
#include <iterator>
#include <thread>

#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace share_test {

using cautious::Options;
using cautious::Piece;
using fixture::Bf16;
using fixture::make;
using fixture::RuleName;

// Ranks as threads: a list of pieces is laid out by each, then everyone copies what others own.
class Table {
 public:
  explicit Table(int ranks) : lists_(static_cast<std::size_t>(ranks)), meet_(ranks) {}

  cautious::Share share(int rank) {
    return {rank, static_cast<int>(lists_.size()),
            [this, rank](std::span<const Piece> pieces, const cautious::Share::Prepare& prepare) {
              // One piece at a time, or all at once: when they are made changes nothing.
              for (std::size_t n = rank % 2 == 0 ? 1 : pieces.size(); prepare && n <= pieces.size(); ++n) prepare(n);
              exchange(rank, pieces);
            }};
  }

 private:
  void exchange(int rank, std::span<const Piece> pieces) {
    lists_[static_cast<std::size_t>(rank)] = pieces;
    meet_.arrive_and_wait();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& from = lists_[static_cast<std::size_t>(pieces[i].owner)][i];
      EXPECT_EQ(from.bytes, pieces[i].bytes);
      EXPECT_EQ(from.owner, pieces[i].owner);
      if (from.data != pieces[i].data) std::memcpy(pieces[i].data, from.data, from.bytes);
    }
    meet_.arrive_and_wait();
  }

  std::vector<std::span<const Piece>> lists_;
  std::barrier<> meet_;
};

struct Side {
  std::vector<std::int64_t> shape;
  std::size_t count;
};
const std::vector<Side> kVectors{{{70001}, 70001}, {{5}, 5}, {{0}, 0}, {{130}, 130}, {{33000}, 33000}, {{16384}, 16384}};
const std::vector<Side> kMatrices{{{200, 100}, 20000}, {{64, 32}, 2048}, {{16, 16}, 256}, {{128, 256}, 32768}};

constexpr std::size_t kSteps = 4;

template <class T>
struct Result {
  std::vector<std::vector<T>> x;
  std::vector<cautious::StepReport> reports;
  std::size_t state_bytes = 0;  // kept by this rank
};

// One rank through the steps. Gradients outside of its slices are garbage; tensor 1 has no gradient in step 1; a checkpoint is
// written after step 2 into `file`, and the rest is done by an optimizer that loads it.
template <class T>
Result<T> work(const cautious::Recipe& recipe, Options options, const std::vector<Side>& sides, const std::string& file) {
  Result<T> result;
  for (std::size_t k = 0; k < sides.size(); ++k) result.x.push_back(fixture::weights<T>(sides[k].count, k));
  const auto fresh = [&] {
    cautious::Optimizer optimizer(recipe, options);
    for (std::size_t k = 0; k < sides.size(); ++k) {
      optimizer.add<T>("tensor" + std::to_string(k), sides[k].shape, result.x[k].data(), nullptr);
    }
    return optimizer;
  };
  cautious::Optimizer optimizer = fresh();
  const auto rank = static_cast<std::size_t>(options.share.rank);
  for (std::size_t t = 0; t < kSteps; ++t) {
    std::vector<std::vector<T>> g;
    for (std::size_t k = 0; k < sides.size(); ++k) {
      g.push_back(fixture::weights<T>(sides[k].count, 100 * (t + 1) + k));
      const cautious::Slice own = optimizer.slices(k)[rank];
      for (std::size_t i = 0; i < g[k].size(); ++i) {
        if (i < own.first || i >= own.last) g[k][i] = fixture::to_element<T>(std::nan(""));
      }
      optimizer.bind(k, result.x[k].data(), k == 1 && t == 1 ? nullptr : g[k].data());
    }
    result.reports.push_back(optimizer.step(fixture::rates(t)));
    if (t + 2 != kSteps) continue;
    optimizer.save(file);
    optimizer = fresh();
    optimizer.load(file);
  }
  for (std::size_t k = 0; k < sides.size(); ++k) {
    for (const auto& piece : optimizer.state(k)) result.state_bytes += piece.bytes;
  }
  return result;
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
void check(const cautious::Recipe& recipe, const Options& options, const std::vector<Side>& sides) {
  SCOPED_TRACE(to_string(recipe));
  const std::string folder = testing::TempDir(), one = folder + "share-one", many = folder + "share-many";
  const Result<T> alone = work<T>(recipe, options, sides, one);
  for (const int ranks : {2, 3, 7}) {
    SCOPED_TRACE(ranks);
    Table table(ranks);
    std::vector<Result<T>> results(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        Options own = options;
        own.share = table.share(r);
        results[static_cast<std::size_t>(r)] = work<T>(recipe, own, sides, many);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(contents(one), contents(many)) << "saved state differs";
    for (const Result<T>& result : results) {
      for (std::size_t k = 0; k < sides.size(); ++k) {
        EXPECT_EQ(fixture::bytes(alone.x[k]), fixture::bytes(result.x[k])) << "parameters of tensor " << k;
      }
      for (std::size_t t = 0; t < kSteps; ++t) {
        EXPECT_EQ(alone.reports[t].clip_scale, result.reports[t].clip_scale) << "step " << t;
        EXPECT_TRUE(fixture::same(alone.reports[t].total, result.reports[t].total)) << "total of step " << t;
        for (std::size_t k = 0; k < sides.size(); ++k) {
          EXPECT_TRUE(fixture::same(alone.reports[t].tensors[k], result.reports[t].tensors[k])) << "step " << t << " of " << k;
        }
      }
    }
    std::remove(many.c_str());
  }
  std::remove(one.c_str());
}

Options busy() { return {.grad_clip = 1, .update_rms_clip = 0.5, .seed = 9, .threads = 1, .parallel_for = {}, .share = {}}; }

class SharedDecay : public testing::TestWithParam<std::string> {};
TEST_P(SharedDecay, HasTheBitsOfOneProcess) {
  for (const RuleName& rule : {RuleName{"adam", ""}, RuleName{"lion", ""}, RuleName{"lion-k", "l2"}}) {
    check<float>(make(rule, GetParam()), {.grad_clip = 1, .threads = 1, .parallel_for = {}, .share = {}}, kVectors);
  }
  check<float>(make({"adam", ""}, GetParam()), busy(), kVectors);
  check<float>(make({"muon", ""}, GetParam()), {.threads = 1, .parallel_for = {}, .share = {}}, kMatrices);
  check<double>(make({"sgdm", ""}, GetParam()), {.threads = 2, .parallel_for = {}, .share = {}}, kVectors);
}
INSTANTIATE_TEST_SUITE_P(, SharedDecay, testing::ValuesIn(fixture::every_decay()), [](const auto& one) { return one.param; });

TEST(SharedTypes, HaveTheBitsOfOneProcess) {
  for (const cautious::Rounding rounding :
       {cautious::Rounding::nearest, cautious::Rounding::stochastic, cautious::Rounding::split}) {
    for (const cautious::Element moments : {cautious::Element::f32, cautious::Element::bf16}) {
      const Options options{.moments = moments, .rounding = rounding, .seed = 3, .threads = 1, .parallel_for = {}, .share = {}};
      check<Bf16>(make({"adam", ""}, "cautious"), options, kVectors);
    }
  }
}

// Whole chunks are dealt, so a rank may have one chunk more than another, of all tensors together.
TEST(SharedMemory, IsDividedEvenly) {
  constexpr std::size_t kCount = 1 << 20, kChunk = 16 * 1024;
  std::vector<float> x(kCount), small(100);
  for (const int ranks : {1, 2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      Options options;
      options.share = {rank, ranks, [](std::span<const Piece>, const cautious::Share::Prepare&) {}};
      cautious::Optimizer optimizer(cautious::recipe("adamw"), options);
      optimizer.add<float>("a", {1024, 1024}, x.data(), nullptr);
      optimizer.add<float>("b", {1000, 1000}, x.data(), nullptr);
      for (int i = 0; i < 64; ++i) optimizer.add<float>("c" + std::to_string(i), {100}, small.data(), nullptr);
      std::size_t bytes = 0;
      for (std::size_t k = 0; k < optimizer.size(); ++k) {
        for (const auto& piece : optimizer.state(k)) bytes += piece.bytes;
      }
      const std::size_t fair = 8 * (kCount + 1'000'000 + 6400) / static_cast<std::size_t>(ranks);
      EXPECT_LE(bytes, fair + 8 * kChunk) << "rank " << rank << " of " << ranks;
    }
  }
}

// What costs most is a matrix's orthogonal factor: equal matrices are dealt in equal numbers, one that costs as much as all
// others has a rank to itself.
TEST(SharedWork, OfMatricesIsDividedByCost) {
  std::vector<float> x(512 * 512);
  const auto counts = [&](const std::vector<std::int64_t>& sides, int ranks) {
    Options options;
    options.share = {0, ranks, [](std::span<const Piece>, const cautious::Share::Prepare&) {}};
    cautious::Optimizer optimizer(cautious::recipe("muon"), options);
    std::vector<int> count(static_cast<std::size_t>(ranks));
    for (std::size_t k = 0; k < sides.size(); ++k) {
      optimizer.add<float>("m" + std::to_string(k), {sides[k], sides[k]}, x.data(), nullptr);
    }
    for (std::size_t k = 0; k < sides.size(); ++k) {
      for (std::size_t r = 0; r < count.size(); ++r) {
        const cautious::Slice slice = optimizer.slices(k)[r];
        if (slice.first == slice.last) continue;
        EXPECT_EQ(slice.last - slice.first, static_cast<std::size_t>(sides[k] * sides[k])) << "a matrix was cut";
        ++count[r];
      }
    }
    return count;
  };
  EXPECT_EQ(counts(std::vector<std::int64_t>(12, 64), 4), (std::vector<int>{3, 3, 3, 3}));
  EXPECT_EQ(counts({64, 64, 64, 512, 64}, 2), (std::vector<int>{1, 4}));
}

TEST(ShareErrors, NameTheValue) {
  const auto with = [](int rank, int ranks, bool able) {
    Options options;
    options.share = {rank, ranks, {}};
    if (able) options.share.exchange = [](std::span<const Piece>, const cautious::Share::Prepare&) {};
    return [options] { cautious::Optimizer(cautious::recipe("adamw"), options); };
  };
  fixture::expect_error(with(0, 0, true), {"share.ranks is 0", "at least 1"});
  fixture::expect_error(with(2, 2, true), {"share.rank is 2", "from 0 to 1"});
  fixture::expect_error(with(0, 2, false), {"2 ranks need share.exchange"});
}

}  // namespace share_test
