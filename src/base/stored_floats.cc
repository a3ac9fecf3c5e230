// Halves by integer arithmetic, so that the bits are the same everywhere.
#include "base/stored_floats.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <cautious/error.h>

namespace cautious::base {
namespace {

[[noreturn]] void refuse_number(float number, StoredFloat type) {
  throw Error(Fault::data, fmt::format("it has the number {:.6g}, which {} cannot hold; valid: f32, bf16", number,
                                       names_of(type)[static_cast<std::size_t>(type)]));
}

std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (std::isnan(number)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // rounding could make it infinite
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class Word, class Convert>
void store_words(std::span<const float> numbers, std::span<std::byte> bytes, const Convert& convert) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Word word = convert(numbers[i]);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
}

template <class Word, class Convert>
void load_words(std::span<const std::byte> bytes, std::span<float> numbers, const Convert& convert) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    numbers[i] = convert(word);
  }
}

// The whole numbers are rounded against the scale as it is stored, so that none is off by more than half of it.
void store_block(std::span<const float> numbers, std::span<std::byte> bytes) {
  float largest = 0;
  for (const float number : numbers) {
    if (!std::isfinite(number)) refuse_number(number, StoredFloat::q8_0);
    largest = std::max(largest, std::abs(number));
  }
  std::uint16_t scale_bits = to_f16(largest / 127);
  if (from_f16(scale_bits) * 127.5f < largest) ++scale_bits;  // rounded down by much: the scale is a small half
  const float scale = from_f16(scale_bits);
  if (!std::isfinite(scale)) refuse_number(largest, StoredFloat::q8_0);
  std::memcpy(bytes.data(), &scale_bits, sizeof scale_bits);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float steps = scale == 0 ? 0 : std::clamp(std::round(numbers[i] / scale), -127.0f, 127.0f);
    bytes[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(steps));
  }
}

void load_block(std::span<const std::byte> bytes, std::span<float> numbers) {
  std::uint16_t scale = 0;
  std::memcpy(&scale, bytes.data(), sizeof scale);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = from_f16(scale) * static_cast<float>(static_cast<std::int8_t>(bytes[2 + i]));
}

}  // namespace

std::uint16_t to_f16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);   // NaN
  if (size >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7c00);  // 2^16 and more
  if (size < 0x33000000) return static_cast<std::uint16_t>(sign);            // less than half of the smallest
  const std::uint32_t exponent = size >> 23, whole = (size & 0x7fffff) | 0x800000;
  const bool small = exponent < 113;  // below 2^-14: fewer digits
  const std::uint32_t drop = small ? 126 - exponent : 13, kept = whole >> drop;
  const std::uint32_t rest = whole & ((1u << drop) - 1), half = 1u << (drop - 1);
  const std::uint32_t up = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
  // The leading 1 of `kept` adds one to the exponent, and so does a carry, up to infinity.
  return static_cast<std::uint16_t>(sign | ((small ? 0 : (exponent - 113) << 10) + kept + up));
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, digits = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | digits << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | digits << 13);
  const float small = static_cast<float>(digits) * 0x1p-24f;
  return sign != 0 ? -small : small;
}

std::size_t stored_bytes(StoredFloat type, std::size_t numbers) {
  if (type == StoredFloat::q8_0) return numbers / kQ8Block * kQ8Bytes;
  return numbers * (type == StoredFloat::f32 ? 4 : 2);
}

void store(std::span<const float> numbers, StoredFloat type, std::span<std::byte> bytes) {
  switch (type) {
    case StoredFloat::f32:
      std::memcpy(bytes.data(), numbers.data(), numbers.size_bytes());
      break;
    case StoredFloat::f16:
      store_words<std::uint16_t>(numbers, bytes, [](float number) {
        const std::uint16_t half = to_f16(number);
        if ((half & 0x7fff) == 0x7c00 && std::isfinite(number)) refuse_number(number, StoredFloat::f16);
        return half;
      });
      break;
    case StoredFloat::bf16:
      store_words<std::uint16_t>(numbers, bytes, to_bf16);
      break;
    case StoredFloat::q8_0:
      for (std::size_t i = 0; i < numbers.size() / kQ8Block; ++i)
        store_block(numbers.subspan(i * kQ8Block, kQ8Block), bytes.subspan(i * kQ8Bytes, kQ8Bytes));
      break;
  }
}

void load_stored(std::span<const std::byte> bytes, StoredFloat type, std::span<float> numbers) {
  switch (type) {
    case StoredFloat::f32:
      std::memcpy(numbers.data(), bytes.data(), numbers.size_bytes());
      break;
    case StoredFloat::f16:
      load_words<std::uint16_t>(bytes, numbers, from_f16);
      break;
    case StoredFloat::bf16:
      load_words<std::uint16_t>(
          bytes, numbers, [](std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); });
      break;
    case StoredFloat::q8_0:
      for (std::size_t i = 0; i < numbers.size() / kQ8Block; ++i)
        load_block(bytes.subspan(i * kQ8Bytes, kQ8Bytes), numbers.subspan(i * kQ8Block, kQ8Block));
      break;
  }
}

}  // namespace cautious::base
