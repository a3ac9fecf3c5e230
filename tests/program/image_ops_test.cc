// Operations on images against their formulas in double precision, pixel by pixel.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/images/operations.h"
#include "memory_images.h"

namespace cautious::data {
namespace image_ops_test {

int at(const Image& image, std::int64_t y, std::int64_t x, std::int64_t channel) {
  if (y < 0 || y >= image.height || x < 0 || x >= image.width) return 0;
  return image.pixels[static_cast<std::size_t>((y * image.width + x) * image.channels + channel)];
}

using Formula = std::function<double(std::int64_t y, std::int64_t x, std::int64_t channel)>;

// Whole numbers may be missed by a hair: where the formula is that near to one, both neighbours are right.
void expect_cut_off(const Image& image, const Formula& formula) {
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const double exact = std::clamp(formula(y, x, c), 0.0, 255.0);
        ASSERT_GE(at(image, y, x, c), std::floor(exact - 1e-3)) << y << ' ' << x << ' ' << c;
        ASSERT_LE(at(image, y, x, c), std::floor(exact + 1e-3)) << y << ' ' << x << ' ' << c;
      }
    }
  }
}

// Noise, a dark ramp, one colour, two colours.
std::vector<Image> samples() {
  std::vector<Image> images;
  for (const std::int64_t channels : {1, 3}) {
    images.push_back(noise_image(9, 12, channels, 1));
    images.push_back(noise_image(32, 32, channels, 2));
    images.push_back(noise_image(1, 1, channels, 3));
    images.push_back(noise_image(2, 5, channels, 4));
    Image ramp = noise_image(20, 30, channels, 5), one = ramp, two = ramp;
    for (std::size_t i = 0; i < ramp.pixels.size(); ++i) {
      ramp.pixels[i] = static_cast<std::uint8_t>(17 + i / 9);
      one.pixels[i] = 200;
      two.pixels[i] = i % 7 == 0 ? 31 : 140;
    }
    images.insert(images.end(), {ramp, one, two});
  }
  return images;
}

// Share of old pixel k of `length` in new pixel i of `size`: a triangle, as wide as two of the larger pixels.
double share_of(std::int64_t k, std::int64_t length, std::int64_t i, std::int64_t size) {
  const double ratio = static_cast<double>(length) / static_cast<double>(size);
  const auto height = [&](std::int64_t position) {
    const double distance = static_cast<double>(position) + 0.5 - (static_cast<double>(i) + 0.5) * ratio;
    return std::max(0.0, 1 - std::abs(distance) / std::max(1.0, ratio));
  };
  double all = 0;
  for (std::int64_t other = 0; other < length; ++other) all += height(other);
  return height(k) / all;
}

Axis whole(std::int64_t length, std::int64_t size) { return {0, length, size, 0, size}; }

TEST(ImageGeometry, ResizeIsATriangleFilter) {
  for (const std::int64_t channels : {1, 3}) {
    for (const auto& [height, width, new_height, new_width] : std::vector<std::array<std::int64_t, 4>>{
             {8, 8, 8, 8}, {13, 9, 5, 4}, {5, 4, 13, 9}, {16, 3, 4, 12}, {1, 1, 3, 2}, {40, 7, 1, 1}}) {
      const Image from = noise_image(height, width, channels, 3);
      Image to;
      resize(from, whole(height, new_height), whole(width, new_width), to);
      ASSERT_EQ(to.height, new_height);
      ASSERT_EQ(to.width, new_width);
      ASSERT_EQ(to.pixels.size(), static_cast<std::size_t>(new_height * new_width * channels));
      for (std::int64_t y = 0; y < new_height; ++y) {
        for (std::int64_t x = 0; x < new_width; ++x) {
          for (std::int64_t c = 0; c < channels; ++c) {
            double sum = 0;
            for (std::int64_t i = 0; i < height; ++i) {
              for (std::int64_t j = 0; j < width; ++j)
                sum += share_of(i, height, y, new_height) * share_of(j, width, x, new_width) * at(from, i, j, c);
            }
            ASSERT_NEAR(at(to, y, x, c), sum, 1.001) << y << ' ' << x;  // rounded twice
          }
        }
      }
    }
  }
}

