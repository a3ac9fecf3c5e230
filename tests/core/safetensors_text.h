// Safetensors files as text, for the tests of their reader.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/safetensors.h"

namespace cautious::base {

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A file with the given header, whose length field is right, and that many bytes of data.
inline std::string file_with(const std::string& json, std::size_t data = 0) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out + json + std::string(data, 'd');
}

inline SafetensorsHeader parse(const std::string& file) {
  return Safetensors::parse(bytes_of(file), file.size(), "f.safetensors");
}

}  // namespace cautious::base
