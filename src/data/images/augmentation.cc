// The distributions are those of torchvision: random resized crop, jitter, RandAugment (magnitudes 0 to 10), random erasing.
#include "data/images/augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/images/operations.h"

namespace cautious::data {
namespace {

enum class AugmentKind : std::uint64_t { crop, flip, jitter, randaugment, erase };

Draws draws_of(std::uint64_t key, AugmentKind kind) { return Draws(key_of(key, {static_cast<std::uint64_t>(kind)})); }

constexpr int kTries = 10;  // to place a rectangle of random shape

struct Extent {
  std::int64_t height, width;
};

Extent random_extent(double area, double aspect) {
  return {std::llround(std::sqrt(area / aspect)), std::llround(std::sqrt(area * aspect))};
}

// The largest part in the middle whose shape is within the limits.
Extent middle_extent(const Image& image) {
  const auto bounded = [](std::int64_t length, std::int64_t other) { return std::min(length, (other * 4 + 1) / 3); };
  return {bounded(image.height, image.width), bounded(image.width, image.height)};
}

void resized_crop(double scale, std::int64_t size, Draws draws, const Image& from, Image& to) {
  const auto area = static_cast<double>(from.height * from.width);
  const auto take = [&](Extent part, std::int64_t top, std::int64_t left) {
    resize(from, {top, part.height, size, 0, size}, {left, part.width, size, 0, size}, to);
  };
  for (int i = 0; i < kTries; ++i) {
    const double part_area = area * draws.uniform(scale, 1);
    const Extent part = random_extent(part_area, draws.log_uniform(3.0 / 4, 4.0 / 3));
    if (part.height < 1 || part.height > from.height || part.width < 1 || part.width > from.width) continue;
    const std::int64_t top = draws.below(from.height - part.height + 1);
    return take(part, top, draws.below(from.width - part.width + 1));
  }
  const Extent part = middle_extent(from);
  take(part, (from.height - part.height) / 2, (from.width - part.width) / 2);
}

void crop(const Augment& how, std::int64_t size, std::uint64_t key, Image& image, Image& scratch) {
  Draws draws = draws_of(key, AugmentKind::crop);
  if (how.crop == Crop::resized) {
    resized_crop(how.scale, size, draws, image, scratch);
    return std::swap(image, scratch);
  }
  if (image.height != size || image.width != size) {
    fit(image, size, scratch);
    std::swap(image, scratch);
  }
  if (how.crop == Crop::none) return;
  const std::int64_t top = draws.below(2 * how.pad + 1) - how.pad, left = draws.below(2 * how.pad + 1) - how.pad;
  cut(image, top, left, size, size, scratch);
  std::swap(image, scratch);
}

void jitter(double most, Draws draws, Image& image) {
  std::array changes{change_brightness, change_contrast, change_saturation};
  for (std::size_t left = changes.size(); left > 0; --left) {
    std::swap(changes[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(left)))], changes[left - 1]);
    changes[left - 1](image, draws.uniform(1 - most, 1 + most));
  }
}

void transform_by(Image& image, const Map& map, Image& scratch) {
  transform(image, map, scratch);
  std::swap(image, scratch);
}

// One of the 14 operations of RandAugment; `level` is the magnitude as a fraction of the largest.
void random_operation(double level, Draws& draws, Image& image, Image& scratch) {
  const std::int64_t operation = draws.below(14);
  const double sign = draws.chance(0.5) ? 1 : -1;
  const double factor = 1 + sign * 0.9 * level, shear = sign * 0.3 * level;
  const auto shift = [&](std::int64_t length) { return sign * std::floor(150.0 / 331 * level * static_cast<double>(length)); };
  switch (operation) {
    case 0:
      return;
    case 1:
      return stretch_contrast(image);
    case 2:
      return equalize(image);
    case 3:
      return transform_by(image, rotation(sign * 30 * level, image.height, image.width), scratch);
    case 4:
      return solarize(image, static_cast<int>(std::ceil(255 * (1 - level))));
    case 5:
      return change_saturation(image, factor);
    case 6:
      return posterize(image, 8 - static_cast<int>(std::lround(4 * level)));
    case 7:
      return change_contrast(image, factor);
    case 8:
      return change_brightness(image, factor);
    case 9:
      return change_sharpness(image, factor);
    case 10:
      return transform_by(image, {1, shear, 0, 0, 1, 0}, scratch);
    case 11:
      return transform_by(image, {1, 0, 0, shear, 1, 0}, scratch);
    case 12:
      return transform_by(image, {1, 0, shift(image.width), 0, 1, 0}, scratch);
    default:
      return transform_by(image, {1, 0, 0, 0, 1, shift(image.height)}, scratch);
  }
}

}  // namespace

void augment(const Augment& how, std::int64_t size, std::uint64_t key, Image& image, Image& scratch) {
  crop(how, size, key, image, scratch);
  if (draws_of(key, AugmentKind::flip).chance(how.flip)) flip(image);
  if (how.jitter > 0) jitter(how.jitter, draws_of(key, AugmentKind::jitter), image);
  Draws draws = draws_of(key, AugmentKind::randaugment);
  for (std::int64_t i = 0; i < how.randaugment; ++i) random_operation(how.magnitude / 10, draws, image, scratch);
}

void erase(const Augment& how, std::int64_t size, std::int64_t channels, std::uint64_t key, float* pixels) {
  Draws draws = draws_of(key, AugmentKind::erase);
  if (!draws.chance(how.erase)) return;
  const auto area = static_cast<double>(size * size);
  for (int i = 0; i < kTries; ++i) {
    const double part_area = area * draws.uniform(0.02, 1.0 / 3);
    const Extent part = random_extent(part_area, draws.log_uniform(0.3, 3.3));
    if (part.height >= size || part.width >= size) continue;
    const std::int64_t top = draws.below(size - part.height + 1), left = draws.below(size - part.width + 1);
    for (std::int64_t y = top; y < top + part.height; ++y) {
      std::fill_n(pixels + (y * size + left) * channels, part.width * channels, 0.0F);
    }
    return;
  }
}

}  // namespace cautious::data
