// PNG files against a writer of our own that knows neither libpng nor zlib, JPEG files against the picture they were made
// from, and what is not an image at all.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "data/images/image_set.h"
#include "data_fixture.h"
#include "png_by_hand.h"

namespace cautious::data {
namespace image_files_test {

using Colour = std::array<unsigned, 3>;

std::string refusal(const std::filesystem::path& file) {
  return line_of(Fault::data, [&] { read_image(file, 3); });
}

unsigned to_8_bits(unsigned value, int depth) {
  const unsigned most = (1u << depth) - 1;
  return (value * 255 * 2 + most) / (2 * most);  // to the nearest
}

unsigned on_paper(unsigned value, unsigned alpha) { return (value * alpha * 2 + 255 * (255 - alpha) * 2 + 255) / 510; }

unsigned noise(std::uint32_t x, std::uint32_t y, int c, int depth) {
  return static_cast<unsigned>(base::mix64(x * 1000003u + y * 1009u + static_cast<unsigned>(c)) % (1u << depth));
}

// What the pixel is, from the specification of PNG.
Colour expected(const HandPng& png, std::uint32_t x, std::uint32_t y) {
  const auto at = [&](int c) { return png.value(x, y, c); };
  const auto key = [&](int c) {  // of tRNS, for gray and RGB
    const auto byte = [&](int i) { return static_cast<unsigned char>(png.transparency[static_cast<std::size_t>(i)]); };
    return static_cast<unsigned>(byte(2 * c) << 8 | byte(2 * c + 1));
  };
  Colour colour{};
  unsigned alpha = 255;
  if (png.type == 3) {
    const std::size_t entry = at(0);
    for (std::size_t c = 0; c < 3; ++c) colour[c] = static_cast<unsigned char>(png.palette[3 * entry + c]);
    if (entry < png.transparency.size()) alpha = static_cast<unsigned char>(png.transparency[entry]);
  } else {
    const bool gray = png.type == 0 || png.type == 4;
    for (int c = 0; c < 3; ++c) colour[static_cast<std::size_t>(c)] = to_8_bits(at(gray ? 0 : c), png.depth);
    if (png.type >= 4) alpha = to_8_bits(at(png.type == 4 ? 1 : 3), png.depth);
    if (!png.transparency.empty()) {
      bool see_through = true;
      for (int c = 0; c < channels_of_type(png.type); ++c) see_through = see_through && at(c) == key(c);
      if (see_through) alpha = 0;
    }
  }
  for (unsigned& value : colour) value = on_paper(value, alpha);
  return colour;
}

void expect_pixels(const HandPng& png, const std::filesystem::path& file, const std::string& what) {
  const Image colour = read_image(file, 3), gray = read_image(file, 1);
  for (const Image* image : {&colour, &gray}) {
    ASSERT_EQ(image->height, png.height) << what;
    ASSERT_EQ(image->width, png.width) << what;
    ASSERT_EQ(image->pixels.size(), png.height * png.width * static_cast<std::size_t>(image->channels)) << what;
  }
  for (std::uint32_t y = 0; y < png.height; ++y) {
    for (std::uint32_t x = 0; x < png.width; ++x) {
      const Colour want = expected(png, x, y);
      const std::size_t at = y * png.width + x;
      const Colour got = {colour.pixels[3 * at], colour.pixels[3 * at + 1], colour.pixels[3 * at + 2]};
      ASSERT_EQ(got, want) << what << " at " << x << ", " << y;
      ASSERT_NEAR(gray.pixels[at], 0.299 * want[0] + 0.587 * want[1] + 0.114 * want[2], 0.51) << what;
    }
  }
}

class ImageFiles : public DataFiles {};

TEST_F(ImageFiles, EveryKindOfPngHasItsPixels) {
  const std::vector<std::pair<int, int>> kinds = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                                  {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  for (const auto& [type, depth] : kinds) {
    for (const bool interlaced : {false, true}) {
      for (const bool transparent : {false, true}) {
        if (transparent && type >= 4) continue;
        HandPng png{13, 11, depth, type, interlaced};
        png.value = [depth = depth](std::uint32_t x, std::uint32_t y, int c) { return noise(x, y, c, depth); };
        if (type == 3) {
          for (unsigned i = 0; i < 3u << depth; ++i) png.palette += static_cast<char>(noise(i, 7, 1, 8));
          if (transparent) png.transparency = std::string("\x00\x80", 2);
        } else if (transparent) {
          for (int c = 0; c < channels_of_type(type); ++c)
            png.transparency += bytes_of({noise(5, 5, c, depth) >> 8}, 1) + bytes_of({noise(5, 5, c, depth) & 0xff}, 1);
        }
        const std::string what =
            fmt::format("type {} depth {} interlaced {} transparent {}", type, depth, interlaced, transparent);
        expect_pixels(png, write("a.png", png_by_hand(png)), what);
      }
    }
  }
}

TEST_F(ImageFiles, WhatWeWriteIsReadBack) {
  for (const std::int64_t channels : {1, 3}) {
    Image image{5, 7, channels, {}};
    for (unsigned i = 0; i < 35 * channels; ++i) image.pixels.push_back(static_cast<std::uint8_t>(noise(i, 0, 0, 8)));
    const Image back = read_image(write("a.png", to_png(image)), channels);
    EXPECT_EQ(back.height, 5);
    EXPECT_EQ(back.width, 7);
    EXPECT_EQ(back.channels, channels);
    EXPECT_EQ(back.pixels, image.pixels);
  }
}

// Red from left to right, green from top to bottom, blue 128; gray files have the red channel alone.
TEST_F(ImageFiles, JpegIsThePictureItWasMadeFrom) {
  for (const auto& [name, most] :
       std::vector<std::pair<std::string, int>>{{"gray", 2}, {"444", 4}, {"420", 16}, {"progressive", 16}, {"restart", 12}}) {
    const auto file = std::filesystem::path(TEST_DATA) / "fuzz/corpus/jpeg" / ("valid_" + name);
    const Image image = read_image(file, 3), gray = read_image(file, 1);
    ASSERT_EQ(gray.pixels.size(), image.pixels.size() / 3);
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        const auto at = static_cast<std::size_t>(y * image.width + x);
        const int width = static_cast<int>(image.width), height = static_cast<int>(image.height);
        const int red = 255 * x / (width - 1), green = name == "gray" ? red : 255 * y / (height - 1);
        const int blue = name == "gray" ? red : 128;
        EXPECT_NEAR(image.pixels[3 * at], red, most) << name << " at " << x << ", " << y;
        EXPECT_NEAR(image.pixels[3 * at + 1], green, most) << name << " at " << x << ", " << y;
        EXPECT_NEAR(image.pixels[3 * at + 2], blue, most) << name << " at " << x << ", " << y;
        EXPECT_NEAR(gray.pixels[at], 0.299 * red + 0.587 * green + 0.114 * blue, most) << name;
      }
    }
  }
}

// Not even the last byte may be missing: libjpeg would warn and make up gray.
TEST_F(ImageFiles, EveryCutIsNoticed) {
  HandPng png{9, 5};
  png.value = [](std::uint32_t x, std::uint32_t y, int c) { return noise(x, y, c, 8); };
  for (const std::string& whole : {png_by_hand(png), base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/valid_420"),
                                   base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/valid_progressive")}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      std::filesystem::remove(folder_ / "cut");  // to overwrite it would wait for the disk
      const std::string line = refusal(write("cut", whole.substr(0, size)));
      ASSERT_TRUE(has(line, "cut: ")) << size << " of " << whole.size() << ": " << line;
    }
    EXPECT_EQ(refusal(write("cut", whole)), "");
  }
}

TEST_F(ImageFiles, DamageIsNamed) {
  std::string png = plain_png(4, 4, 1, 2, 3);
  png[60] ^= 1;
  EXPECT_TRUE(has(refusal(write("a.png", png)), "a.png: damaged PNG file: ")) << refusal(write("a.png", png));
  const std::string cut = base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/bad_cut");
  EXPECT_TRUE(has(refusal(write("b.jpg", cut)), "b.jpg: damaged JPEG file: Premature end of JPEG file"))
      << refusal(write("b.jpg", cut));
  const std::string cmyk = base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/cmyk");
  EXPECT_TRUE(has(refusal(write("c.jpg", cmyk)), "c.jpg: a JPEG file in CMYK; convert it to RGB"));
}

TEST_F(ImageFiles, WhatIsNotAnImageIsRefused) {
  EXPECT_TRUE(has(refusal(write("a.png", "hello")), "a.png: not a PNG or JPEG file"));
  EXPECT_TRUE(has(refusal(write("b.png", "")), "b.png: is empty"));
  EXPECT_TRUE(has(refusal(folder_ / "none.png"), "none.png: cannot open: No such file"));
  EXPECT_TRUE(has(refusal(folder_), "cannot open: Is a directory"));
}

TEST_F(ImageFiles, ScansWithoutEndAreRefused) {
  const std::string whole = base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/valid_progressive");
  const std::size_t scan = whole.find("\xff\xda"), tables = whole.find("\xff\xc4", scan);
  std::string many = whole.substr(0, scan);
  for (int i = 0; i < 600; ++i) many += whole.substr(scan, tables - scan);
  const std::string line = refusal(write("a.jpg", many + whole.substr(tables)));
  EXPECT_TRUE(has(line, "a.jpg: damaged JPEG file: more than 500 scans")) << line;
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST_F(ImageFiles, HeadersThatLieTakeNoMemory) {
  const std::int64_t before = peak_kilobytes();
  const std::string data = png_chunk("IDAT", stored("nothing")) + png_chunk("IEND", "");
  EXPECT_TRUE(has(refusal(write("a.png", png_header(900000, 900000, 16, 6, false) + data)),
                  "a.png: an image of 900000 x 900000 pixels, more than 67108864"));
  EXPECT_TRUE(has(refusal(write("b.png", png_header(8000, 8000, 8, 2, true) + data)),
                  "b.png: the header says 8000 x 8000 pixels, but 75 bytes cannot hold them"))
      << refusal(folder_ / "b.png");
  std::string jpeg = base::read_file(std::string(TEST_DATA) + "/fuzz/corpus/jpeg/valid_444");
  const std::size_t size = jpeg.find(std::string("\xff\xc0\x00\x11\x08\x00\x10\x00\x10", 9)) + 5;
  ASSERT_LT(size, jpeg.size());
  jpeg.replace(size, 4, "\x1f\x40\x1f\x40");  // 8000 x 8000
  EXPECT_TRUE(has(refusal(write("c.jpg", jpeg)), "c.jpg: the header says 8000 x 8000 pixels, but 486 bytes cannot hold them"));
  jpeg.replace(size, 4, "\xea\x60\xea\x60");
  EXPECT_TRUE(has(refusal(write("d.jpg", jpeg)), "d.jpg: an image of 60000 x 60000 pixels, more than 67108864"))
      << refusal(folder_ / "d.jpg");
  EXPECT_LT(peak_kilobytes() - before, 20 * 1024);
}

}  // namespace image_files_test
}  // namespace cautious::data
