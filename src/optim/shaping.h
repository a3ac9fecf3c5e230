// Asks any rule whether and how it shapes its direction, and the words for all entries of a tile or tensor that it may use.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <cautious/rules.h>

#include "linear/norm.h"

namespace cautious {

namespace CAUTIOUS_ISA {

template <class T>
struct Entries {
  std::span<T> z;
};

template <class T, class Formula>
void each(Entries<T>& all, Formula formula) {
  for (T& entry : all.z) entry = formula(entry);
}

template <class T, class Term>
double total(const Entries<T>& all, Term term) {
  double sum = 0;
  for (const T entry : all.z) sum += term(entry);
  return sum;
}

// The largest |z|; NaN entries are passed over.
template <class T>
double largest(const Entries<T>& all) {
  return linear::largest(std::span<const T>(all.z));
}

template <class T>
double norm(const Entries<T>& all) {
  return linear::norm(std::span<const T>(all.z));
}

// How many of n entries a fraction is.
inline std::size_t kept(double fraction, std::size_t n) {
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

// Zero but for that fraction of the entries, the largest: ties to the lower index, and NaN stays.
template <class T>
void keep_largest(Entries<T>& all, double fraction) {
  const std::size_t k = kept(fraction, all.z.size());
  T least = std::numeric_limits<T>::infinity();
  std::size_t ties = 0;
  if (k > 0) {
    const std::vector<T> sizes = magnitudes(std::span<const T>(all.z), k);
    least = sizes[k - 1];
    ties = static_cast<std::size_t>(std::count(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(k), least));
  }
  for (T& entry : all.z) {
    if (entry != entry) {
      ties -= ties > 0 && std::isinf(least);
      continue;
    }
    const bool tied = abs(entry) == least && ties > 0;
    ties -= tied;
    if (!(abs(entry) > least || tied)) entry = 0;
  }
}

// z becomes u, for a rule that shapes tiles or tensors. Z is Entries<T>, or all of a tensor.
template <class T, class Z>
void shape_direction(const Rule& rule, Z& z) {
  std::visit(
      [&]<class R>(const R& r) {
        if constexpr (requires { shape<T>(r, z); }) shape<T>(r, z);
      },
      rule);
}

// What brings the RMS of u down to `most`, from the sum of u^2; a non-finite RMS is left to propagate.
template <class S>
S clip_factor(double most, S u2, double count) {
  const S rms = sqrt(u2 / count);
  return select(rms < __builtin_inf() && rms > most, most / rms, 1.0);
}

}  // namespace CAUTIOUS_ISA

namespace optim {

inline Shaping shaping_of(const Rule& rule) {
  return std::visit(
      []<class R>(const R& r) {
        if constexpr (requires { shaping(r); }) {
          return shaping(r);
        } else {
          return Shaping::none;
        }
      },
      rule);
}

// Of a rule that shapes matrices; null otherwise.
inline const Polar* polar_in(const Rule& rule) {
  if (shaping_of(rule) != Shaping::matrix) return nullptr;
  return std::visit(
      []<class R>(const R& r) -> const Polar* {
        if constexpr (requires { polar_of(r); }) {
          return &polar_of(r);
        } else {
          return nullptr;
        }
      },
      rule);
}

}  // namespace optim
}  // namespace cautious
