// Batches of images, read and augmented by worker threads ahead of their use. Batch n of a run is a function of (seed, n)
// alone, whatever the number of workers: nothing to save, nothing to restore.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/images/augment.h"
#include "data/images/image_set.h"

namespace cautious::data {

// (value / 255 - mean) / deviation, by channel.
struct Normalization {
  std::vector<float> mean, deviation;
};
// Of all images, or of some thousand drawn from a large set; always the same.
Normalization normalization_of(const ImageSet& set);

// What a model sees of an image.
struct View {
  std::int64_t size = 0;  // height and width
  Normalization normalization;
};

struct ImageBatch {
  std::int64_t count = 0;
  std::vector<float> pixels;        // count x size x size x channels
  std::vector<std::int64_t> label;  // -1: an image that could not be read, which does not count
  std::vector<std::int64_t> other;  // the second label of a mixed image
  std::vector<float> share;         // of `label` in the target, 1 where nothing is mixed; the rest is that of `other`
};

struct LoaderSpec {
  View view;
  Augment augment;
  std::int64_t batch = 1;
  std::uint64_t seed = 0;
  std::int64_t workers = 1;
  std::int64_t most_bad =
      0;  // images that may turn out to be unreadable; one more is an Error(Fault::data) that names the last
};

// Training: an epoch visits every image once in an order of its own. The set must outlive the loader.
class Loader {
 public:
  Loader(const ImageSet& set, const LoaderSpec& spec);
  ~Loader();

  // Batch `number`, from 0. Those that follow are being prepared when it returns; any other number may be asked for too. Valid
  // until the next call.
  const ImageBatch& batch(std::int64_t number);
  // "a/b.png: truncated", each image once, in the order in which they were met.
  std::vector<std::string> bad() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Evaluation: images [first, first + count) in order, without augmentation. An image of another size is resized, its shorter
// side to the view's times 8/7 where it is larger than the view, and the middle is taken.
ImageBatch plain_batch(const ImageSet& set, std::int64_t first, std::int64_t count, const View& view, std::int64_t workers);
// The same of a single image.
void put_plain(const Image& image, const View& view, float* pixels);

}  // namespace cautious::data
