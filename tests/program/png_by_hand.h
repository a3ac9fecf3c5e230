// PNG files written by hand: stored blocks, filter 0, sums of our own. Nothing of libpng or zlib is in here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cautious::data {

struct HandPng {
  std::uint32_t width = 1, height = 1;
  int depth = 8, type = 2;  // 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  bool interlaced = false;
  std::string palette = "", transparency = "";                                  // contents of PLTE and tRNS
  std::function<unsigned(std::uint32_t x, std::uint32_t y, int c)> value = {};  // of a channel
};

inline int channels_of_type(int type) { return type == 6 ? 4 : type == 2 ? 3 : type == 4 ? 2 : 1; }

inline std::string big_endian_bytes(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

inline std::string png_chunk(std::string_view type, std::string_view content) {
  std::uint32_t sum = 0xffffffffu;
  const std::string both = std::string(type) + std::string(content);
  for (const char c : both) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) != 0 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
  }
  return big_endian_bytes(static_cast<std::uint32_t>(content.size())) + both + big_endian_bytes(~sum);
}

// A zlib stream of blocks that are not compressed.
inline std::string stored(std::string_view content) {
  std::string stream = "\x78\x01";
  std::uint32_t a = 1, b = 0;
  for (const char c : content) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  do {
    const std::string_view block = content.substr(0, 65535);
    content.remove_prefix(block.size());
    const auto size = static_cast<std::uint32_t>(block.size());
    stream += content.empty() ? '\1' : '\0';
    for (const std::uint32_t half : {size, ~size}) {
      stream += static_cast<char>(half & 0xff);
      stream += static_cast<char>(half >> 8 & 0xff);
    }
    stream += block;
  } while (!content.empty());
  return stream + big_endian_bytes(b << 16 | a);
}

// The rows of the pixels x0, x0 + dx, ... of the rows y0, y0 + dy, ...
inline std::string hand_rows(const HandPng& png, std::uint32_t x0, std::uint32_t y0, std::uint32_t dx, std::uint32_t dy) {
  std::string rows;
  for (std::uint32_t y = y0; y < png.height && x0 < png.width; y += dy) {
    rows += '\0';  // filter
    unsigned pending = 0;
    int bits = 0;
    const auto flush = [&](int least) {
      for (; bits >= least && bits > 0; bits -= 8)
        rows += static_cast<char>(bits >= 8 ? pending >> (bits - 8) : pending << (8 - bits));
    };
    for (std::uint32_t x = x0; x < png.width; x += dx) {
      for (int c = 0; c < channels_of_type(png.type); ++c) {
        pending = pending << png.depth | png.value(x, y, c);
        bits += png.depth;
        flush(8);
      }
    }
    flush(1);
  }
  return rows;
}

inline std::string png_header(std::uint32_t width, std::uint32_t height, int depth, int type, bool interlaced) {
  const std::array<char, 5> rest = {static_cast<char>(depth), static_cast<char>(type), 0, 0, static_cast<char>(interlaced)};
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR", big_endian_bytes(width) + big_endian_bytes(height) + std::string(rest.data(), rest.size()));
}

inline std::string png_by_hand(const HandPng& png) {
  std::string file = png_header(png.width, png.height, png.depth, png.type, png.interlaced);
  if (!png.palette.empty()) file += png_chunk("PLTE", png.palette);
  if (!png.transparency.empty()) file += png_chunk("tRNS", png.transparency);
  constexpr std::array<std::array<std::uint32_t, 4>, 7> kPasses = {
      {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};
  std::string rows;
  if (png.interlaced) {
    for (const auto& [x0, y0, dx, dy] : kPasses) rows += hand_rows(png, x0, y0, dx, dy);
  } else {
    rows = hand_rows(png, 0, 0, 1, 1);
  }
  return file + png_chunk("IDAT", stored(rows)) + png_chunk("IEND", "");
}

// A small picture of one colour.
inline std::string plain_png(std::uint32_t width, std::uint32_t height, unsigned red, unsigned green, unsigned blue) {
  HandPng png{width, height};
  png.value = [=](std::uint32_t, std::uint32_t, int c) { return c == 0 ? red : c == 1 ? green : blue; };
  return png_by_hand(png);
}

}  // namespace cautious::data
