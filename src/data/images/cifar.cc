// CIFAR-10 and CIFAR-100 as their .bin files have them.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "data/images/formats.h"
#include "data/images/packed.h"

namespace cautious::data {
namespace {

using CifarPath = std::filesystem::path;
using CifarPaths = std::vector<CifarPath>;

struct CifarKind {
  std::int64_t labels, classes;  // bytes of labels in a record
  const char* names;             // the file with the names of the classes, a line each
};
constexpr CifarKind kind_of(Cifar kind) {
  return kind == Cifar::ten ? CifarKind{1, 10, "batches.meta.txt"} : CifarKind{2, 100, "fine_label_names.txt"};
}
constexpr std::int64_t record_of(Cifar kind) { return kind_of(kind).labels + 3 * kCifarPlane; }

// CIFAR-100 has these names; whatever else ends in .bin is a batch of CIFAR-10.
Cifar kind_of_name(const CifarPath& file) {
  return file.filename() == "train.bin" || file.filename() == "test.bin" ? Cifar::hundred : Cifar::ten;
}

std::vector<std::string> names_in(const CifarPath& file, std::int64_t count, std::vector<std::string> otherwise) {
  const auto text = base::read_file_if_any(file);
  if (!text) return otherwise;
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    std::string line = text->substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(std::move(line));
    at = end + 1;
  }
  if (static_cast<std::int64_t>(names.size()) != count)
    base::refuse_content(file.string(), fmt::format("{} names, but there are {} classes", names.size(), count));
  return names;
}

std::shared_ptr<const ImageSet> cifar_set(const CifarPaths& paths) {
  if (paths.empty()) return nullptr;
  const Cifar kind = kind_of_name(paths.front());
  std::vector<PackedFile> files;
  for (const CifarPath& path : paths)
    files.push_back({path, cifar_images(base::MappedFile(path).bytes(), kind, path.string())});
  const auto [labels, classes, names] = kind_of(kind);
  return packed_set(std::move(files), names_in(paths.front().parent_path() / names, classes,
                                               kind == Cifar::ten ? cifar_10_classes() : numbered_classes(classes)));
}

// Those of the names that exist in the folder.
CifarPaths present(const CifarPath& folder, std::initializer_list<const char*> names) {
  CifarPaths files;
  std::error_code none;
  for (const char* name : names) {
    if (std::filesystem::is_regular_file(folder / name, none)) files.push_back(folder / name);
  }
  return files;
}

// Training and test files. A folder may hold both CIFAR-10 and CIFAR-100 only by mistake; then it is CIFAR-10.
std::pair<CifarPaths, CifarPaths> cifar_files(const CifarPath& path) {
  if (!std::filesystem::is_directory(path)) return {{path}, {}};
  std::pair<CifarPaths, CifarPaths> ten = {
      present(path, {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}),
      present(path, {"test_batch.bin"})};
  if (!ten.first.empty() || !ten.second.empty()) return ten;
  return {present(path, {"train.bin"}), present(path, {"test.bin"})};
}

}  // namespace

const std::vector<std::string>& cifar_10_classes() {
  static const std::vector<std::string> names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

std::int64_t cifar_image_count(std::int64_t size, Cifar kind, const std::string& file) {
  const std::int64_t record = record_of(kind);
  if (size == 0 || size % record != 0)
    base::refuse_content(file, fmt::format("not CIFAR's: its {} bytes are not a multiple of {}", size, record));
  return size / record;
}

Packed cifar_images(std::span<const std::byte> bytes, Cifar kind, const std::string& file) {
  const std::int64_t count = cifar_image_count(static_cast<std::int64_t>(bytes.size()), kind, file);
  const auto [label_bytes, classes, names] = kind_of(kind);
  Packed images{kCifarSide, kCifarSide, 3};
  images.pixels.resize(static_cast<std::size_t>(count * 3 * kCifarPlane));
  std::uint8_t* to = images.pixels.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto* const planes = reinterpret_cast<const std::uint8_t*>(bytes.data()) + i * record_of(kind) + label_bytes;
    images.labels.push_back(planes[-1]);
    for (std::int64_t pixel = 0; pixel < kCifarPlane; ++pixel) {
      for (std::int64_t channel = 0; channel < 3; ++channel) *to++ = planes[channel * kCifarPlane + pixel];
    }
  }
  check_labels(images.labels, classes, file);
  return images;
}

bool is_cifar(const CifarPath& path) {
  if (!std::filesystem::is_directory(path)) return path.extension() == ".bin";
  const auto [train, test] = cifar_files(path);
  return !train.empty() || !test.empty();
}

Splits open_cifar(const CifarPath& path) {
  const auto [train, test] = cifar_files(path);
  return {cifar_set(train), cifar_set(test), kCifarSide, kCifarSide};
}

ImageFacts facts_of_cifar(const CifarPath& path) {
  ImageFacts facts{0, kCifarSide, 3, 0};
  for (const CifarPath& file : cifar_files(path).first) {
    const auto size = static_cast<std::int64_t>(base::MappedFile(file).bytes().size());
    facts.training += cifar_image_count(size, kind_of_name(file), file.string());
    facts.classes = kind_of(kind_of_name(file)).classes;
  }
  return facts;
}

}  // namespace cautious::data
