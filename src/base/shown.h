// How a name or value out of a file stands in an error message: in quotes, on one line, cut when long.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace cautious::base {

inline std::string shown(std::string_view text) {
  constexpr std::size_t limit = 80;
  std::size_t length = text.size();
  if (length > limit) {
    length = limit;
    while (length > 0 && (text[length] & 0xc0) == 0x80) --length;  // never inside a UTF-8 character
  }
  std::string out = "'";
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + (length < text.size() ? fmt::format("...' ({} bytes)", text.size()) : "'");
}

}  // namespace cautious::base
