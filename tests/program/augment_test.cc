// What chance does to images: the same for the same key, and distributed as the settings say.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "data/images/augmentation.h"
#include "data/images/operations.h"
#include "memory_images.h"

namespace cautious::data {
namespace augment_test {

Image augmented(const Augment& how, std::int64_t size, std::uint64_t key, Image image) {
  Image scratch;
  augment(how, size, key, image, scratch);
  EXPECT_EQ(image.height, size);
  EXPECT_EQ(image.width, size);
  EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(size * size * image.channels));
  return image;
}

double chi_squared(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += std::pow(count - expected, 2) / expected;
  return sum;
}

// Three standard deviations above the mean.
double chi_limit(std::size_t cells) {
  const auto degrees = static_cast<double>(cells - 1);
  return degrees + 3 * std::sqrt(2 * degrees) + 3;
}

TEST(Augmentation, NothingIsNothing) {
  const Image image = noise_image(8, 8, 3, 1);
  EXPECT_EQ(augmented({}, 8, 5, image).pixels, image.pixels);
  const Image other = noise_image(11, 20, 3, 1);
  Image fitted;
  fit(other, 8, fitted);
  EXPECT_EQ(augmented({}, 8, 5, other).pixels, fitted.pixels);
}

TEST(Augmentation, TheKeyDecides) {
  Augment how;
  how.crop = Crop::resized;
  how.flip = 0.5;
  how.jitter = 0.4;
  how.randaugment = 2;
  for (const std::int64_t channels : {1, 3}) {
    const Image image = noise_image(12, 9, channels, 1);
    int equal = 0;
    for (std::uint64_t key = 0; key < 50; ++key) {
      EXPECT_EQ(augmented(how, 8, key, image).pixels, augmented(how, 8, key, image).pixels);
      equal += augmented(how, 8, key, image).pixels == augmented(how, 8, key + 1, image).pixels;
    }
    EXPECT_LE(equal, 1);
  }
}

TEST(Augmentation, FlipsAreAsFrequentAsWanted) {
  Augment how;
  const Image image = noise_image(3, 3, 1, 1);
  Image mirrored = image;
  flip(mirrored);
  for (const double rate : {0.0, 0.3, 0.5, 1.0}) {
    how.flip = rate;
    int flips = 0;
    constexpr int kCount = 4000;
    for (std::uint64_t key = 0; key < kCount; ++key) {
      const Image result = augmented(how, 3, key, image);
      ASSERT_TRUE(result.pixels == image.pixels || result.pixels == mirrored.pixels);
      flips += result.pixels == mirrored.pixels;
    }
    EXPECT_NEAR(flips, rate * kCount, 3 * std::sqrt(rate * (1 - rate) * kCount));
  }
}

TEST(Augmentation, WindowsOfThePaddedImageAreEquallyFrequent) {
  Augment how;
  how.crop = Crop::pad;
  how.pad = 2;
  const Image image = noise_image(5, 5, 3, 1);
  std::vector<int> counts(25);
  for (std::uint64_t key = 0; key < 5000; ++key) {
    const Image result = augmented(how, 5, key, image);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      Image window;
      cut(image, static_cast<std::int64_t>(i / 5) - 2, static_cast<std::int64_t>(i % 5) - 2, 5, 5, window);
      counts[i] += window.pixels == result.pixels;
    }
  }
  EXPECT_LT(chi_squared(counts, 200), chi_limit(25));
}

// Part of an image whose values are its own coordinates, times 4: first pixel, height and width.
struct Part {
  double top, left, height, width;
};
Part part_of(const Image& image) {
  const auto n = static_cast<std::size_t>(image.height);
  const auto value = [&](std::size_t y, std::size_t x, std::size_t c) { return image.pixels[(y * n + x) * 3 + c] / 4.0; };
  // Inner pixels: those at the border see less.
  const double high = (value(n - 2, 0, 0) - value(1, 0, 0)) / static_cast<double>(n - 3);
  const double wide = (value(0, n - 2, 1) - value(0, 1, 1)) / static_cast<double>(n - 3);
  return {value(1, 0, 0) + 0.5 - 1.5 * high, value(0, 1, 1) + 0.5 - 1.5 * wide, high * static_cast<double>(n),
          wide * static_cast<double>(n)};
}

