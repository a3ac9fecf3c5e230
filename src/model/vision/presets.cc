// Published image classifiers, and small ones that a CPU trains.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/vision/config.h"

namespace cautious::model {
namespace {

struct VitSides {
  std::int64_t image_size, classes, patch, width, layers, heads;
};

VitConfig vit(const VitSides& sides) {
  VitConfig c;
  c.image_size = sides.image_size;
  c.classes = sides.classes;
  c.patch = sides.patch;
  c.width = sides.width;
  c.layers = sides.layers;
  c.heads = sides.heads;
  c.hidden = 4 * sides.width;
  return c;
}

ResNetConfig cifar_resnet(std::int64_t width, std::vector<double> blocks) {
  ResNetConfig c;
  c.width = width;
  c.blocks = std::move(blocks);
  return c;
}

ResNetConfig resnet_50() {
  ResNetConfig c;
  c.image_size = 224;
  c.classes = 1000;
  c.width = 64;
  c.blocks = {3, 4, 6, 3};
  c.block = Block::bottleneck;
  c.stem = Stem::imagenet;
  return c;
}

constexpr std::array<std::string_view, 7> kImageNames{"vit-nano-4", "vit-tiny-4",      "vit-s16",  "vit-b16",
                                                      "resnet-20",  "resnet-18-cifar", "resnet-50"};

}  // namespace

std::vector<std::string> image_preset_names() { return {kImageNames.begin(), kImageNames.end()}; }

bool is_image_preset(std::string_view name) {
  return std::find(kImageNames.begin(), kImageNames.end(), name) != kImageNames.end();
}

ImageModel image_preset(std::string_view name) {
  switch (base::index_of_name("model", name, kImageNames)) {
    case 0:
      return vit({32, 10, 4, 64, 6, 4});
    case 1:
      return vit({32, 10, 4, 192, 12, 3});
    case 2:
      return vit({224, 1000, 16, 384, 12, 6});
    case 3:
      return vit({224, 1000, 16, 768, 12, 12});
    case 4:
      return cifar_resnet(16, {3, 3, 3});
    case 5:
      return cifar_resnet(64, {2, 2, 2, 2});
    default:
      return resnet_50();
  }
}

}  // namespace cautious::model
