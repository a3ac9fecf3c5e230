// A tensor as matrices: [out, in, ...] is one of out x (in * ...); with `blocks` the first side is cut into that many, and a
// block of length 1 loses it ([experts, out, in] with blocks = experts is a stack of out x in).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cautious::optim {

struct Matrices {
  std::int64_t count, rows, cols;
};

// An Error, with the tensor's name, if the shape is not a stack of `blocks` matrices.
Matrices matrices_of(std::string_view name, std::span<const std::int64_t> shape, std::int64_t blocks);

}  // namespace cautious::optim
