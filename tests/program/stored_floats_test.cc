// Halves exhaustively; blocks of Q8_0 by their bound.
#include "base/stored_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <cautious/error.h>

#include "base/hash.h"

namespace cautious::base {
namespace stored_floats_test {

// In [-1, 1), of a hash.
float draw(std::uint64_t i) { return static_cast<float>(static_cast<std::int64_t>(mix64(i * kGolden)) >> 40) * 0x1p-23f; }

std::vector<float> there_and_back(const std::vector<float>& numbers, StoredFloat type) {
  std::vector<std::byte> bytes(stored_bytes(type, numbers.size()) + 1);  // at an odd address
  std::vector<float> back(numbers.size());
  store(numbers, type, std::span(bytes).subspan(1));
  load_stored(std::span(bytes).subspan(1), type, back);
  return back;
}

TEST(StoredFloats, EveryHalfIsANumberAndItself) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float number = from_f16(half);
    const int exponent = static_cast<int>(bits >> 10 & 31), digits = static_cast<int>(bits & 1023);
    if (exponent == 31) {
      EXPECT_TRUE(digits == 0 ? std::isinf(number) : std::isnan(number));
    } else {
      const double size = exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25);
      ASSERT_EQ(static_cast<double>(number), bits >= 0x8000 ? -size : size) << bits;
    }
    ASSERT_TRUE(std::isnan(number) || to_f16(number) == half) << bits;
  }
}

TEST(StoredFloats, BetweenTwoHalvesTheNearestIsTakenAndTheEvenOneInTheMiddle) {
  for (std::uint16_t half = 0; half < 0x7c00; ++half) {
    const auto above = static_cast<std::uint16_t>(half + 1);
    const float low = from_f16(half), high = above == 0x7c00 ? 65536.0f : from_f16(above), middle = (low + high) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(to_f16(std::nextafter(middle, infinity)), above);
    ASSERT_EQ(to_f16(middle), half % 2 == 0 ? half : above);
    ASSERT_EQ(to_f16(-middle), (half % 2 == 0 ? half : above) | 0x8000);
  }
  EXPECT_EQ(to_f16(1e30f), 0x7c00);
  EXPECT_EQ(to_f16(1e-30f), 0);
}

TEST(StoredFloats, Bf16IsTheNearestNumberWithSixteenBits) {
  std::vector<float> numbers;
  for (std::uint64_t i = 1; i < 1000; ++i) numbers.push_back(draw(i) * std::exp2(60 * draw(i + 5000)));
  const std::vector<float> back = there_and_back(numbers, StoredFloat::bf16);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]) & 0xffff, 0u);
    for (const std::uint32_t step : {0x10000u, ~0u << 16}) {
      const auto other = std::bit_cast<float>(std::bit_cast<std::uint32_t>(back[i]) + step);
      ASSERT_LE(std::abs(back[i] - numbers[i]), std::abs(other - numbers[i])) << numbers[i];
    }
  }
  EXPECT_EQ(there_and_back(numbers, StoredFloat::f32), numbers);
}

TEST(StoredFloats, BlocksAreOffByHalfAStepAtMost) {
  for (const float size : {1e-8f, 1e-3f, 1.0f, 3e4f}) {
    for (std::uint64_t block = 0; block < 64; ++block) {
      std::vector<float> numbers(kQ8Block), back(kQ8Block);
      for (std::size_t i = 0; i < kQ8Block; ++i) numbers[i] = size * draw(block) * draw(1000 + block * kQ8Block + i);
      std::vector<std::byte> bytes(kQ8Bytes);
      store(numbers, StoredFloat::q8_0, bytes);
      load_stored(bytes, StoredFloat::q8_0, back);
      std::uint16_t step = 0;
      std::memcpy(&step, bytes.data(), sizeof step);
      for (std::size_t i = 0; i < kQ8Block; ++i)
        ASSERT_LE(std::abs(back[i] - numbers[i]), from_f16(step) / 2 * (1 + 1e-5f)) << size << " " << i;
    }
  }
  EXPECT_EQ(there_and_back(std::vector<float>(32, 0.0f), StoredFloat::q8_0), std::vector<float>(32, 0.0f));
}

TEST(StoredFloats, WhatATypeCannotHoldIsRefused) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](float number, StoredFloat type) {
    std::vector<float> numbers(32, 1.0f);
    numbers[7] = number;
    try {
      there_and_back(numbers, type);
    } catch (const Error& error) {
      return error.fault() == Fault::data;
    }
    return false;
  };
  EXPECT_TRUE(refused(70000, StoredFloat::f16));
  EXPECT_TRUE(refused(-1e30f, StoredFloat::f16));
  EXPECT_FALSE(refused(infinity, StoredFloat::f16));
  EXPECT_FALSE(refused(1e30f, StoredFloat::bf16));
  for (const float number : {1e30f, infinity, -infinity, nan}) EXPECT_TRUE(refused(number, StoredFloat::q8_0)) << number;
  EXPECT_FALSE(refused(1e6f, StoredFloat::q8_0));
}

}  // namespace stored_floats_test
}  // namespace cautious::base
