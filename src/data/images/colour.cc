// What depends on a value alone goes through a table of 256. Blending is in integers, so that bytes are the same on every
// machine.
#include "data/images/operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace cautious::data {
namespace {

// From `base` at factor 0 to `value` at 1, cut off to whole numbers in 0 ... 255.
class Blend {
 public:
  explicit Blend(double factor) : factor_(static_cast<std::int32_t>(std::lround(factor * (1 << kBits)))) {}
  std::uint8_t operator()(std::int32_t base, std::int32_t value) const {
    return static_cast<std::uint8_t>(std::clamp(((base << kBits) + factor_ * (value - base) + kRounding) >> kBits, 0, 255));
  }

 private:
  static constexpr int kBits = 20;
  static constexpr std::int32_t kRounding = 128;  // more than the factor's own is off, so that whole numbers stay whole

  std::int32_t factor_;
};

using ValueTable = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

template <class Change>
ValueTable table_of(const Change& change) {
  ValueTable table;
  for (int value = 0; value < 256; ++value) table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(change(value));
  return table;
}

void look_up(Image& image, const ValueTable& table) {
  for (auto& value : image.pixels) value = table[value];
}

// A table for each channel, of its histogram.
template <class Make>
void look_up_channels(Image& image, const Make& make) {
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    Histogram histogram{};
    for (std::size_t i = channel; i < image.pixels.size(); i += channels) ++histogram[image.pixels[i]];
    const ValueTable table = make(histogram);
    for (std::size_t i = channel; i < image.pixels.size(); i += channels) image.pixels[i] = table[image.pixels[i]];
  }
}

ValueTable stretched(const Histogram& histogram) {
  const auto used = [](std::int64_t count) { return count > 0; };
  const auto low = static_cast<int>(std::find_if(histogram.begin(), histogram.end(), used) - histogram.begin());
  const auto high = 255 - static_cast<int>(std::find_if(histogram.rbegin(), histogram.rend(), used) - histogram.rbegin());
  if (low >= high) return table_of([](int value) { return value; });
  return table_of([&](int value) { return std::clamp((value - low) * 255 / (high - low), 0, 255); });
}

ValueTable equalized(const Histogram& histogram) {
  std::int64_t total = 0, last = 0;
  for (const std::int64_t count : histogram) {
    total += count;
    if (count > 0) last = count;
  }
  const std::int64_t step = (total - last) / 255;
  if (step == 0) return table_of([](int value) { return value; });
  std::int64_t sum = step / 2;
  return table_of([&](int value) {
    const std::int64_t level = std::min<std::int64_t>(255, sum / step);
    sum += histogram[static_cast<std::size_t>(value)];
    return level;
  });
}

std::int32_t gray_level(const std::uint8_t* pixel) {
  return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

}  // namespace

void change_brightness(Image& image, double factor) {
  look_up(image, table_of([blend = Blend(factor)](int value) { return blend(0, value); }));
}

void change_contrast(Image& image, double factor) {
  std::int64_t sum = 0;
  const std::int64_t count = image.height * image.width;
  if (image.channels == 1) {
    for (const std::uint8_t value : image.pixels) sum += value;
  } else {
    for (std::int64_t i = 0; i < count; ++i) sum += gray_level(image.pixels.data() + 3 * i);
  }
  const auto mean = static_cast<int>((2 * sum + count) / (2 * count));
  look_up(image, table_of([mean, blend = Blend(factor)](int value) { return blend(mean, value); }));
}

void change_saturation(Image& image, double factor) {
  if (image.channels == 1) return;
  const Blend blend(factor);
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* pixel = image.pixels.data() + i;
    const std::int32_t gray = gray_level(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(gray, pixel[c]);
  }
}

void change_sharpness(Image& image, double factor) {
  const Blend blend(factor);
  const std::vector<std::uint8_t> old = image.pixels;
  const std::int64_t step = image.channels, stride = image.width * step;
  for (std::int64_t y = 1; y + 1 < image.height; ++y) {
    for (std::int64_t x = step; x < stride - step; ++x) {
      const std::uint8_t* at = old.data() + y * stride + x;
      std::int32_t sum = 4 * at[0];
      for (const std::uint8_t* row = at - stride; row <= at + stride; row += stride) sum += row[-step] + row[0] + row[step];
      image.pixels[static_cast<std::size_t>(y * stride + x)] = blend((2 * sum + 13) / 26, at[0]);
    }
  }
}

void stretch_contrast(Image& image) { look_up_channels(image, stretched); }

void equalize(Image& image) { look_up_channels(image, equalized); }

void posterize(Image& image, int bits) {
  look_up(image, table_of([mask = 0xff << (8 - bits)](int value) { return value & mask; }));
}

void solarize(Image& image, int threshold) {
  look_up(image, table_of([threshold](int value) { return value < threshold ? value : 255 - value; }));
}

}  // namespace cautious::data
