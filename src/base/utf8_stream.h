// UTF-8: the length of a character; and a stream, bytes as they come, out as whole UTF-8 characters: the start of one is held
// back until its end has come, and what cannot be a character is U+FFFD, one for each longest start of one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cautious::base {

// Bytes of the character that the text begins with, by the table of well-formed sequences (Unicode 15, table 3-7); 0 if it is
// none.
inline std::size_t utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto within = [](unsigned value, unsigned low, unsigned high) { return value >= low && value <= high; };
  const unsigned a = byte(0);
  if (a < 0x80) return 1;
  const unsigned b = byte(1);
  const bool c = within(byte(2), 0x80, 0xbf), d = within(byte(3), 0x80, 0xbf);
  if (within(a, 0xc2, 0xdf)) return within(b, 0x80, 0xbf) ? 2 : 0;
  if (within(a, 0xe0, 0xef)) return within(b, a == 0xe0 ? 0xa0 : 0x80, a == 0xed ? 0x9f : 0xbf) && c ? 3 : 0;
  if (within(a, 0xf0, 0xf4)) return within(b, a == 0xf0 ? 0x90 : 0x80, a == 0xf4 ? 0x8f : 0xbf) && c && d ? 4 : 0;
  return 0;
}

class Utf8Stream {
 public:
  std::string add(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) take(static_cast<unsigned char>(c), out);
    return out;
  }

  // What is held back at the end of the text.
  std::string finish() {
    std::string out;
    give_up(out);
    return out;
  }

 private:
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";

  void take(unsigned char byte, std::string& out) {
    if (missing_ > 0 && (byte < low_ || byte > high_)) give_up(out);
    if (missing_ > 0) {
      held_ += static_cast<char>(byte);
      low_ = 0x80;
      high_ = 0xbf;
      if (--missing_ == 0) {
        out += held_;
        held_.clear();
      }
    } else if (byte < 0x80) {
      out += static_cast<char>(byte);
    } else if (byte >= 0xc2 && byte <= 0xf4) {
      begin(byte);
    } else {
      out += kReplacement;
    }
  }

  // The second byte's range leaves out overlong forms, surrogates and what is beyond U+10FFFF.
  void begin(unsigned char byte) {
    held_ = static_cast<char>(byte);
    missing_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    low_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    high_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  }

  void give_up(std::string& out) {
    if (missing_ > 0) out += kReplacement;
    missing_ = 0;
    held_.clear();
  }

  std::string held_;
  int missing_ = 0;  // bytes until held_ is whole
  unsigned char low_ = 0, high_ = 0;
};

}  // namespace cautious::base
