// Mixup and cutmix: how shares are distributed, and that they are what the pixels show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "data/images/augmentation.h"

namespace cautious::data {
namespace mixing_test {

TEST(Betas, HaveTheirMoments) {
  for (const double alpha : {0.05, 0.2, 0.8, 1.0, 1.5, 5.0, 100.0}) {
    constexpr int kCount = 20000;
    double sum = 0, squares = 0, fourths = 0;
    Draws draws(7);
    for (int i = 0; i < kCount; ++i) {
      const double x = beta(alpha, draws);
      ASSERT_TRUE(x >= 0 && x <= 1);
      sum += x / kCount;
      squares += std::pow(x - 0.5, 2) / kCount;
      fourths += std::pow(x - 0.5, 4) / kCount;
    }
    const double variance = 1 / (4 * (2 * alpha + 1)), fourth = 3 * variance * variance * (2 * alpha + 1) / (2 * alpha + 3);
    EXPECT_NEAR(sum, 0.5, 3.5 * std::sqrt(variance / kCount)) << alpha;
    EXPECT_NEAR(squares / variance, 1, 0.04) << alpha;
    EXPECT_NEAR(fourths / fourth, 1, 0.1) << alpha;
  }
}

TEST(Betas, AreUniformAtOneAndAllOrNothingNearZero) {
  Draws draws(3);
  std::vector<int> counts(10);
  for (int i = 0; i < 10000; ++i) ++counts[static_cast<std::size_t>(std::min(9.0, beta(1, draws) * 10))];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 100);
  for (const double alpha : {1e-3, 1e-100, 1e-310}) {
    double sum = 0;
    for (int i = 0; i < 400; ++i) {
      const double x = beta(alpha, draws);
      ASSERT_TRUE(x >= 0 && x <= 1) << alpha;
      sum += x;
    }
    EXPECT_NEAR(sum, 200, 35);
  }
}

// Image i is full of the number i.
ImageBatch numbered(std::int64_t count, std::int64_t pixels) {
  ImageBatch batch;
  batch.count = count;
  for (std::int64_t i = 0; i < count; ++i) {
    batch.label.push_back(i);
    batch.pixels.insert(batch.pixels.end(), static_cast<std::size_t>(pixels), static_cast<float>(i));
  }
  return batch;
}

TEST(Mixing, SharesAreThoseOfThePixels) {
  constexpr std::int64_t kSide = 9, kPixels = kSide * kSide * 2;
  for (const auto& [mixup, cutmix] : std::vector<std::pair<double, double>>{{0, 0}, {1, 0}, {0, 1}, {0.4, 1}}) {
    Augment how;
    how.mixup = mixup;
    how.cutmix = cutmix;
    int cut_batches = 0, full = 0;
    constexpr int kBatches = 400;
    for (std::uint64_t key = 0; key < kBatches; ++key) {
      ImageBatch batch = numbered(7, kPixels);
      batch.label[1] = -1;
      mix(how, kSide, 2, key, batch);
      bool whole = true;  // every pixel is of one image
      for (std::size_t i = 0; i < 7; ++i) {
        const bool alone = i == 1 || i == 5 || i == 3;  // not read, its partner, the middle
        EXPECT_EQ(batch.other[i], alone || mixup + cutmix == 0 ? batch.label[i] : static_cast<std::int64_t>(6 - i));
        EXPECT_EQ(batch.share[i], alone || mixup + cutmix == 0 ? 1 : batch.share[0]);
        double mean = 0;
        for (std::size_t j = 0; j < kPixels; ++j) {
          const float value = batch.pixels[i * kPixels + j];
          mean += value / kPixels;
          whole = whole && (value == static_cast<float>(i) || value == static_cast<float>(6 - i));
        }
        EXPECT_NEAR(mean, batch.share[i] * static_cast<double>(i) + (1 - batch.share[i]) * static_cast<double>(6 - i), 1e-4);
      }
      cut_batches += whole;
      full += batch.share[0] == 1;
    }
    EXPECT_EQ(full == kBatches, mixup + cutmix == 0);
    EXPECT_NEAR(cut_batches, mixup == 0 ? kBatches : cutmix == 0 ? 0 : kBatches / 2, mixup > 0 && cutmix > 0 ? 30 : 2);
  }
}

}  // namespace mixing_test
}  // namespace cautious::data
