// Image classifiers as plain data: vision transformers and residual networks, their presets, and what follows from the numbers
// alone. Knows no libtorch. Names and shapes of tensors are timm's for the first and torchvision's for the second.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include <cautious/detail/field.h>

#include "model/config.h"

namespace cautious::model {

enum class Pool { token, mean };
enum class Positions { learned, sincos };
enum class Block { basic, bottleneck };
enum class Stem { small, imagenet };

constexpr auto names_of(Pool) { return std::array<std::string_view, 2>{"token", "mean"}; }
constexpr auto names_of(Positions) { return std::array<std::string_view, 2>{"learned", "sincos"}; }
constexpr auto names_of(Block) { return std::array<std::string_view, 2>{"basic", "bottleneck"}; }
constexpr auto names_of(Stem) { return std::array<std::string_view, 2>{"small", "imagenet"}; }

struct VitConfig {
  static constexpr std::string_view name = "the model";
  static constexpr Range kSize{1, 1e6, false, false};

  std::int64_t image_size = 32;
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t patch = 4;
  std::int64_t width = 192;
  std::int64_t layers = 12;
  std::int64_t heads = 3;
  std::int64_t hidden = 768;
  Pool pool = Pool::token;
  Positions positions = Positions::learned;
  double drop_path = 0;
  double norm_eps = 1e-6;

  static constexpr auto fields() {
    using V = VitConfig;
    return std::tuple{Field{"image_size", &V::image_size, kSize, "height and width that the model sees"},
                      Field{"channels", &V::channels, Range{1, 3, false, false}, "1: gray, 3: colour"},
                      Field{"classes", &V::classes, kSize, "number of classes, at least the data's"},
                      Field{"patch", &V::patch, kSize, "height and width of a patch; divides image_size"},
                      Field{"width", &V::width, kSize, "width of the residual stream"},
                      Field{"layers", &V::layers, ModelConfig::kLayers, "number of layers"},
                      Field{"heads", &V::heads, kSize, "attention heads; divides width"},
                      Field{"hidden", &V::hidden, kSize, "width of the feed-forward network"},
                      Choice{"pool", &V::pool, "token: the class token's row is classified; mean: the patches' mean"},
                      Choice{"positions", &V::positions, "embedding of the positions; sincos has no parameters"},
                      Field{"drop_path", &V::drop_path, kMomentum, "chance that the last layer is skipped; earlier ones less"},
                      Field{"norm_eps", &V::norm_eps, ModelConfig::kEps, "added to a norm's variance"}};
  }
};

struct ResNetConfig {
  static constexpr std::string_view name = "the model";

  std::int64_t image_size = 32;
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t width = 16;
  std::vector<double> blocks = {3, 3, 3};
  Block block = Block::basic;
  Stem stem = Stem::small;

  static constexpr auto fields() {
    using R = ResNetConfig;
    return std::tuple{Field{"image_size", &R::image_size, VitConfig::kSize, "height and width that the model sees"},
                      Field{"channels", &R::channels, Range{1, 3, false, false}, "1: gray, 3: colour"},
                      Field{"classes", &R::classes, VitConfig::kSize, "number of classes, at least the data's"},
                      Field{"width", &R::width, VitConfig::kSize, "channels of the first stage; each further one doubles them"},
                      Numbers{"blocks", &R::blocks, "blocks of each stage; each further stage halves the image"},
                      Choice{"block", &R::block, "basic: two 3x3 convolutions; bottleneck: 1x1, 3x3, 1x1, four times as wide"},
                      Choice{"stem", &R::stem, "small: one 3x3 convolution; imagenet: 7x7 of stride 2, then a pool"}};
  }
};

using ImageModel = std::variant<VitConfig, ResNetConfig>;

std::vector<std::string> image_preset_names();
bool is_image_preset(std::string_view name);
// An unknown name is an Error with a suggestion.
ImageModel image_preset(std::string_view name);

std::int64_t image_size(const ImageModel& model);
std::int64_t channels(const ImageModel& model);
std::int64_t classes(const ImageModel& model);

// Throws an Error if the numbers do not go together.
void check(const ImageModel& model);

// Every parameter with its name, in the order the model registers them.
std::vector<Shape> parameter_shapes(const ImageModel& model);
// Buffers that a checkpoint holds besides: running statistics; "num_batches_tracked" is a single I64.
std::vector<Shape> buffer_shapes(const ImageModel& model);

struct ImageModelSize {
  std::int64_t parameters;
  double flops_per_image;         // forward and backward, of convolutions and matrix products
  std::int64_t parameter_bytes;   // f32: parameters, gradients and two moments
  std::int64_t activation_bytes;  // kept for the backward pass at this batch, and worked on in it
};
ImageModelSize size_of(const ImageModel& model, std::int64_t batch);

// The text of config.json, as timm writes it: architecture, num_classes, model_args, pretrained_cfg with the mean and the
// deviation of the channels, label_names; and "cautious" with all fields of the model. And back, from our own files and from
// timm's for the models that we have; otherwise an Error(Fault::data) that begins with `file`.
struct ImageModelFile {
  ImageModel model;
  std::vector<float> mean, deviation;  // of the normalized channels
  std::vector<std::string> labels;     // names of the classes
};
std::string to_config_json(const ImageModelFile& described);
ImageModelFile image_model_from_json(std::string_view text, const std::string& file);

}  // namespace cautious::model
