// When a rule's direction is more than an elementwise formula: the kernel yields z, then shape() turns z into u. A rule that
// needs it offers, beside its formula,
//   Shaping shaping(const R&);                                          // tile: entry by entry; tensor: needs all of z
//   void shape(const R&, std::span<T> u, std::span<const int64_t> shape);  // in place
#pragma once

namespace cautious {

enum class Shaping { none, tile, tensor };

}  // namespace cautious
