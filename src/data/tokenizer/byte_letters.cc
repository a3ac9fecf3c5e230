// Bytes 33..126, 161..172 and 174..255 stand for themselves as code points; the others, in order, for 256 and up.
#include "data/tokenizer/byte_letters.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cautious::data {
namespace {

constexpr std::size_t kLetters = 256 + 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr auto kLetterOf = [] {
  std::array<std::uint16_t, 256> letters{};
  std::uint16_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte)
    letters[byte] = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
  return letters;
}();

constexpr auto kByteOf = [] {
  std::array<std::int16_t, kLetters> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kLetterOf[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

}  // namespace

std::string to_letters(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const unsigned letter = kLetterOf[static_cast<unsigned char>(c)];
    if (letter >= 0x80) out += static_cast<char>(0xc0 | letter >> 6);
    out += static_cast<char>(letter < 0x80 ? letter : 0x80 | (letter & 0x3f));
  }
  return out;
}

std::optional<std::string> from_letters(std::string_view letters) {
  std::string out;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    unsigned letter = static_cast<unsigned char>(letters[i]);
    if (letter >= 0x80) {
      const unsigned low = i + 1 < letters.size() ? static_cast<unsigned char>(letters[++i]) : 0;
      if ((letter & 0xe0) != 0xc0 || (low & 0xc0) != 0x80) return std::nullopt;
      letter = (letter & 0x1f) << 6 | (low & 0x3f);
      if (letter < 0x80) return std::nullopt;
    }
    if (letter >= kLetters || kByteOf[letter] < 0) return std::nullopt;
    out += static_cast<char>(kByteOf[letter]);
  }
  return out;
}

}  // namespace cautious::data
