#include "lab/fixedpoint/fixedpoint_casework.h"

#include <cautious/rules/lion_k.h>

namespace cautious::lab::fixedpoint {
namespace {

// Multiples of 1/8 up to 2: all sums, products and quotients of the equations are exact at the points where they can hold.
constexpr int kPerUnit = 8, kReach = 16;

// left(g, y) = right(g, y) on the grid.
template <class Sides>
CaseworkCount count(Sides sides) {
  CaseworkCount result;
  for (int i = -kReach; i <= kReach; ++i) {
    for (int j = -kReach; j <= kReach; ++j) {
      const double y = static_cast<double>(i) / kPerUnit, g = static_cast<double>(j) / kPerUnit;
      const auto [left, right] = sides(y, g);
      if (left != right) continue;
      ++result.solutions;
      if (left == 0) continue;
      if (result.nonzero++ == 0) result.example_y = y, result.example_g = g;
    }
  }
  return result;
}

void add(CaseworkCount& sum, const CaseworkCount& part) {
  if (sum.nonzero == 0) sum.example_y = part.example_y, sum.example_g = part.example_g;
  sum.solutions += part.solutions;
  sum.nonzero += part.nonzero;
}

struct Both {
  double left, right;
};

}  // namespace

CaseworkCount count_adam() {
  CaseworkCount sum;
  for (const double eps : {0.125, 0.25, 0.5, 1.0}) {
    add(sum, count([eps](double y, double g) { return Both{g / ((g < 0 ? -g : g) + eps), g * y >= 0 ? -y : 0.0}; }));
  }
  return sum;
}

CaseworkCount count_lion_k(Sign sign) {
  CaseworkCount sum;
  for (const ConvexFunction& k : {ConvexFunction{.k = Convex::l1}, ConvexFunction{.k = Convex::huber, .e = 0.5}}) {
    add(sum, count([&k, sign](double y, double g) {
          double z = -g;
          subgradient(k, std::span<double>(&z, 1));
          return Both{sign == Sign::as_printed ? -z : z, z * y <= 0 ? y : 0.0};
        }));
  }
  return sum;
}

}  // namespace cautious::lab::fixedpoint
