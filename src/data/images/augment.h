// What happens to a training image before the model sees it, as plain data: section [augment] of a run's configuration.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>

namespace cautious::data {

enum class Crop { none, pad, resized };
constexpr auto names_of(Crop) { return std::array<std::string_view, 3>{"none", "pad", "resized"}; }

struct Augment {
  static constexpr std::string_view name = "augment";

  Crop crop = Crop::none;
  std::int64_t pad = 4;
  double scale = 0.08;
  double flip = 0;
  double jitter = 0;
  std::int64_t randaugment = 0;
  double magnitude = 9;
  double erase = 0;
  double mixup = 0;
  double cutmix = 0;
  double smoothing = 0;

  static constexpr auto fields() {
    using A = Augment;
    return std::tuple{
        Choice{"crop", &A::crop, "pad: a window of the padded image; resized: a random part, at the model's size"},
        Field{"pad", &A::pad, Range{0, 1024, false, false}, "black pixels on every side, for crop = pad"},
        Field{"scale", &A::scale, Range{0, 1, true, false}, "least area of the part, for crop = resized"},
        Field{"flip", &A::flip, kFraction, "chance of a horizontal flip"},
        Field{"jitter", &A::jitter, kFraction, "most by which brightness, contrast and saturation change, as a fraction"},
        Field{"randaugment", &A::randaugment, Range{0, 16, false, false}, "operations of RandAugment per image"},
        Field{"magnitude", &A::magnitude, Range{0, 10, false, false}, "of these operations"},
        Field{"erase", &A::erase, kFraction, "chance that a rectangle is erased"},
        Field{"mixup", &A::mixup, Range{0, 100, false, false}, "alpha of mixup; 0: off. With cutmix, each batch draws one"},
        Field{"cutmix", &A::cutmix, Range{0, 100, false, false}, "alpha of cutmix; 0: off"},
        Field{"smoothing", &A::smoothing, kMomentum, "of the labels"}};
  }
};

}  // namespace cautious::data
