// What suits an optimizer unless the user says otherwise: one table, for `train`, for `compare` and for what is printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/recipe.h>

namespace cautious::run {

inline constexpr double kUsualWarmup = 0.1;  // of the steps

// The recipe with the fields that suit models trained from scratch; an unknown name is the Error of recipe().
Recipe usual_recipe(std::string_view optimizer);

// The fields in which it differs from recipe(), as keys: {"optimizer.beta2", "0.95"}, with those of [optimizer.rest].
const std::vector<std::pair<std::string, std::string>>& usual_fields(std::string_view optimizer);

// Of small language models; wider ones than `width` get less, in inverse proportion.
double usual_lr(std::string_view optimizer);
inline constexpr double kUsualWidth = 128;

}  // namespace cautious::run