TEST(Augmentation, ResizedCropsHaveTheAreasAndShapesOfTheRule) {
  constexpr std::int64_t kSide = 64;
  Image image{kSide, kSide, 3, std::vector<std::uint8_t>(kSide * kSide * 3)};
  for (std::size_t i = 0; i < kSide * kSide; ++i) {
    image.pixels[3 * i] = static_cast<std::uint8_t>(4 * (i / kSide));
    image.pixels[3 * i + 1] = static_cast<std::uint8_t>(4 * (i % kSide));
  }
  Augment how;
  how.crop = Crop::resized;
  how.scale = 0.25;
  constexpr int kCount = 3000;
  double area = 0, squares = 0, aspect = 0, top = 0;
  for (std::uint64_t key = 0; key < kCount; ++key) {
    const Part part = part_of(augmented(how, 16, key, image));
    const double fraction = part.height * part.width / (kSide * kSide);
    EXPECT_GT(fraction, 0.23);
    EXPECT_LT(fraction, 1.05);
    EXPECT_LT(std::abs(std::log(part.width / part.height)), std::log(4.0 / 3) + 0.08);
    area += fraction / kCount;
    squares += fraction * fraction / kCount;
    aspect += std::log(part.width / part.height) / kCount;
    if (part.height < kSide - 4) top += (part.top / (kSide - part.height) - 0.5) / kCount;
  }
  // The rule once more, with other random numbers: large parts of uneven shape do not fit and are drawn again.
  std::mt19937_64 random(1);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  double expected = 0, variance = 0;
  for (int i = 0; i < 20000; ++i) {
    double fraction = 1;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double drawn = 0.25 + 0.75 * uniform(), shape = std::exp((2 * uniform() - 1) * std::log(4.0 / 3));
      if (std::sqrt(drawn * std::max(shape, 1 / shape)) * kSide >= kSide + 0.5) continue;
      fraction = drawn;
      break;
    }
    expected += fraction / 20000;
    variance += fraction * fraction / 20000;
  }
  EXPECT_NEAR(area, expected, 0.015);
  EXPECT_NEAR(squares - area * area, variance - expected * expected, 0.005);
  EXPECT_NEAR(aspect, 0, 0.015);
  EXPECT_NEAR(top, 0, 0.02);
}

TEST(Augmentation, ALongImageIsCroppedInTheMiddle) {
  Augment how;
  how.crop = Crop::resized;
  how.scale = 1;  // nothing else fits
  Image expected;
  const Image high = noise_image(100, 10, 3, 1), wide = noise_image(11, 100, 1, 1), square = noise_image(20, 20, 3, 1);
  resize(high, {43, 13, 8, 0, 8}, {0, 10, 8, 0, 8}, expected);
  EXPECT_EQ(augmented(how, 8, 1, high).pixels, expected.pixels);
  resize(wide, {0, 11, 8, 0, 8}, {42, 15, 8, 0, 8}, expected);
  EXPECT_EQ(augmented(how, 8, 1, wide).pixels, expected.pixels);
}

TEST(Augmentation, JitterIsUniform) {
  Augment how;
  how.jitter = 0.5;
  // Contrast and saturation leave a single gray as it is.
  const Image image{1, 1, 3, {100, 100, 100}};
  std::vector<int> counts(10);
  for (std::uint64_t key = 0; key < 5000; ++key) {
    const int value = augmented(how, 1, key, image).pixels[0];
    ASSERT_GE(value, 50);
    ASSERT_LT(value, 150);
    ++counts[static_cast<std::size_t>((value - 50) / 10)];
  }
  EXPECT_LT(chi_squared(counts, 500), chi_limit(10));
}

