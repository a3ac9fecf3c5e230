// Labelled images: idx files (MNIST, Fashion-MNIST), CIFAR's batches, a folder of PNG and JPEG files per class, or the name of
// a known set (sets/catalog.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cautious::data {

struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels = {};  // rows of pixels, the channels of a pixel side by side
};

class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual std::int64_t size() const = 0;
  virtual std::int64_t label(std::int64_t index) const = 0;
  // By label.
  virtual const std::vector<std::string>& classes() const = 0;
  virtual std::int64_t channels() const = 0;  // of every image: 1 or 3
  // Reads an image; its memory is used again. Any number of threads at a time. A file that cannot be decoded is an
  // Error(Fault::data) that names it and says why.
  virtual void read(std::int64_t index, Image& image) const = 0;
  // "cat/17.png", "t10k-images-idx3-ubyte.gz image 17".
  virtual std::string name(std::int64_t index) const = 0;
  // Of the size, the labels and some of the pixels or files: another set has another one, but for chance. Not negative.
  virtual std::int64_t fingerprint() const = 0;
};

struct ImageSpec {
  std::vector<std::string> path;      // files or folders, or one name of a known set
  std::vector<std::string> val_path;  // empty: the test images of `path`, or a fraction of its training images
  double val_fraction = 0;            // of the training images, drawn at random but always the same; 0: the test images
  std::int64_t train_images = 0;      // how many of the others are trained on, drawn in the same way; 0: all
  std::filesystem::path cache;        // where known sets are
};

struct ImageData {
  std::shared_ptr<const ImageSet> train, validation;
  std::string split;                 // in words: "10000 test images of fashion-mnist"
  std::vector<std::string> notices;  // what was left out: "3 files are not images, the first is a/b.png: not a PNG file"
};

// `progress` gets words and the fraction done. No images, one class only, a label without a class, sets whose classes or
// channels differ, a lying header, a name that is neither a file nor a known set: an Error that names the file.
ImageData open_images(const ImageSpec& spec, const std::function<void(const std::string& what, double fraction)>& progress);

// One set of all of `path`, for `cautious eval`: the test images where there are some.
std::shared_ptr<const ImageSet> open_image_set(const ImageSpec& spec);

// What can be said of the training images without decoding any: from headers and names of files; of a known set, from the
// catalog.
struct ImageFacts {
  std::int64_t training;  // images of an epoch
  std::int64_t size;      // height and width; 0 where they differ
  std::int64_t channels, classes;
};
ImageFacts image_facts(const ImageSpec& spec);

// One file, PNG or JPEG by its content, as an image of 1 or 3 channels: gray becomes colour by repetition, colour gray by its
// luma, transparency is laid on white. Not an image, damaged, or of more than kMostPixels: an Error(Fault::data) that names it.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
Image read_image(const std::filesystem::path& file, std::int64_t channels);

// The bytes of a PNG file.
std::string to_png(const Image& image);

}  // namespace cautious::data
