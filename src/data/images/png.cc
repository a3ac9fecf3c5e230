// PNG by libpng. Its errors are long jumps: the functions that libpng may leave so hold nothing that has a destructor. Stored
// values are taken as they are, without regard to gamma or colour profiles, as other trainers do.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include <fmt/format.h>

#include <cautious/error.h>
#include "base/files.h"
#include "base/gzip.h"
#include "base/text.h"
#include "data/images/decode.h"

namespace cautious::data {
namespace {

struct PngSource {
  ImageBytes left;
  std::array<char, 128> reason{};
};

void png_failed(png_structp png, png_const_charp reason) {
  auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
  std::strncpy(source.reason.data(), reason, source.reason.size() - 1);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}

void png_more(png_structp png, png_bytep to, std::size_t count) {
  auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (source.left.size() < count) png_error(png, "the file ends too early");
  std::memcpy(to, source.left.data(), count);
  source.left = source.left.subspan(count);
}

class PngReader {
 public:
  explicit PngReader(ImageBytes bytes) : source_{bytes} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, png_failed, png_warned);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error(Fault::failure, "libpng cannot be started: no memory, or another version than the program was built for");
    }
    png_set_read_fn(png_, &source_, png_more);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }
  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  std::int64_t raw_size() const { return (static_cast<std::int64_t>(png_get_rowbytes(png_, info_)) + 1) * height(); }

  // From now on channels of 8 bits: gray or colour, and alpha where there is transparency.
  bool set_up() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_scale_16(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }
  std::int64_t channels() const { return png_get_channels(png_, info_); }

  bool read_rows(std::uint8_t* pixels) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const std::size_t row = png_get_rowbytes(png_, info_);
    const png_uint_32 rows = png_get_image_height(png_, info_);
    for (int pass = 0; pass < passes_; ++pass) {
      for (png_uint_32 y = 0; y < rows; ++y) png_read_row(png_, pixels + y * row, nullptr);
    }
    png_read_end(png_, nullptr);
    return true;
  }

  [[noreturn]] void refuse(const std::string& file) const {
    base::refuse_content(file, fmt::format("damaged PNG file: {}", base::in_one_line(source_.reason.data())));
  }

 private:
  PngSource source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

constexpr unsigned on_white(unsigned value, unsigned alpha) { return (value * alpha + 255 * (255 - alpha) + 127) / 255; }

// In place. Even numbers of channels end with alpha.
void set_channels(Image& image, std::size_t want) {
  const auto have = static_cast<std::size_t>(image.channels);
  const auto count = static_cast<std::size_t>(image.height * image.width);
  if (have == want) return;
  image.pixels.resize(count * std::max(have, want));
  const auto set_pixel = [&](std::size_t i) {
    const std::uint8_t* const from = image.pixels.data() + i * have;
    const unsigned alpha = have % 2 == 0 ? from[have - 1] : 255;
    const std::size_t step = have > 2 ? 1 : 0;
    const std::array<unsigned, 3> colour = {on_white(from[0], alpha), on_white(from[step], alpha),
                                            on_white(from[2 * step], alpha)};
    const unsigned luma = (299 * colour[0] + 587 * colour[1] + 114 * colour[2] + 500) / 1000;
    std::uint8_t* const to = image.pixels.data() + i * want;
    for (std::size_t c = 0; c < want; ++c) to[c] = static_cast<std::uint8_t>(want == 1 ? luma : colour[c]);
  };
  if (want < have) {
    for (std::size_t i = 0; i < count; ++i) set_pixel(i);
  } else {
    for (std::size_t i = count; i-- > 0;) set_pixel(i);
  }
  image.pixels.resize(count * want);
  image.channels = static_cast<std::int64_t>(want);
}

}  // namespace

bool is_png(ImageBytes bytes) {
  return bytes.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

void decode_png(ImageBytes bytes, const std::string& file, std::int64_t channels, Image& image) {
  PngReader reader(bytes);
  if (!reader.read_header()) reader.refuse(file);
  const auto least = reader.raw_size() / static_cast<std::int64_t>(base::kMostInflation);
  check_image_size(reader.height(), reader.width(), least, bytes, file);
  if (!reader.set_up()) reader.refuse(file);
  image.height = reader.height();
  image.width = reader.width();
  image.channels = reader.channels();
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width * image.channels));
  if (!reader.read_rows(image.pixels.data())) reader.refuse(file);
  set_channels(image, static_cast<std::size_t>(channels));
}

std::string to_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.height = static_cast<png_uint_32>(image.height);
  header.width = static_cast<png_uint_32>(image.width);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0)
    throw Error(Fault::failure, fmt::format("cannot make a PNG file of {} x {} pixels and {} channels: {}", image.width,
                                            image.height, image.channels, header.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace cautious::data
