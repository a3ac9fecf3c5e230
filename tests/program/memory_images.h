// A set of images in memory, some of which cannot be read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cautious/error.h>
#include "base/hash.h"
#include "data/images/image_set.h"

namespace cautious::data {

// Every pixel another one, the same each time.
inline Image noise_image(std::int64_t height, std::int64_t width, std::int64_t channels, std::uint64_t key) {
  Image image{height, width, channels, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * channels))};
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<std::uint8_t>(base::mix64(key * 7919 + i));
  return image;
}

class MemoryImages : public ImageSet {
 public:
  explicit MemoryImages(std::vector<Image> images) : images_(std::move(images)) {}
  MemoryImages(std::int64_t count, std::int64_t size, std::int64_t channels) {
    for (std::int64_t i = 0; i < count; ++i)
      images_.push_back(noise_image(size, size, channels, static_cast<std::uint64_t>(i)));
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.size()); }
  std::int64_t label(std::int64_t index) const override { return index; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t channels() const override { return images_.front().channels; }
  void read(std::int64_t index, Image& image) const override {
    if (index % 4 == 1) std::this_thread::sleep_for(pause);
    if (index == broken) throw Error(Fault::failure, "the disk is gone");
    if (unreadable.contains(index)) throw Error(Fault::data, "truncated", {.where = name(index)});
    image = images_[static_cast<std::size_t>(index)];
  }
  std::string name(std::int64_t index) const override { return std::to_string(index) + ".png"; }
  std::int64_t fingerprint() const override { return size(); }

  std::set<std::int64_t> unreadable = {};
  std::chrono::microseconds pause{0};     // of every fourth image, so that workers overtake one another
  std::atomic<std::int64_t> broken = -1;  // may change while workers read

 private:
  std::vector<Image> images_;
  std::vector<std::string> classes_ = {"one", "two"};
};

}  // namespace cautious::data
