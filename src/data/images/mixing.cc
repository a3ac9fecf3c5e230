// Mixup and cutmix as timm has them: one share for a batch, images paired from both ends.
#include <algorithm>
#include <cmath>
#include <vector>

#include "data/images/augmentation.h"

namespace cautious::data {
namespace {

// The logarithm of a draw of Gamma(shape), shape >= 1: Marsaglia and Tsang (2000).
double log_gamma_draw(double shape, Draws& draws) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (std::log(draws.positive()) < x * x / 2 + d * (1 - std::exp(log_v) + log_v)) return std::log(d) + log_v;
  }
}

struct Box {
  std::int64_t top, bottom, left, right;
};

// Its area is the fraction of the image, but for what is outside.
Box random_box(double fraction, std::int64_t size, Draws& draws) {
  const auto half = static_cast<std::int64_t>(static_cast<double>(size) * std::sqrt(fraction)) / 2;
  const std::int64_t y = draws.below(size), x = draws.below(size);
  const auto inside = [&](std::int64_t position) { return std::clamp<std::int64_t>(position, 0, size); };
  return {inside(y - half), inside(y + half), inside(x - half), inside(x + half)};
}

// work(pixels, pixels of the partner) for every pair of two images with labels.
template <class Work>
void for_pairs(ImageBatch& batch, std::int64_t pixels, float share, const Work& work) {
  for (std::int64_t i = 0; i < batch.count / 2; ++i) {
    const auto one = static_cast<std::size_t>(i), two = static_cast<std::size_t>(batch.count - 1 - i);
    if (batch.label[one] < 0 || batch.label[two] < 0) continue;
    batch.other[one] = batch.label[two];
    batch.other[two] = batch.label[one];
    batch.share[one] = batch.share[two] = share;
    work(batch.pixels.data() + i * pixels, batch.pixels.data() + (batch.count - 1 - i) * pixels);
  }
}

}  // namespace

// Of two draws of Gamma(alpha), which for alpha < 1 are those of Gamma(alpha + 1) times U^(1 / alpha). Their logarithms differ
// by a number even where both round to 0.
double beta(double alpha, Draws& draws) {
  const double boost = alpha < 1 ? 1 : 0;
  double difference = log_gamma_draw(alpha + boost, draws);
  difference -= log_gamma_draw(alpha + boost, draws);
  if (boost > 0) {
    const double one = std::log(draws.positive()), two = std::log(draws.positive());
    difference += (one - two) / alpha;
  }
  return 1 / (1 + std::exp(-difference));
}

void mix(const Augment& how, std::int64_t size, std::int64_t channels, std::uint64_t key, ImageBatch& batch) {
  batch.other = batch.label;
  batch.share.assign(static_cast<std::size_t>(batch.count), 1.0F);
  if (how.mixup <= 0 && how.cutmix <= 0) return;
  Draws draws(key);
  const bool cuts = draws.chance(0.5) ? how.cutmix > 0 : how.mixup <= 0;
  const double drawn = beta(cuts ? how.cutmix : how.mixup, draws);
  const std::int64_t pixels = size * size * channels;
  if (!cuts) {
    const auto share = static_cast<float>(drawn);
    return for_pairs(batch, pixels, share, [&](float* one, float* two) {
      for (std::int64_t i = 0; i < pixels; ++i) {
        const float a = one[i], b = two[i];
        one[i] = share * a + (1 - share) * b;
        two[i] = share * b + (1 - share) * a;
      }
    });
  }
  const Box box = random_box(1 - drawn, size, draws);
  const auto area = static_cast<double>((box.bottom - box.top) * (box.right - box.left));
  const auto share = static_cast<float>(1 - area / static_cast<double>(size * size));
  for_pairs(batch, pixels, share, [&](float* one, float* two) {
    for (std::int64_t y = box.top; y < box.bottom; ++y) {
      const std::int64_t first = (y * size + box.left) * channels, last = (y * size + box.right) * channels;
      std::swap_ranges(one + first, one + last, two + first);
    }
  });
}

}  // namespace cautious::data
