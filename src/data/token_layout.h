// Our token file, little-endian, every part at a multiple of 8 bytes:
//   TokenFileStart | tokens of `width` bytes, then zeros up to a multiple of 8 | documents: u64 first token of each |
//   TokenFileEnd
// What is known only after the last document is at the end, so a writer never goes back, and a file that was cut short has
// no end.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace cautious::data {

static_assert(std::endian::native == std::endian::little, "token files are read and written as they are in memory");

struct TokenFileStart {
  std::array<char, 8> magic = {'C', 'A', 'U', 'T', 'O', 'K', 'E', 'N'};
  std::uint32_t version = 1;
  std::uint32_t width = 0;              // bytes per token: 1, 2 or 4
  std::uint64_t vocab = 0;              // ids are below; at most 2^32
  std::array<char, 64> tokenizer = {};  // its fingerprint: 64 hexadecimal digits
};
static_assert(sizeof(TokenFileStart) == 88);

struct TokenFileEnd {
  std::uint64_t tokens = 0, documents = 0;
  std::uint64_t largest = 0;  // of the tokens
  std::array<char, 8> magic = {'C', 'A', 'U', 'T', 'O', 'K', '.', '.'};
};
static_assert(sizeof(TokenFileEnd) == 32);

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace cautious::data
