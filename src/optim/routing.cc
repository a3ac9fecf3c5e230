#include <cautious/recipe.h>

#include <algorithm>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious {
namespace {

// '*' is any text, '?' any character. On a mismatch the last '*' takes one more character: no recursion, no exponential case.
bool fits_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool fits(const Route& route, std::string_view name, std::span<const std::int64_t> shape) {
  const std::int64_t rank = std::count_if(shape.begin(), shape.end(), [](std::int64_t side) { return side != 1; });
  const std::int64_t longest = shape.empty() ? 1 : *std::max_element(shape.begin(), shape.end());
  return rank >= route.min_rank && rank <= route.max_rank && longest <= route.max_side && fits_pattern(route.pattern, name);
}

}  // namespace

Routing everything(const Recipe& recipe) { return {{{.name = "all", .recipe = recipe}}, {{.group = "all"}}}; }

Routing no_decay_on_vectors(const Recipe& recipe) {
  return {{{.name = "matrices", .recipe = recipe}, {.name = "vectors", .recipe = recipe, .decay = DecaySwitch::off}},
          {{.group = "vectors", .max_rank = 1}, {.group = "matrices"}}};
}

Routing matrices_and_rest(const Recipe& matrices, const Recipe& rest, std::int64_t max_side) {
  return {{{.name = "matrices", .recipe = matrices},
           {.name = "rest", .recipe = rest},
           {.name = "vectors", .recipe = rest, .decay = DecaySwitch::off}},
          {{.group = "vectors", .max_rank = 1}, {.group = "matrices", .max_side = max_side}, {.group = "rest"}}};
}

std::size_t route(const Routing& routing, std::string_view name, std::span<const std::int64_t> shape) {
  const auto found =
      std::find_if(routing.routes.begin(), routing.routes.end(), [&](const Route& r) { return fits(r, name, shape); });
  if (found == routing.routes.end()) {
    throw Error(Fault::usage, fmt::format("no route for tensor {} of shape [{}]; {} routes tried, add one with pattern '*'",
                                          base::in_quotes(name), fmt::join(shape, ", "), routing.routes.size()));
  }
  std::vector<std::string_view> groups;
  for (const Group& group : routing.groups) groups.push_back(group.name);
  return base::index_of_name("parameter group", found->group, groups);
}

}  // namespace cautious
