// TensorBoard's event files by hand: records of {u64 length, u32 masked CRC-32C of it, data, u32 masked CRC-32C of the data},
// each data a protocol-buffer Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary {1: Value {1: tag,
// 2: float, 8: Tensor, 9: Metadata}}}: the four kinds of field that an Event with scalars or texts has.

#include <array>
#include <bit>
#include <cstddef>

#include "run/metrics.h"

namespace cautious::run {
namespace {

// The Castagnoli polynomial, lowest bit first.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0x82f63b78u : 0);
    table[i] = rest;
  }
  return table;
}();

// A checksum of data that holds checksums is weak; hence the mask.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

enum Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string tag_of(std::uint64_t field, Wire wire) { return varint(field << 3 | wire); }

std::string field(std::uint64_t number, double value) {
  return tag_of(number, kFixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string field(std::uint64_t number, float value) {
  return tag_of(number, kFixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string field(std::uint64_t number, std::int64_t value) {
  return tag_of(number, kVarint) + varint(static_cast<std::uint64_t>(value));
}
std::string field(std::uint64_t number, std::string_view bytes) {
  return (tag_of(number, kBytes) + varint(bytes.size())).append(bytes);
}

std::string record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return (length + little_endian(masked_crc(length))).append(data) + little_endian(masked_crc(data));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string tensorboard_version(double wall_time) {
  return record(field(1, wall_time) + field(3, std::string_view("brain.Event:2")));
}

std::string tensorboard_scalars(double wall_time, std::int64_t step, std::span<const std::pair<std::string, double>> values) {
  std::string summary;
  for (const auto& [tag, value] : values)
    summary += field(1, std::string_view(field(1, std::string_view(tag)) + field(2, static_cast<float>(value))));
  return record(field(1, wall_time) + field(2, step) + field(5, std::string_view(summary)));
}

// A text is a Tensor {1: dtype, 2: Shape {2: Dim {1: size}}, 8: string} for the plugin of Metadata {1: Plugin {1: name}}.
std::string tensorboard_text(double wall_time, std::int64_t step, std::string_view tag, std::string_view text) {
  constexpr std::int64_t kString = 7;
  const std::string shape = field(2, std::string_view(field(1, std::int64_t{1})));
  const std::string tensor = field(1, kString) + field(2, std::string_view(shape)) + field(8, text);
  const std::string metadata = field(1, std::string_view(field(1, std::string_view("text"))));
  const std::string value = field(1, tag) + field(8, std::string_view(tensor)) + field(9, std::string_view(metadata));
  const std::string summary = field(1, std::string_view(value));
  return record(field(1, wall_time) + field(2, step) + field(5, std::string_view(summary)));
}

}  // namespace cautious::run
