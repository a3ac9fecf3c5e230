// JPEG by libjpeg(-turbo). Its errors are long jumps: the functions that libjpeg may leave so hold nothing that has a
// destructor. It only warns of data that are damaged or missing and makes up gray for them; here that is an error.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "data/images/decode.h"

namespace cautious::data {
namespace {

constexpr int kMostScans = 500;             // a progressive file of more would take minutes
constexpr std::int64_t kMostDensity = 512;  // pixels of a byte: in Huffman's code a block of 64 has at least one bit

constexpr std::array<int, 5> kDamage = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_ARITH_BAD_CODE,
                                        JWRN_MUST_RESYNC};

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands out its address
  std::jmp_buf home;
  std::array<char, JMSG_LENGTH_MAX> reason;
};

JpegErrors& errors_of(j_common_ptr jpeg) { return *reinterpret_cast<JpegErrors*>(jpeg->err); }

[[noreturn]] void jpeg_failed(j_common_ptr jpeg) {
  JpegErrors& errors = errors_of(jpeg);
  errors.base.format_message(jpeg, errors.reason.data());
  std::longjmp(errors.home, 1);
}

void jpeg_warned(j_common_ptr jpeg, int level) {
  if (level < 0 && std::find(kDamage.begin(), kDamage.end(), jpeg->err->msg_code) != kDamage.end()) jpeg_failed(jpeg);
}

void jpeg_advanced(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  JpegErrors& errors = errors_of(jpeg);
  std::snprintf(errors.reason.data(), errors.reason.size(), "more than %d scans", kMostScans);
  std::longjmp(errors.home, 1);
}

class JpegReader {
 public:
  JpegReader() {
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = jpeg_failed;
    errors_.base.emit_message = jpeg_warned;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool read_header(ImageBytes bytes) {
    if (setjmp(errors_.home) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    progress_.progress_monitor = jpeg_advanced;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }
  std::int64_t height() const { return jpeg_.image_height; }
  std::int64_t width() const { return jpeg_.image_width; }
  bool is_cmyk() const { return jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK; }

  bool read_rows(std::uint8_t* pixels, std::int64_t channels) {
    if (setjmp(errors_.home) != 0) return false;
    jpeg_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    const std::size_t row = static_cast<std::size_t>(jpeg_.output_width) * static_cast<std::size_t>(channels);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW next = pixels + jpeg_.output_scanline * row;
      jpeg_read_scanlines(&jpeg_, &next, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  [[noreturn]] void refuse(const std::string& file) const {
    base::refuse_content(file, fmt::format("damaged JPEG file: {}", base::in_one_line(errors_.reason.data())));
  }

 private:
  jpeg_decompress_struct jpeg_{};
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
};

}  // namespace

bool is_jpeg(ImageBytes bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8} && bytes[2] == std::byte{0xff};
}

void decode_jpeg(ImageBytes bytes, const std::string& file, std::int64_t channels, Image& image) {
  JpegReader reader;
  if (!reader.read_header(bytes)) reader.refuse(file);
  check_image_size(reader.height(), reader.width(), reader.height() * reader.width() / kMostDensity, bytes, file);
  if (reader.is_cmyk()) base::refuse_content(file, "a JPEG file in CMYK; convert it to RGB");
  image.height = reader.height();
  image.width = reader.width();
  image.channels = channels;
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width * channels));
  if (!reader.read_rows(image.pixels.data(), channels)) reader.refuse(file);
}

}  // namespace cautious::data
