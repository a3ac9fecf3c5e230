#include "model/vision/stages.h"

#include <fmt/format.h>

namespace cautious::model {
namespace {

constexpr std::int64_t kWider = 4;  // what a bottleneck makes, in multiples of its inner width

std::int64_t halved(std::int64_t size) { return (size + 1) / 2; }

// The first convolution's result, which in networks for large images is pooled once more.
std::int64_t size_of_first_stage(const ResNetConfig& c) {
  return c.stem == Stem::small ? c.image_size : halved(halved(c.image_size));
}

std::int64_t width_made(const ResNetConfig& c, std::int64_t inner) { return c.block == Block::basic ? inner : kWider * inner; }

}  // namespace

Conv stem_of(const ResNetConfig& c) {
  if (c.stem == Stem::small) return {"conv1", "bn1", c.channels, c.width, 3, 1, c.image_size};
  return {"conv1", "bn1", c.channels, c.width, 7, 2, halved(c.image_size)};
}

std::vector<Residual> residuals_of(const ResNetConfig& c) {
  std::vector<Residual> list;
  std::int64_t size = size_of_first_stage(c), in = c.width, inner = c.width;
  for (std::size_t stage = 0; stage < c.blocks.size(); ++stage, inner *= 2) {
    const std::int64_t out = width_made(c, inner);
    for (std::int64_t number = 0; number < static_cast<std::int64_t>(c.blocks[stage]); ++number, in = out) {
      const std::int64_t stride = stage > 0 && number == 0 ? 2 : 1, after = stride == 2 ? halved(size) : size;
      const std::string block = fmt::format("layer{}.{}.", stage + 1, number);
      Residual made;
      if (c.block == Block::basic) {
        made.branch = {{block + "conv1", block + "bn1", in, inner, 3, stride, after},
                       {block + "conv2", block + "bn2", inner, inner, 3, 1, after}};
      } else {  // the stride is that of the 3x3 convolution
        made.branch = {{block + "conv1", block + "bn1", in, inner, 1, 1, size},
                       {block + "conv2", block + "bn2", inner, inner, 3, stride, after},
                       {block + "conv3", block + "bn3", inner, out, 1, 1, after}};
      }
      if (in != out || stride != 1) made.shortcut = {block + "downsample.0", block + "downsample.1", in, out, 1, stride, after};
      list.push_back(std::move(made));
      size = after;
    }
  }
  return list;
}

std::int64_t width_of_features(const ResNetConfig& c) { return width_made(c, c.width << (c.blocks.size() - 1)); }

}  // namespace cautious::model
