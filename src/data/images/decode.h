// Bytes of image files to pixels. Nothing is allocated before the size has been checked: against kMostPixels, and against what
// so many bytes can hold. Damaged or cut short: an Error(Fault::data) that names `file`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/images/image_set.h"

namespace cautious::data {

using ImageBytes = std::span<const std::byte>;

bool is_png(ImageBytes bytes);   // by its first bytes
bool is_jpeg(ImageBytes bytes);  // by its first bytes

// As read_image(); the memory of `image` is used again. `channels` is 1 or 3.
void decode_png(ImageBytes bytes, const std::string& file, std::int64_t channels, Image& image);
void decode_jpeg(ImageBytes bytes, const std::string& file, std::int64_t channels, Image& image);
void read_image(const std::filesystem::path& file, std::int64_t channels, Image& image);

// `least`: bytes without which there cannot be an image of that size.
void check_image_size(std::int64_t height, std::int64_t width, std::int64_t least, ImageBytes bytes, const std::string& file);

}  // namespace cautious::data
