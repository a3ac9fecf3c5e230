// libFuzzer over JPEG files.
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/decode.h"
#include "reader_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  for (const std::int64_t channels : {1, 3}) {
    const auto image = read_or_refuse([&] {
      data::Image read;
      data::decode_jpeg(std::as_bytes(std::span(data, size)), "file", channels, read);
      return read;
    });
    if (!image) continue;
    demand(image->channels == channels && image->height > 0 && image->width > 0);
    demand(static_cast<std::int64_t>(image->pixels.size()) == image->height * image->width * channels);
    demand(image->height * image->width <= 512 * (static_cast<std::int64_t>(size) + 1));
  }
  return 0;
}
