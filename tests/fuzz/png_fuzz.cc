// libFuzzer over PNG files. The sums of the chunks are put right first, or hardly any input would get past them.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/decode.h"
#include "reader_fuzz.h"

namespace {

std::vector<std::uint8_t> with_right_sums(std::vector<std::uint8_t> file) {
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = std::size_t{file[at]} << 24 | file[at + 1] << 16 | file[at + 2] << 8 | file[at + 3];
    if (length > file.size() - at - 12) break;
    const auto sum = static_cast<std::uint32_t>(crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4)));
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    at += length + 12;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const std::vector<std::uint8_t> file = with_right_sums({data, data + size});
  for (const std::int64_t channels : {1, 3}) {
    const auto image = read_or_refuse([&] {
      data::Image read;
      data::decode_png(std::as_bytes(std::span(file)), "file", channels, read);
      return read;
    });
    if (!image) continue;
    demand(image->channels == channels && image->height > 0 && image->width > 0);
    demand(static_cast<std::int64_t>(image->pixels.size()) == image->height * image->width * channels);
    demand(image->height * image->width <= 8 * 1032 * static_cast<std::int64_t>(size));
    if (image->pixels.size() > 100000) continue;
    const std::string again = data::to_png(*image);
    data::Image back;
    data::decode_png(std::as_bytes(std::span(again)), "file", channels, back);
    demand(back.pixels == image->pixels);
  }
  return 0;
}
