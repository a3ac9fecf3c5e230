// Ablation of the paper: one gate per tensor, <u, x> >= 0. Resolved once per tensor and step to decoupled or none.
#pragma once

#include <string_view>
#include <tuple>

namespace cautious {

struct Layerwise {
  static constexpr std::string_view name = "layerwise";
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace cautious
