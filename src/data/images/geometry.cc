// Resizing is separable: rows first, rounded to bytes, then columns. Weights have 22 bits, so that sums fit into 32.
#include "data/images/operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

namespace cautious::data {
namespace {

constexpr int kWeightBits = 22;

void shape_as(Image& image, std::int64_t height, std::int64_t width, std::int64_t channels) {
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.pixels.resize(static_cast<std::size_t>(height * width * channels));
}

// The old pixels that make each new one, and their weights.
struct Taps {
  struct Tap {
    std::int64_t first, count;
    std::size_t weights;
  };
  std::vector<Tap> taps;
  std::vector<std::int32_t> weights;

  explicit Taps(const Axis& axis) {
    const double ratio = static_cast<double>(axis.length) / static_cast<double>(axis.size);
    const double reach = std::max(1.0, ratio);
    std::vector<double> shares;
    for (std::int64_t i = axis.offset; i < axis.offset + axis.count; ++i) {
      const double middle = (static_cast<double>(i) + 0.5) * ratio;
      const auto first = std::max<std::int64_t>(0, std::llround(middle - reach));
      const auto last = std::min<std::int64_t>(axis.length, std::llround(middle + reach));
      shares.clear();
      double sum = 0;
      for (std::int64_t k = first; k < last; ++k) {
        shares.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(k) + 0.5 - middle) / reach)));
        sum += shares.back();
      }
      taps.push_back({axis.begin + first, last - first, weights.size()});
      for (const double share : shares) {
        weights.push_back(static_cast<std::int32_t>(std::lround(share / sum * (1 << kWeightBits))));
      }
    }
  }
};

std::uint8_t rounded_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

template <int channels>
void scale_row(const std::uint8_t* from, const Taps& taps, std::uint8_t* to) {
  for (const auto& tap : taps.taps) {
    std::int32_t sums[channels];
    std::fill(sums, sums + channels, 1 << (kWeightBits - 1));
    const std::uint8_t* pixel = from + tap.first * channels;
    const std::int32_t* weight = taps.weights.data() + tap.weights;
    for (std::int64_t k = 0; k < tap.count; ++k) {
      for (int c = 0; c < channels; ++c) sums[c] += weight[k] * *pixel++;
    }
    for (int c = 0; c < channels; ++c) *to++ = rounded_byte(sums[c]);
  }
}

void scale_columns(const std::uint8_t* rows, std::int64_t stride, const Taps& taps, std::uint8_t* to) {
  std::vector<std::int32_t> sums(static_cast<std::size_t>(stride));
  const std::int64_t top = taps.taps.front().first;
  for (const auto& tap : taps.taps) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    for (std::int64_t k = 0; k < tap.count; ++k) {
      const std::int32_t weight = taps.weights[tap.weights + static_cast<std::size_t>(k)];
      const std::uint8_t* row = rows + (tap.first - top + k) * stride;
      for (std::int64_t i = 0; i < stride; ++i) sums[static_cast<std::size_t>(i)] += weight * row[i];
    }
    for (const std::int32_t sum : sums) *to++ = rounded_byte(sum);
  }
}

std::int64_t fixed_point(double value) { return static_cast<std::int64_t>(std::floor(value * 65536 + 0.5)); }

}  // namespace

void resize(const Image& from, const Axis& vertical, const Axis& horizontal, Image& to) {
  const Taps columns(vertical), row(horizontal);
  const std::int64_t top = columns.taps.front().first, bottom = columns.taps.back().first + columns.taps.back().count;
  const std::int64_t stride = horizontal.count * from.channels;
  std::vector<std::uint8_t> rows(static_cast<std::size_t>((bottom - top) * stride));
  const auto scale = from.channels == 1 ? scale_row<1> : scale_row<3>;
  for (std::int64_t y = top; y < bottom; ++y) {
    scale(from.pixels.data() + y * from.width * from.channels, row, rows.data() + (y - top) * stride);
  }
  shape_as(to, vertical.count, horizontal.count, from.channels);
  scale_columns(rows.data(), stride, columns, to.pixels.data());
}

void fit(const Image& from, std::int64_t size, Image& to) {
  const std::int64_t shorter = std::min(from.height, from.width);
  const std::int64_t target = shorter > size ? size * 8 / 7 : size;
  const auto axis = [&](std::int64_t length) {
    const std::int64_t scaled = length * target / shorter;
    return Axis{0, length, scaled, (scaled - size) / 2, size};
  };
  resize(from, axis(from.height), axis(from.width), to);
}

void cut(const Image& from, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Image& to) {
  shape_as(to, height, width, from.channels);
  const std::int64_t first = std::clamp<std::int64_t>(-left, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(from.width - left, first, width);
  const auto bytes = [&](std::int64_t pixels) { return static_cast<std::size_t>(pixels * from.channels); };
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* row = to.pixels.data() + bytes(y * width);
    if (top + y < 0 || top + y >= from.height || first == last) {
      std::memset(row, 0, bytes(width));
      continue;
    }
    std::memset(row, 0, bytes(first));
    std::memcpy(row + bytes(first), from.pixels.data() + bytes((top + y) * from.width + left + first), bytes(last - first));
    std::memset(row + bytes(last), 0, bytes(width - last));
  }
}

void flip(Image& image) {
  const std::int64_t channels = image.channels;
  for (std::int64_t y = 0; y < image.height; ++y) {
    std::uint8_t* left = image.pixels.data() + y * image.width * channels;
    std::uint8_t* right = left + (image.width - 1) * channels;
    for (; left < right; left += channels, right -= channels) std::swap_ranges(left, left + channels, right);
  }
}

void transform(const Image& from, const Map& map, Image& to) {
  shape_as(to, from.height, from.width, from.channels);
  const auto channels = static_cast<std::size_t>(from.channels);
  std::int64_t row_x = fixed_point(map[2] + (map[0] + map[1]) / 2), row_y = fixed_point(map[5] + (map[3] + map[4]) / 2);
  const std::int64_t x_by_x = fixed_point(map[0]), x_by_y = fixed_point(map[1]);
  const std::int64_t y_by_x = fixed_point(map[3]), y_by_y = fixed_point(map[4]);
  std::uint8_t* out = to.pixels.data();
  for (std::int64_t i = 0; i < to.height; ++i, row_x += x_by_y, row_y += y_by_y) {
    std::int64_t x = row_x, y = row_y;
    for (std::int64_t j = 0; j < to.width; ++j, x += x_by_x, y += y_by_x, out += channels) {
      const std::int64_t column = x >> 16, row = y >> 16;
      if (column >= 0 && column < from.width && row >= 0 && row < from.height) {
        const std::uint8_t* in = from.pixels.data() + (row * from.width + column) * from.channels;
        for (std::size_t c = 0; c < channels; ++c) out[c] = in[c];
      } else {
        for (std::size_t c = 0; c < channels; ++c) out[c] = 0;
      }
    }
  }
}

Map rotation(double degrees, std::int64_t height, std::int64_t width) {
  const double angle = -degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  return {cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y};
}

}  // namespace cautious::data
