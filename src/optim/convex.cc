// The convex functions of Lion-K: their values, and their subgradients on spans. The formulas of the subgradients are in
// rules/lion_k.h.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <cautious/error.h>
#include <cautious/rules/lion_k.h>

#include "linear/norm.h"
#include "optim/shaping.h"

namespace cautious {
namespace {

using linear::norm;

double lp_norm(std::span<const double> z, double p) {
  const double most = linear::largest(z);
  if (most == 0) return norm(z);
  double sum = 0;  // between 1 and n
  for (const double entry : z) sum += std::pow(std::abs(entry) / most, p);
  return most * std::pow(sum, 1 / p);
}

[[noreturn]] void needs_matrix() {
  throw Error(Fault::usage, "K 'nuclear' needs the shape of a matrix: use polar() and nuclear_norm()");
}

double huber(double size, double e) { return size <= e ? size * (size / e) / 2 : size - e / 2; }

}  // namespace

bool is_separable(Convex k) {
  return k == Convex::l1 || k == Convex::huber || k == Convex::relativistic || k == Convex::threshold;
}

double value(const ConvexFunction& f, std::span<const double> z) {
  const auto sum = [&](auto term) {
    double total = 0;
    for (const double entry : z) total += term(std::abs(entry));
    return total;
  };
  switch (f.k) {
    case Convex::l1:
      return sum([](double size) { return size; });
    case Convex::l2:
      return norm(z);
    case Convex::lp:
      return f.p == 2 ? norm(z) : lp_norm(z, f.p);
    case Convex::huber:
      return sum([&](double size) { return huber(size, f.e); });
    case Convex::relativistic:
      return sum([&](double size) { return std::hypot(size, f.e); });
    case Convex::threshold:
      return sum([&](double size) { return size > f.e ? size - f.e : size <= f.e ? 0 : size; });
    case Convex::nuclear:
      needs_matrix();
    case Convex::topk:
      break;
  }
  const std::size_t k = portable::kept(f.fraction, z.size());
  if (k == 0 || std::isnan(sum([](double size) { return size; }))) return k == 0 ? 0 : std::nan("");
  const std::vector<double> sizes = portable::magnitudes(z, k);
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k), 0.0);
}

void subgradient(const ConvexFunction& function, std::span<float> z) {
  if (function.k == Convex::nuclear) needs_matrix();
  portable::Entries<float> all{z};
  portable::to_subgradient<float>(function, all);
}

void subgradient(const ConvexFunction& function, std::span<double> z) {
  if (function.k == Convex::nuclear) needs_matrix();
  portable::Entries<double> all{z};
  portable::to_subgradient<double>(function, all);
}

}  // namespace cautious
