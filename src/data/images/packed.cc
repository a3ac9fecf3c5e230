#include "data/images/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/files.h"
#include "base/hash.h"

namespace cautious::data {
namespace {

class PackedSet final : public ImageSet {
 public:
  PackedSet(std::vector<PackedFile> files, std::vector<std::string> classes)
      : files_(std::move(files)), classes_(std::move(classes)) {
    for (const PackedFile& file : files_) {
      starts_.push_back(size_);
      size_ += static_cast<std::int64_t>(file.images.labels.size());
    }
  }

  std::int64_t size() const override { return size_; }
  std::int64_t label(std::int64_t index) const override {
    const auto [file, at] = find(index);
    return file.images.labels[at];
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t channels() const override { return files_.front().images.channels; }

  void read(std::int64_t index, Image& image) const override {
    const auto [file, at] = find(index);
    const Packed& all = file.images;
    const auto bytes = static_cast<std::size_t>(all.height * all.width * all.channels);
    image.height = all.height;
    image.width = all.width;
    image.channels = all.channels;
    image.pixels.resize(bytes);
    std::copy_n(all.pixels.data() + at * bytes, bytes, image.pixels.data());
  }

  std::string name(std::int64_t index) const override {
    const auto [file, at] = find(index);
    return fmt::format("{} image {}", file.path.filename().string(), at);
  }

  // A prime number of steps apart, so that the pixels looked at are not of the same column.
  std::int64_t fingerprint() const override {
    constexpr std::size_t kStep = 4099;
    std::uint64_t hash = static_cast<std::uint64_t>(size_);
    const auto add = [&](std::uint64_t value) { hash = base::mix64(hash + base::kGolden + value); };
    for (const auto& [path, images] : files_) {
      add(static_cast<std::uint64_t>(images.height * images.width * images.channels));
      for (const std::uint8_t label : images.labels) add(label);
      for (std::size_t i = 0; i < images.pixels.size(); i += kStep) add(images.pixels[i]);
    }
    return static_cast<std::int64_t>(hash >> 1);
  }

 private:
  std::pair<const PackedFile&, std::size_t> find(std::int64_t index) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
    const auto at = static_cast<std::size_t>(after - starts_.begin() - 1);
    return {files_[at], static_cast<std::size_t>(index - starts_[at])};
  }

  std::vector<PackedFile> files_;
  std::vector<std::int64_t> starts_;
  std::vector<std::string> classes_;
  std::int64_t size_ = 0;
};

}  // namespace

std::shared_ptr<const ImageSet> packed_set(std::vector<PackedFile> files, const std::vector<std::string>& classes) {
  return std::make_shared<PackedSet>(std::move(files), classes);
}

void check_labels(std::span<const std::uint8_t> labels, std::int64_t classes, const std::string& file) {
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](std::uint8_t label) { return label >= classes; });
  if (wrong == labels.end()) return;
  base::refuse_content(
      file, fmt::format("image {} has the label {}; valid: 0 to {}", wrong - labels.begin(), int{*wrong}, classes - 1));
}

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace cautious::data