TEST(ImageGeometry, ResizeOfAPartIsThatOfTheCut) {
  const Image from = noise_image(20, 30, 3, 8);
  Image part, cut_first, all, cut_last;
  resize(from, {3, 11, 7, 0, 7}, {5, 20, 9, 0, 9}, part);
  cut(from, 3, 5, 11, 20, cut_first);
  resize(cut_first, whole(11, 7), whole(20, 9), all);
  EXPECT_EQ(part.pixels, all.pixels);
  resize(from, {0, 20, 31, 4, 6}, {0, 30, 13, 2, 8}, part);
  resize(from, whole(20, 31), whole(30, 13), all);
  cut(all, 4, 2, 6, 8, cut_last);
  EXPECT_EQ(part.pixels, cut_last.pixels);
}

TEST(ImageGeometry, FitTakesTheMiddle) {
  struct Case {
    std::int64_t height, width, size, new_height, new_width;
  };
  for (const auto& [height, width, size, new_height, new_width] :
       {Case{20, 30, 14, 16, 24}, Case{30, 20, 14, 24, 16}, Case{14, 21, 14, 14, 21}, Case{7, 8, 14, 14, 16},
        Case{15, 15, 14, 16, 16}}) {
    const Image from = noise_image(height, width, 3, 1);
    Image all, expected, fitted;
    resize(from, whole(height, new_height), whole(width, new_width), all);
    cut(all, (new_height - size) / 2, (new_width - size) / 2, size, size, expected);
    fit(from, size, fitted);
    EXPECT_EQ(fitted.pixels, expected.pixels) << height << 'x' << width;
  }
  // No memory for what is not seen of a long image.
  Image fitted;
  fit(noise_image(1, 100000, 1, 1), 32, fitted);
  EXPECT_EQ(fitted.pixels.size(), 32u * 32u);
}

TEST(ImageGeometry, CutAndFlip) {
  for (const Image& from : samples()) {
    for (const std::int64_t top : {-40, -2, 0, 1, 40}) {
      for (const std::int64_t left : {-40, -3, 0, 2, 40}) {
        Image to = noise_image(50, 3, 1, 1);  // leaves nothing of what was there
        cut(from, top, left, 6, 7, to);
        expect_cut_off(to, [&](auto y, auto x, auto c) { return at(from, top + y, left + x, c); });
      }
    }
    Image flipped = from;
    flip(flipped);
    expect_cut_off(flipped, [&](auto y, auto x, auto c) { return at(from, y, from.width - 1 - x, c); });
  }
}

TEST(ImageGeometry, TransformShowsTheOldPixelUnderTheNewMiddle) {
  const std::vector<Map> maps = {{1, 0.27, 0, 0, 1, 0}, {1, 0, 0, -0.3, 1, 0},           {1, 0, 5, 0, 1, 0},
                                 {1, 0, 0, 0, 1, -3},   {0.9, 0.2, 1.5, -0.3, 1.1, 2.2}, rotation(17, 32, 32),
                                 rotation(-30, 20, 30)};
  for (const Image& from : samples()) {
    for (const Map& m : maps) {
      Image to;
      transform(from, m, to);
      ASSERT_EQ(to.pixels.size(), from.pixels.size());
      for (std::int64_t y = 0; y < to.height; ++y) {
        for (std::int64_t x = 0; x < to.width; ++x) {
          const double new_x = static_cast<double>(x) + 0.5, new_y = static_cast<double>(y) + 0.5;
          const double old_x = m[0] * new_x + m[1] * new_y + m[2], old_y = m[3] * new_x + m[4] * new_y + m[5];
          if (std::abs(old_x - std::round(old_x)) < 1e-3 || std::abs(old_y - std::round(old_y)) < 1e-3) continue;
          for (std::int64_t c = 0; c < to.channels; ++c)
            ASSERT_EQ(at(to, y, x, c),
                      at(from, static_cast<std::int64_t>(std::floor(old_y)), static_cast<std::int64_t>(std::floor(old_x)), c));
        }
      }
    }
  }
}

TEST(ImageGeometry, RotationIsCounterclockwise) {
  const Image from = noise_image(8, 8, 3, 6);
  Image to;
  transform(from, rotation(90, 8, 8), to);
  expect_cut_off(to, [&](auto y, auto x, auto c) { return at(from, x, 7 - y, c); });
  transform(from, rotation(0, 8, 8), to);
  EXPECT_EQ(to.pixels, from.pixels);
}

