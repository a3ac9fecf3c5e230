// A residual network as a list of convolutions, each followed by a batch norm: what its tensors, its sizes and its module are
// made from. Knows no libtorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/vision/config.h"

namespace cautious::model {

struct Conv {
  std::string name, norm;  // "layer1.0.conv1" and "layer1.0.bn1"
  std::int64_t in, out, kernel, stride;
  std::int64_t size_after;  // height and width of what it makes
};

// y = relu(branch(x) + shortcut(x)); without a shortcut x itself is added.
struct Residual {
  std::vector<Conv> branch;
  std::optional<Conv> shortcut;
};

Conv stem_of(const ResNetConfig& config);
std::vector<Residual> residuals_of(const ResNetConfig& config);
// Channels that the last block makes.
std::int64_t width_of_features(const ResNetConfig& config);

}  // namespace cautious::model
