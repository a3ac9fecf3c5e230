// The convex functions K of Lion-K: value and subgradient.
//   l1            sum |z|                          sign(z)
//   l2            sqrt(sum z^2)                    z / ||z||
//   lp            (sum |z|^p)^(1/p)                sign(z) (|z| / ||z||_p)^(p-1)
//   huber         sum |z|<=e ? z^2/2e : |z|-e/2    clamp(z/e, -1, 1)
//   relativistic  sum sqrt(z^2 + e^2)              z / sqrt(z^2 + e^2)
//   threshold     sum max(|z| - e, 0)              |z|>e ? sign(z) : 0
//   topk          sum of the largest |z|           sign(z) on the k = ceil(fraction n) largest |z|, ties to the lower index
//   nuclear       sum of the singular values       orthogonal factor of the matrix: polar() and nuclear_norm() of polar.h
#pragma once

#include <array>
#include <span>
#include <string_view>

#include <cautious/field.h>

namespace cautious {

enum class Convex { l1, l2, lp, huber, relativistic, threshold, topk, nuclear };

constexpr auto names_of(Convex) {
  return std::array<std::string_view, 8>{"l1", "l2", "lp", "huber", "relativistic", "threshold", "topk", "nuclear"};
}

inline constexpr Range kNormOrder{1, 1e3, false, false};

struct ConvexFunction {
  Convex k = Convex::l1;
  double p = 2, e = 1e-3, fraction = 0.1;
};

// Whether each entry of the subgradient depends on that entry alone, so that any part of a tensor can be done by itself.
bool is_separable(Convex k);

// nuclear is an Error here and below: it needs the matrix's shape.
double value(const ConvexFunction& function, std::span<const double> z);

// Replaces z by a subgradient at z (zero where K is not differentiable at 0).
void subgradient(const ConvexFunction& function, std::span<float> z);
void subgradient(const ConvexFunction& function, std::span<double> z);

}  // namespace cautious
