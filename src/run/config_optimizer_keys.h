// The keys of [optimizer] and [optimizer.rest], which depend on their recipes.
#pragma once

#include <vector>

#include "run/config_keys.h"

namespace cautious::run {

void add_optimizer(std::vector<Key>& keys, const RunConfig& config);

}  // namespace cautious::run
