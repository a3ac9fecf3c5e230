// Idx files: two zeros, the type of the values (8: bytes), the number of dimensions, the dimensions as big-endian 32-bit
// numbers, the values. Images and labels are two files whose names differ in these words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/gzip.h"
#include "data/images/formats.h"
#include "data/images/packed.h"

namespace cautious::data {
namespace {

using IdxBytes = std::span<const std::byte>;
using IdxPath = std::filesystem::path;

constexpr std::int64_t kIdxClasses = 10;
constexpr std::string_view kIdxImages = "images-idx3-ubyte", kIdxLabels = "labels-idx1-ubyte";

template <std::size_t Dimensions>
struct IdxHeader {
  static constexpr std::size_t kSize = 4 + 4 * Dimensions;
  std::array<std::int64_t, Dimensions> dimensions;

  std::string in_words() const {
    if constexpr (Dimensions == 1)
      return fmt::format("{} labels", dimensions[0]);
    else
      return fmt::format("{} images of {} x {}", dimensions[0], dimensions[2], dimensions[1]);
  }
};

std::string_view idx_text(IdxBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The first bytes of the content, which may be compressed.
std::string idx_start(IdxBytes bytes, const std::string& file, std::size_t count) {
  if (base::is_gzip(bytes)) return base::gunzip(bytes, file, count);
  return std::string(idx_text(bytes.first(std::min(count, bytes.size()))));
}

std::int64_t big_endian(std::string_view four) {
  std::int64_t number = 0;
  for (const char c : four) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

template <std::size_t Dimensions>
IdxHeader<Dimensions> idx_header(IdxBytes bytes, const std::string& file) {
  using Header = IdxHeader<Dimensions>;
  const std::string start = idx_start(bytes, file, Header::kSize);
  constexpr std::array<char, 4> kMagic = {0, 0, 8, static_cast<char>(Dimensions)};
  const std::string_view what = Dimensions == 1 ? "labels" : "images";
  if (!start.starts_with(std::string_view(kMagic.data(), kMagic.size())))
    base::refuse_content(file, fmt::format("not an idx file of {}: its first bytes are not 00 00 08 0{}", what, Dimensions));
  if (start.size() < Header::kSize)
    base::refuse_content(file,
                         fmt::format("an idx file of {} that ends within its header, after {} bytes", what, start.size()));
  Header header;
  for (std::size_t i = 0; i < Dimensions; ++i) header.dimensions[i] = big_endian(std::string_view(start).substr(4 + 4 * i, 4));
  return header;
}

// The values, all of them and no more.
template <std::size_t Dimensions>
std::vector<std::uint8_t> idx_values(IdxBytes bytes, const IdxHeader<Dimensions>& header, const std::string& file) {
  std::int64_t values = 1;
  for (const std::int64_t dimension : header.dimensions) values *= dimension;
  const std::size_t expected = IdxHeader<Dimensions>::kSize + static_cast<std::size_t>(values);
  const auto refuse = [&](const std::string& real) {
    base::refuse_content(file,
                         fmt::format("its header says {}, {} bytes in all, but it has {}", header.in_words(), expected, real));
  };
  const bool packed = base::is_gzip(bytes);
  if (packed && expected / base::kMostInflation > bytes.size())
    refuse(fmt::format("{} bytes, compressed, which cannot become so many", bytes.size()));
  const std::string content = packed ? base::gunzip(bytes, file, expected + 1) : "";
  const std::string_view text = packed ? content : idx_text(bytes);
  if (packed && text.size() > expected) refuse("more");
  if (text.size() != expected) refuse(std::to_string(text.size()));
  const std::string_view rest = text.substr(IdxHeader<Dimensions>::kSize);
  return {rest.begin(), rest.end()};
}

IdxHeader<3> image_header(IdxBytes bytes, const std::string& file) {
  const IdxHeader<3> header = idx_header<3>(bytes, file);
  const auto [count, height, width] = header.dimensions;
  if (count < 1 || height < 1 || width < 1 || height > kMostPixels / width)
    base::refuse_content(file, fmt::format("its header says {}; an image has 1 to {} pixels", header.in_words(), kMostPixels));
  return header;
}

// With or without .gz; empty if there is neither.
IdxPath idx_file(const IdxPath& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    std::error_code none;
    if (std::filesystem::is_regular_file(folder / (name + suffix), none)) return folder / (name + suffix);
  }
  return {};
}

IdxPath labels_of(const IdxPath& images) {
  std::string name = images.filename().string();
  name.replace(name.find(kIdxImages), kIdxImages.size(), kIdxLabels);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const IdxPath labels = idx_file(images.parent_path(), name);
  if (labels.empty()) base::refuse_content(images.string(), fmt::format("no file of its labels beside it: {}[.gz]", name));
  return labels;
}

// Nothing in the files says what they show; the name of their folder does.
std::vector<std::string> idx_classes(const IdxPath& images) {
  std::string folder = std::filesystem::absolute(images).parent_path().filename().string();
  std::transform(folder.begin(), folder.end(), folder.begin(), [](unsigned char c) { return std::tolower(c); });
  if (folder.find("fashion") == folder.npos) return numbered_classes(kIdxClasses);
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
}

PackedFile read_idx(const IdxPath& images) {
  const IdxPath labels = labels_of(images);
  Packed all = idx_images(base::MappedFile(images).bytes(), images.string());
  all.labels = idx_labels(base::MappedFile(labels).bytes(), labels.string());
  const std::size_t count = all.pixels.size() / static_cast<std::size_t>(all.height * all.width);
  if (all.labels.size() != count)
    base::refuse_content(labels.string(),
                         fmt::format("{} labels, but {} has {} images", all.labels.size(), images.filename().string(), count));
  check_labels(all.labels, kIdxClasses, labels.string());
  return {images, std::move(all)};
}

// The training and the test images of a file or folder.
std::pair<IdxPath, IdxPath> idx_files(const IdxPath& path) {
  if (!std::filesystem::is_directory(path)) return {path, {}};
  return {idx_file(path, fmt::format("train-{}", kIdxImages)), idx_file(path, fmt::format("t10k-{}", kIdxImages))};
}

}  // namespace

Packed idx_images(IdxBytes bytes, const std::string& file) {
  const IdxHeader<3> header = image_header(bytes, file);
  return {header.dimensions[1], header.dimensions[2], 1, idx_values(bytes, header, file)};
}

std::vector<std::uint8_t> idx_labels(IdxBytes bytes, const std::string& file) {
  return idx_values(bytes, idx_header<1>(bytes, file), file);
}

ImageFacts idx_facts(IdxBytes bytes, const std::string& file) {
  const auto [count, height, width] = image_header(bytes, file).dimensions;
  return {count, height == width ? height : 0, 1, kIdxClasses};
}

bool is_idx(const IdxPath& path) {
  if (!std::filesystem::is_directory(path)) return path.filename().string().find(kIdxImages) != std::string::npos;
  const auto [train, test] = idx_files(path);
  return !train.empty() || !test.empty();
}

Splits open_idx(const IdxPath& path) {
  const std::pair<IdxPath, IdxPath> files = idx_files(path);
  Splits splits;
  const auto open = [&](const IdxPath& images) -> std::shared_ptr<const ImageSet> {
    if (images.empty()) return nullptr;
    std::vector<PackedFile> set;
    set.push_back(read_idx(images));
    const Packed& packed = set.front().images;
    if (splits.height != 0 && (splits.height != packed.height || splits.width != packed.width))
      base::refuse_content(images.string(),
                           fmt::format("images of {} x {}, but those of {} are {} x {}", packed.width, packed.height,
                                       files.first.filename().string(), splits.width, splits.height));
    splits.height = packed.height;
    splits.width = packed.width;
    return packed_set(std::move(set), idx_classes(images));
  };
  splits.train = open(files.first);
  splits.test = open(files.second);
  return splits;
}

ImageFacts facts_of_idx(const IdxPath& path) {
  const IdxPath train = idx_files(path).first;
  return train.empty() ? ImageFacts{0, 0, 1, kIdxClasses} : idx_facts(base::MappedFile(train).bytes(), train.string());
}

}  // namespace cautious::data