// Every operation, both signs, with the numbers of magnitude 9 and size 32 written out.
std::vector<Image> all_operations(const Image& image) {
  std::vector<Image> results;
  const auto add = [&](const std::function<void(Image&)>& change) {
    results.push_back(image);
    change(results.back());
  };
  const auto moved = [&](const Map& map) {
    results.emplace_back();
    transform(image, map, results.back());
  };
  for (const double sign : {1.0, -1.0}) {
    add([](Image&) {});
    add(stretch_contrast);
    add(equalize);
    moved(rotation(27 * sign, 32, 32));
    add([](Image& to) { solarize(to, 26); });
    add([&](Image& to) { change_saturation(to, 1 + sign * 0.81); });
    add([](Image& to) { posterize(to, 4); });
    add([&](Image& to) { change_contrast(to, 1 + sign * 0.81); });
    add([&](Image& to) { change_brightness(to, 1 + sign * 0.81); });
    add([&](Image& to) { change_sharpness(to, 1 + sign * 0.81); });
    moved({1, sign * 0.27, 0, 0, 1, 0});
    moved({1, 0, 0, sign * 0.27, 1, 0});
    moved({1, 0, sign * 13, 0, 1, 0});
    moved({1, 0, 0, 0, 1, sign * 13});
  }
  return results;
}

TEST(Augmentation, RandAugmentDrawsItsOperationsEquallyOften) {
  Augment how;
  how.randaugment = 1;
  how.magnitude = 9;
  Image image = noise_image(32, 32, 3, 1);
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(20 + value / 2);
  const std::vector<Image> results = all_operations(image);
  std::vector<int> counts(14), signs(2);
  for (std::uint64_t key = 0; key < 2800; ++key) {
    const Image result = augmented(how, 32, key, image);
    const auto found =
        std::find_if(results.begin(), results.end(), [&](const Image& one) { return one.pixels == result.pixels; });
    ASSERT_NE(found, results.end()) << key;
    const auto number = static_cast<std::size_t>(found - results.begin());
    ++counts[number % 14];
    if (number % 14 == 3 || number % 14 >= 7) ++signs[number / 14];
  }
  EXPECT_LT(chi_squared(counts, 200), chi_limit(14));
  EXPECT_LT(chi_squared(signs, (signs[0] + signs[1]) / 2.0), 9);
}

TEST(Augmentation, TwoOperationsAreOneAfterTheOther) {
  Augment how;
  how.randaugment = 2;
  const Image image = noise_image(32, 32, 1, 1);
  const std::vector<Image> first = all_operations(image);
  for (std::uint64_t key = 0; key < 20; ++key) {
    const Image result = augmented(how, 32, key, image);
    EXPECT_TRUE(std::any_of(first.begin(), first.end(), [&](const Image& one) {
      const std::vector<Image> second = all_operations(one);
      return std::any_of(second.begin(), second.end(), [&](const Image& two) { return two.pixels == result.pixels; });
    }));
  }
}

TEST(Augmentation, ErasedRectanglesAreZero) {
  Augment how;
  how.erase = 0.4;
  constexpr std::int64_t kSide = 20, kChannels = 3;
  int erased = 0;
  double area = 0;
  constexpr int kCount = 3000;
  for (std::uint64_t key = 0; key < kCount; ++key) {
    std::vector<float> pixels(kSide * kSide * kChannels, 1.0F);
    erase(how, kSide, kChannels, key, pixels.data());
    std::int64_t zeros = 0, top = kSide, bottom = 0, left = kSide, right = 0;
    for (std::int64_t i = 0; i < kSide * kSide * kChannels; ++i) {
      if (pixels[static_cast<std::size_t>(i)] != 0) continue;
      const std::int64_t y = i / (kSide * kChannels), x = i / kChannels % kSide;
      ++zeros;
      top = std::min(top, y), bottom = std::max(bottom, y + 1), left = std::min(left, x), right = std::max(right, x + 1);
    }
    if (zeros == 0) continue;
    ASSERT_EQ(zeros, (bottom - top) * (right - left) * kChannels);  // all of a rectangle
    const double fraction = static_cast<double>(zeros) / (kSide * kSide * kChannels);
    EXPECT_GT(fraction, 0.01);
    EXPECT_LT(fraction, 0.36);
    ++erased;
    area += fraction;
  }
  EXPECT_NEAR(erased, 0.4 * kCount, 3 * std::sqrt(0.24 * kCount));
  EXPECT_NEAR(area / erased, (0.02 + 1.0 / 3) / 2, 0.01);
}

}  // namespace augment_test
}  // namespace cautious::data
