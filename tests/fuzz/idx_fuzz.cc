// libFuzzer over the reader of idx files: images and labels, plain and compressed, which must come to the same.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/packed.h"
#include "reader_fuzz.h"

namespace {

std::vector<std::byte> compressed(std::span<const std::byte> bytes) {
  std::vector<std::byte> packed(bytes.size() + 1024);
  z_stream stream{};
  constexpr int kGzip = 16, kSmallestWindow = 9;  // it is filled anew for every input
  cautious::demand(deflateInit2(&stream, 1, Z_DEFLATED, kSmallestWindow + kGzip, 1, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  cautious::demand(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const auto plain = std::as_bytes(std::span(data, size));
  const auto images = [](std::span<const std::byte> bytes) {
    return read_or_refuse([&] { return data::idx_images(bytes, "file"); });
  };
  const auto labels = [](std::span<const std::byte> bytes) {
    return read_or_refuse([&] { return data::idx_labels(bytes, "file"); });
  };
  const auto read = images(plain);
  if (read) {
    const auto count = read_or_refuse([&] { return data::idx_facts(plain, "file").training; });
    demand(count && *count * read->height * read->width == static_cast<std::int64_t>(read->pixels.size()));
  }
  const auto numbers = labels(plain);
  if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) return 0;  // compressed twice is something else
  const std::vector<std::byte> packed = compressed(plain);
  const auto again = images(packed);
  demand(again.has_value() == read.has_value() && (!read || again->pixels == read->pixels));
  demand(labels(packed) == numbers);
  return 0;
}
