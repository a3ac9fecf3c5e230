// What can be done to an image of bytes, with the meaning the words have in PIL. First where pixels go (geometry.cc): `to` is
// another image than `from`; its memory is used again. Then which values they have (colour.cc), in place.
#pragma once

#include <array>
#include <cstdint>

#include "data/images/image_set.h"

namespace cautious::data {

// One direction of a resize: pixels [begin, begin + length) become `size` pixels, of which [offset, offset + count) are wanted.
struct Axis {
  std::int64_t begin, length, size, offset, count;
};
// Bilinear; the triangle is as wide as a new pixel where the image shrinks.
void resize(const Image& from, const Axis& vertical, const Axis& horizontal, Image& to);

// What evaluation sees of an image: the middle of it, see plain_batch().
void fit(const Image& from, std::int64_t size, Image& to);

// height x width pixels from (top, left) on, black where that is outside.
void cut(const Image& from, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Image& to);

// Left becomes right.
void flip(Image& image);

// The middle of new pixel (x, y) shows that of the old pixel that holds (m0 x + m1 y + m2, m3 x + m4 y + m5); black outside.
using Map = std::array<double, 6>;
void transform(const Image& from, const Map& map, Image& to);
// Of an image turned counterclockwise around its middle.
Map rotation(double degrees, std::int64_t height, std::int64_t width);

// A factor of 1 changes nothing; 0 leaves black (brightness), one gray (contrast), shades of gray (saturation) or a smoothed
// image (sharpness).
void change_brightness(Image& image, double factor);
void change_contrast(Image& image, double factor);
void change_saturation(Image& image, double factor);  // nothing, of a gray image
void change_sharpness(Image& image, double factor);   // but for the pixels at the border
void stretch_contrast(Image& image);                  // each channel to 0 ... 255
void equalize(Image& image);                          // each channel, by its histogram
void posterize(Image& image, int bits);               // the upper ones are kept
void solarize(Image& image, int threshold);           // values from there on are inverted

}  // namespace cautious::data
