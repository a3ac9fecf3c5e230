#include "optim/matrices.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>

namespace cautious::optim {

Matrices matrices_of(std::string_view name, std::span<const std::int64_t> shape, std::int64_t blocks) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::usage, fmt::format("tensor '{}' of shape [{}] {}", name, fmt::join(shape, ", "), why));
  };
  if (shape.size() < 2) refuse("is no matrix; route vectors to another recipe, as matrices_and_rest() does");
  if (shape.front() % blocks != 0) refuse(fmt::format("cannot be cut into {} blocks along its first side", blocks));
  std::int64_t rows = shape.front() / blocks;
  std::span<const std::int64_t> rest = shape.subspan(1);
  if (blocks > 1 && rows == 1 && rest.size() > 1) {
    rows = rest.front();
    rest = rest.subspan(1);
  }
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  bool fits = rows <= kMost;
  std::int64_t cols = 1;
  for (const std::int64_t side : rest) {
    fits = fits && side <= kMost / std::max<std::int64_t>(cols, 1);
    cols = fits ? cols * side : 0;
  }
  if (!fits) refuse(fmt::format("is a matrix with a side above {}", kMost));
  return {blocks, rows, cols};
}

}  // namespace cautious::optim