// The weights of ITU-R 601, to 16 bits.
double gray(const Image& image, std::int64_t y, std::int64_t x) {
  if (image.channels == 1) return at(image, y, x, 0);
  const double sum = 19595.0 * at(image, y, x, 0) + 38470.0 * at(image, y, x, 1) + 7471.0 * at(image, y, x, 2);
  return std::floor(sum / 65536 + 0.5);
}

double mean_gray(const Image& image) {
  double sum = 0;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) sum += gray(image, y, x);
  }
  return std::floor(sum / static_cast<double>(image.height * image.width) + 0.5);
}

double smooth(const Image& image, std::int64_t y, std::int64_t x, std::int64_t c) {
  if (y == 0 || x == 0 || y == image.height - 1 || x == image.width - 1) return at(image, y, x, c);
  double sum = 4 * at(image, y, x, c);
  for (std::int64_t i = y - 1; i <= y + 1; ++i) {
    for (std::int64_t j = x - 1; j <= x + 1; ++j) sum += at(image, i, j, c);
  }
  return std::floor(sum / 13 + 0.5);
}

TEST(ImageColours, FactorsBlendWithWhatIsLeftAtZero) {
  for (const Image& from : samples()) {
    const double mean = mean_gray(from);
    struct Change {
      void (*apply)(Image&, double);
      Formula left;
    };
    const std::vector<Change> changes = {{change_brightness, [](auto, auto, auto) { return 0; }},
                                         {change_contrast, [&](auto, auto, auto) { return mean; }},
                                         {change_saturation, [&](auto y, auto x, auto) { return gray(from, y, x); }},
                                         {change_sharpness, [&](auto y, auto x, auto c) { return smooth(from, y, x, c); }}};
    for (const Change& change : changes) {
      for (const double factor : {0.0, 0.1, 0.19, 0.5, 0.73, 1.0, 1.3, 1.9, 2.0}) {
        Image to = from;
        change.apply(to, factor);
        expect_cut_off(to, [&](auto y, auto x, auto c) {
          const double base = change.left(y, x, c);
          return base + factor * (at(from, y, x, c) - base);
        });
        EXPECT_TRUE(factor != 1 || to.pixels == from.pixels);
      }
    }
  }
}

TEST(ImageColours, HistogramsAreStretchedAndLevelled) {
  for (const Image& from : samples()) {
    Image stretched = from, level = from;
    stretch_contrast(stretched);
    equalize(level);
    for (std::int64_t channel = 0; channel < from.channels; ++channel) {
      std::vector<int> values;
      for (std::int64_t i = 0; i < from.height * from.width; ++i)
        values.push_back(at(from, i / from.width, i % from.width, channel));
      std::sort(values.begin(), values.end());
      const int low = values.front(), high = values.back();
      const auto highest = std::count(values.begin(), values.end(), high);
      const auto step = (static_cast<std::int64_t>(values.size()) - highest) / 255;
      for (std::int64_t i = 0; i < from.height * from.width; ++i) {
        const int value = at(from, i / from.width, i % from.width, channel);
        const auto below = std::lower_bound(values.begin(), values.end(), value) - values.begin();
        ASSERT_EQ(at(stretched, i / from.width, i % from.width, channel),
                  low == high ? value : (value - low) * 255 / (high - low));
        ASSERT_EQ(at(level, i / from.width, i % from.width, channel),
                  step == 0 ? value : std::min<std::int64_t>(255, (step / 2 + below) / step));
      }
    }
  }
}

TEST(ImageColours, FewerBitsAndInvertedLights) {
  for (const Image& from : samples()) {
    for (int bits = 0; bits <= 8; ++bits) {
      Image to = from;
      posterize(to, bits);
      const double step = std::pow(2, 8 - bits);
      expect_cut_off(to, [&](auto y, auto x, auto c) { return std::floor(at(from, y, x, c) / step) * step; });
    }
    for (const int threshold : {0, 26, 128, 255, 256}) {
      Image to = from;
      solarize(to, threshold);
      expect_cut_off(to, [&](auto y, auto x, auto c) {
        return at(from, y, x, c) < threshold ? at(from, y, x, c) : 255 - at(from, y, x, c);
      });
    }
  }
}

}  // namespace image_ops_test
}  // namespace cautious::data
