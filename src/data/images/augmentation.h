// What the settings of augment.h do, image by image and to a batch. Chance is a key; each kind of change has draws of its own,
// so that one more kind leaves the others as they were.
#pragma once

#include <cstdint>

#include "data/images/augment.h"
#include "data/images/draws.h"
#include "data/images/image_set.h"
#include "data/images/loader.h"

namespace cautious::data {

// The image becomes size x size: crop, flip, jitter, RandAugment. `scratch` is memory that is used again.
void augment(const Augment& how, std::int64_t size, std::uint64_t key, Image& image, Image& scratch);

// Random erasing, of size x size normalized pixels: what is erased is 0.
void erase(const Augment& how, std::int64_t size, std::int64_t channels, std::uint64_t key, float* pixels);

// Mixup or cutmix: image i with image count - 1 - i, one share for all. An image without a label stays out of it, and its
// partner stays as it is. Fills `other` and `share`.
void mix(const Augment& how, std::int64_t size, std::int64_t channels, std::uint64_t key, ImageBatch& batch);

// Of the distribution Beta(alpha, alpha).
double beta(double alpha, Draws& draws);

}  // namespace cautious::data
