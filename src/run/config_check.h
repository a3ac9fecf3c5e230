// What is refused beyond a single value: keys that there are not, and values that do not go together.
#pragma once

#include <vector>

#include "run/config.h"
#include "run/config_layers.h"

namespace cautious::run {

// The assignment's key is none with this configuration; says which was meant, or why there is none.
[[noreturn]] void refuse_key(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment);

// Throws an Error if a layer sets two keys of which one decides.
void refuse_rivals(const std::vector<Assignment>& given);

// Throws an Error if the values do not go together; `given` tells where they come from.
void check_together(const RunConfig& config, const std::vector<Assignment>& given);

}  // namespace cautious::run
