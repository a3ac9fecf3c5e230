// One image file, by its content.
#include <fmt/format.h>

#include "base/files.h"
#include "data/images/decode.h"

namespace cautious::data {

void check_image_size(std::int64_t height, std::int64_t width, std::int64_t least, ImageBytes bytes, const std::string& file) {
  if (height < 1 || width < 1) base::refuse_content(file, fmt::format("an image of {} x {} pixels", width, height));
  if (height > kMostPixels / width)
    base::refuse_content(file, fmt::format("an image of {} x {} pixels, more than {}", width, height, kMostPixels));
  if (least > static_cast<std::int64_t>(bytes.size()))
    base::refuse_content(
        file, fmt::format("the header says {} x {} pixels, but {} bytes cannot hold them", width, height, bytes.size()));
}

void read_image(const std::filesystem::path& file, std::int64_t channels, Image& image) {
  const base::MappedFile mapped(file);
  const ImageBytes bytes = mapped.bytes();
  if (is_png(bytes)) {
    decode_png(bytes, file.string(), channels, image);
  } else if (is_jpeg(bytes)) {
    decode_jpeg(bytes, file.string(), channels, image);
  } else {
    base::refuse_content(file.string(), bytes.empty() ? "is empty" : "not a PNG or JPEG file");
  }
}

Image read_image(const std::filesystem::path& file, std::int64_t channels) {
  Image image;
  read_image(file, channels, image);
  return image;
}

}  // namespace cautious::data
