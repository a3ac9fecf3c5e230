// Images without augmentation: what evaluation sees, and the mean and deviation of a set.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <cautious/error.h>
#include "base/parallel.h"
#include "data/images/loader.h"
#include "data/images/operations.h"
#include "data/images/pixel_table.h"
#include "data/permutation.h"

namespace cautious::data {
namespace {

void put_fitted(const Image& image, std::int64_t size, const PixelTable& table, float* pixels) {
  if (image.height == size && image.width == size) return table.put(image, pixels);
  Image fitted;
  fit(image, size, fitted);
  table.put(fitted, pixels);
}

struct PixelMoments {
  std::array<double, 3> mean{}, square{};
};

PixelMoments moments_of(const Image& image) {
  const auto channels = static_cast<std::size_t>(image.channels);
  std::array<std::uint64_t, 3> sum{}, squares{};
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::uint64_t value = image.pixels[i + c];
      sum[c] += value;
      squares[c] += value * value;
    }
  }
  PixelMoments moments;
  const auto count = static_cast<double>(image.height * image.width);
  for (std::size_t c = 0; c < channels; ++c) {
    moments.mean[c] = static_cast<double>(sum[c]) / (255.0 * count);
    moments.square[c] = static_cast<double>(squares[c]) / (255.0 * 255.0 * count);
  }
  return moments;
}

// Of some images all over the set; nothing of those that cannot be read.
std::vector<std::optional<PixelMoments>> sampled_moments(const ImageSet& set) {
  constexpr std::int64_t kMost = 4096;
  const std::int64_t count = std::min(kMost, set.size());
  std::vector<std::optional<PixelMoments>> all(static_cast<std::size_t>(count));
  base::parallel_for(all.size(), base::default_threads(), [&](std::size_t i) {
    const auto index = permuted(i, static_cast<std::uint64_t>(set.size()), epoch_key(0, 0));
    try {
      Image image;
      set.read(static_cast<std::int64_t>(index), image);
      all[i] = moments_of(image);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
    }
  });
  std::erase(all, std::nullopt);
  if (all.empty())
    throw Error(Fault::data, fmt::format("none of {} images can be read; the first of the set is {}", count, set.name(0)));
  return all;
}

}  // namespace

PixelTable::PixelTable(const Normalization& normalization, std::int64_t channels) {
  const auto& [mean, deviation] = normalization;
  const auto count = static_cast<std::size_t>(channels);
  if (mean.size() != count || deviation.size() != count)
    throw Error(Fault::usage,
                fmt::format("{} means and {} deviations for images of {} channels", mean.size(), deviation.size(), channels));
  channels_.resize(count);
  for (std::size_t c = 0; c < count; ++c) {
    for (int value = 0; value < 256; ++value)
      channels_[c][static_cast<std::size_t>(value)] = static_cast<float>((value / 255.0 - mean[c]) / deviation[c]);
  }
}

void PixelTable::put(const Image& image, float* pixels) const {
  const std::uint8_t* byte = image.pixels.data();
  const std::uint8_t* const end = byte + image.pixels.size();
  if (channels_.size() == 1) {
    for (; byte < end; ++byte) *pixels++ = channels_[0][*byte];
    return;
  }
  for (; byte < end; byte += 3, pixels += 3) {
    pixels[0] = channels_[0][byte[0]];
    pixels[1] = channels_[1][byte[1]];
    pixels[2] = channels_[2][byte[2]];
  }
}

Normalization normalization_of(const ImageSet& set) {
  const auto all = sampled_moments(set);
  Normalization result;
  for (std::size_t c = 0; c < static_cast<std::size_t>(set.channels()); ++c) {
    double mean = 0, square = 0;
    for (const auto& moments : all) {
      mean += moments->mean[c] / static_cast<double>(all.size());
      square += moments->square[c] / static_cast<double>(all.size());
    }
    result.mean.push_back(static_cast<float>(mean));
    // At least a step of a byte: images of one colour would become infinite.
    result.deviation.push_back(static_cast<float>(std::max(1.0 / 255, std::sqrt(std::max(0.0, square - mean * mean)))));
  }
  return result;
}

ImageBatch plain_batch(const ImageSet& set, std::int64_t first, std::int64_t count, const View& view, std::int64_t workers) {
  if (first < 0 || count < 0 || first > set.size() - count)
    throw Error(Fault::usage, fmt::format("{} images from {} on wanted of a set of {}", count, first, set.size()));
  const PixelTable table(view.normalization, set.channels());
  const auto images = static_cast<std::size_t>(count);
  const auto pixels = static_cast<std::size_t>(view.size * view.size * set.channels());
  ImageBatch batch{
      count, std::vector<float>(images * pixels), std::vector<std::int64_t>(images, -1), {}, std::vector<float>(images, 1.0F)};
  base::parallel_for(images, static_cast<int>(std::max<std::int64_t>(1, workers)), [&](std::size_t i) {
    const std::int64_t index = first + static_cast<std::int64_t>(i);
    try {
      Image image;
      set.read(index, image);
      put_fitted(image, view.size, table, batch.pixels.data() + i * pixels);
      batch.label[i] = set.label(index);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
    }
  });
  batch.other = batch.label;
  return batch;
}

void put_plain(const Image& image, const View& view, float* pixels) {
  put_fitted(image, view.size, PixelTable(view.normalization, image.channels), pixels);
}

}  // namespace cautious::data
