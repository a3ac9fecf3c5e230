// When a rule's direction is more than an elementwise formula: the kernel yields z, then z becomes u. A rule that needs it
// offers, beside its formula, `Shaping shaping(const R&)` and
//   tile    entry by entry           void shape(const R&, std::span<T> z);  in place, on any part of a tensor
//   tensor  needs all of z           the same, on the whole tensor
//   matrix  the orthogonal factor    const Polar& polar_of(const R&);
#pragma once

namespace cautious {

enum class Shaping { none, tile, tensor, matrix };

}  // namespace cautious
