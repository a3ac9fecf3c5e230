// The convex functions of Lion-K. Separable subgradients are computed in the type of z, sums in double. NaN stays NaN, -0 stays
// a zero, and no intermediate value overflows or underflows where the result does not.
#include <cautious/rules/lion_k.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include <cautious/detail/scalar.h>
#include <cautious/error.h>

#include "linear/norm.h"

namespace cautious {
namespace {

using linear::largest;
using linear::norm;
using portable::abs;
using portable::sign;

// sum (|z| / most)^p, between 1 and n.
template <class T>
double sum_of_powers(std::span<const T> z, double p, double most) {
  double sum = 0;
  for (const T entry : z) sum += std::pow(std::abs(static_cast<double>(entry)) / most, p);
  return sum;
}

double lp_norm(std::span<const double> z, double p) {
  const double most = largest(z);
  return most == 0 ? norm(z) : most * std::pow(sum_of_powers(z, p, most), 1 / p);
}

// How many entries topk keeps.
std::size_t kept(double fraction, std::size_t n) {
  return std::min(n, static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(n))));
}

// |z| in descending order as far as the k-th; NaN counts as infinite.
template <class T>
std::vector<T> magnitudes(std::span<const T> z, std::size_t k) {
  std::vector<T> sizes(z.size());
  std::transform(z.begin(), z.end(), sizes.begin(),
                 [](T entry) { return entry == entry ? abs(entry) : std::numeric_limits<T>::infinity(); });
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k - 1), sizes.end(), std::greater<>{});
  return sizes;
}

template <class T>
void to_l2(std::span<T> z) {
  const double length = norm(std::span<const T>(z));
  if (length == 0) return;
  const T inverse = static_cast<T>(1 / length);
  const bool representable = std::isfinite(inverse);
  for (T& entry : z) entry = representable ? entry * inverse : static_cast<T>(entry / length);
}

template <class T>
void to_lp(std::span<T> z, double p) {
  const double most = largest(std::span<const T>(z));
  if (most == 0) return;
  const double root = std::pow(sum_of_powers(std::span<const T>(z), p, most), 1 / p);
  for (T& entry : z) {
    const double part = std::abs(static_cast<double>(entry)) / most / root;
    entry = static_cast<T>(static_cast<double>(sign(entry)) * std::pow(part, p - 1));
  }
}

template <class T>
void to_topk(std::span<T> z, double fraction) {
  const std::size_t k = kept(fraction, z.size());
  T least = std::numeric_limits<T>::infinity();
  std::size_t ties = 0;
  if (k > 0) {
    const std::vector<T> sizes = magnitudes(std::span<const T>(z), k);
    least = sizes[k - 1];
    ties = static_cast<std::size_t>(std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k), least));
  }
  for (T& entry : z) {
    if (entry != entry) {
      ties -= ties > 0 && std::isinf(least);
      continue;
    }
    const bool tied = abs(entry) == least && ties > 0;
    ties -= tied;
    entry = abs(entry) > least || tied ? sign(entry) : T(0);
  }
}

// z / sqrt(z^2 + e^2); where a square would leave the range of T, the same in double by hypot.
template <class T>
T relativistic(T z, T e, double exact_e) {
  constexpr T low = sizeof(T) == 4 ? T(1e-15) : T(1e-140), high = sizeof(T) == 4 ? T(1e18) : T(1e150);
  const T length = portable::sqrt(portable::fma(z, z, e * e));
  if (length > low && length < high) return z / length;
  return static_cast<T>(static_cast<double>(z) / std::hypot(static_cast<double>(z), exact_e));
}

[[noreturn]] void needs_matrix() {
  throw Error(Fault::usage, "K 'nuclear' needs the shape of a matrix: use polar() and nuclear_norm()");
}

template <class T>
void to_subgradient(const ConvexFunction& f, std::span<T> z) {
  const T e = std::max(static_cast<T>(f.e), std::numeric_limits<T>::min());
  switch (f.k) {
    case Convex::l1:
      for (T& entry : z) entry = sign(entry);
      return;
    case Convex::l2:
      return to_l2(z);
    case Convex::lp:
      if (f.p == 1) return to_subgradient({.k = Convex::l1}, z);
      return f.p == 2 ? to_l2(z) : to_lp(z, f.p);
    case Convex::huber:
      for (T& entry : z) entry = std::clamp(entry / e, T(-1), T(1));
      return;
    case Convex::relativistic:
      for (T& entry : z) entry = relativistic(entry, e, f.e);
      return;
    case Convex::threshold:
      for (T& entry : z) entry = abs(entry) > e ? sign(entry) : entry == entry ? T(0) : entry;
      return;
    case Convex::topk:
      return to_topk(z, f.fraction);
    case Convex::nuclear:
      needs_matrix();
  }
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
  const std::size_t k = kept(f.fraction, z.size());
  if (k == 0 || std::isnan(sum([](double size) { return size; }))) return k == 0 ? 0 : std::nan("");
  const std::vector<double> sizes = magnitudes(z, k);
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k), 0.0);
}

void subgradient(const ConvexFunction& function, std::span<float> z) { to_subgradient(function, z); }
void subgradient(const ConvexFunction& function, std::span<double> z) { to_subgradient(function, z); }

}  // namespace cautious
