// Images of one size in one file, as idx and CIFAR have them; in memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/images/image_set.h"

namespace cautious::data {

struct Packed {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels = {};  // as in Image, one image after the other
  std::vector<std::uint8_t> labels = {};
};

// The content of a file, compressed or not, to images without labels, to labels, or to what its header says. A header that does
// not fit the content is an Error(Fault::data) that names `file`; memory stays within what the file's real size justifies.
Packed idx_images(std::span<const std::byte> bytes, const std::string& file);
std::vector<std::uint8_t> idx_labels(std::span<const std::byte> bytes, const std::string& file);
ImageFacts idx_facts(std::span<const std::byte> bytes, const std::string& file);

// CIFAR's .bin. Records are a label (CIFAR-10), or a coarse and a fine one (CIFAR-100, where the fine one counts), and planes.
inline constexpr std::int64_t kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide;
enum class Cifar { ten, hundred };
Packed cifar_images(std::span<const std::byte> bytes, Cifar kind, const std::string& file);
std::int64_t cifar_image_count(std::int64_t size, Cifar kind, const std::string& file);

// The images of several files, all of one size, in their order.
struct PackedFile {
  std::filesystem::path path;
  Packed images;
};
std::shared_ptr<const ImageSet> packed_set(std::vector<PackedFile> files, const std::vector<std::string>& classes);

// A label that has no class is an Error that names the file and the image.
void check_labels(std::span<const std::uint8_t> labels, std::int64_t classes, const std::string& file);

// "0", "1", ...
std::vector<std::string> numbered_classes(std::int64_t count);

}  // namespace cautious::data
