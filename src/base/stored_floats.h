// f32 numbers in the types that files of weights have: F32, F16, BF16 and Q8_0 of GGUF, blocks of 32 numbers that are whole
// numbers of 8 bits times one F16 scale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cautious::base {

enum class StoredFloat { f32, f16, bf16, q8_0 };
constexpr std::array<std::string_view, 4> names_of(StoredFloat) { return {"f32", "f16", "bf16", "q8_0"}; }

inline constexpr std::size_t kQ8Block = 32, kQ8Bytes = 34;

// Bytes of that many numbers; of Q8_0 a multiple of kQ8Block.
std::size_t stored_bytes(StoredFloat type, std::size_t numbers);

// Rounded to nearest, ties to even. A number too large for the type, or in Q8_0 one that is not finite, is an
// Error(Fault::data). `bytes` has stored_bytes() bytes, at any address.
void store(std::span<const float> numbers, StoredFloat type, std::span<std::byte> bytes);
void load_stored(std::span<const std::byte> bytes, StoredFloat type, std::span<float> numbers);

std::uint16_t to_f16(float number);  // beyond its range: infinite
float from_f16(std::uint16_t bits);

}  // namespace cautious::base
