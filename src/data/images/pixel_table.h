// Bytes to normalized numbers: 256 of them per channel.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/images/loader.h"

namespace cautious::data {

class PixelTable {
 public:
  // Not as many means and deviations as channels is an Error(Fault::usage).
  PixelTable(const Normalization& normalization, std::int64_t channels);

  // All pixels of an image of these channels.
  void put(const Image& image, float* pixels) const;

 private:
  std::vector<std::array<float, 256>> channels_;
};

}  // namespace cautious::data
