// Lines of saved states that begin with a recipe.
#pragma once

#include <string>
#include <string_view>

#include <cautious/error.h>
#include <cautious/recipe.h>

namespace cautious::optim {

// The line as it would be written today: a field that its recipe did not have yet gets its default. `after` begins what follows
// the recipe.
inline std::string up_to_date(const std::string& line, std::string_view after) {
  const std::size_t end = line.find(after);
  if (end == std::string::npos) return line;
  try {
    return to_string(parse_recipe(std::string_view(line).substr(0, end))) + line.substr(end);
  } catch (const Error&) {
    return line;  // of another version: compared as it is
  }
}

}  // namespace cautious::optim
