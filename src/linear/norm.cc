#include "linear/norm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cautious::linear {
namespace {

// Eight sums in a fixed order: vectorizable, and the same bits everywhere.
template <class T>
double sum_of_squares(std::span<const T> z, double scale) {
  std::array<double, 8> lanes{};
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double entry = z[i] * scale;
    lanes[i % 8] += entry * entry;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace

template <class T>
double largest(std::span<const T> z) {
  T most = 0;
  for (const T entry : z) most = std::abs(entry) > most ? std::abs(entry) : most;
  return most;
}

// Entries are scaled by a power of two, exactly, if the plain sum leaves the range where it is accurate.
template <class T>
double norm(std::span<const T> z) {
  const double sum = sum_of_squares(z, 1);
  const bool accurate = sum > 1e-250 && sum < 1e300;
  if (accurate || std::isnan(sum)) return std::sqrt(sum);
  const double most = largest(z);
  if (most == 0 || std::isinf(most)) return most;
  const int exponent = std::clamp(-std::ilogb(most), -1000, 1000);
  return std::ldexp(std::sqrt(sum_of_squares(z, std::ldexp(1.0, exponent))), -exponent);
}

template <class T>
Size into_range(std::span<T> matrix) {
  constexpr double kLow = sizeof(T) == 4 ? 1e-12 : 1e-100;
  const double size = norm(std::span<const T>(matrix));
  if (size == 0 || std::isnan(size) || (size >= kLow && size <= 1 / kLow)) return {size, 1};
  const double most = largest(std::span<const T>(matrix));  // finite where the norm of finite entries is not
  if (std::isinf(most)) return {most, 1};
  const int exponent = std::clamp(-std::ilogb(most), -1000, 1000);
  for (T& entry : matrix) entry = std::ldexp(entry, exponent);
  return {norm(std::span<const T>(matrix)), std::ldexp(1.0, exponent)};
}

template double largest(std::span<const float>);
template double largest(std::span<const double>);
template double norm(std::span<const float>);
template double norm(std::span<const double>);
template Size into_range(std::span<float>);
template Size into_range(std::span<double>);

}  // namespace cautious::linear
