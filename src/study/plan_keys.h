// The keys of a run that a plan may set, whatever the optimizers of its arms, and their values one by one.
#pragma once

#include <string>
#include <string_view>

#include "study/plan.h"

namespace cautious::study {

// An Error if no run has the key or takes the value, or if the study decides the key. `before` stands in front of its line.
void check_setting(std::string_view before, const std::string& key, const std::string& value);

// Whether two keys decide the same: one and the same, or train.steps and train.tokens.
bool compete(std::string_view key, std::string_view other);

// Adds a layer of settings in place of those before it that decide the same.
void put(Overrides& all, const Overrides& layer);

}  // namespace cautious::study
