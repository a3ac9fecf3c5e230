#include "report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace cautious::report {
namespace {

constexpr double kLargest = 1e300;
constexpr double kSlack = 1e-9;  // in steps: a tick at the very end counts
constexpr std::size_t kMostTicks = 1000;
constexpr double kLeastRange = 1e-11;  // of the larger end: below, a double does not count its steps
constexpr int kMostDecimals = 12;
constexpr double kReadingDigits = 1.8;  // of the span

// digit * 10^power without the error of a power that has no exact double.
double decimal(double digit, int power) {
  if (power < -300) return digit / 1e300 / std::pow(10.0, -power - 300);
  return power < 0 ? digit / std::pow(10.0, -power) : digit * std::pow(10.0, power);
}

std::vector<double> linear_ticks(double low, double high, std::size_t most) {
  const auto limit = static_cast<double>(most);
  const int first_power = std::max(static_cast<int>(std::floor(std::log10((high - low) / limit))) - 1, -300);
  for (int power = first_power;; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double step = decimal(digit, power);
      const double first = std::ceil(low / step - kSlack), last = std::floor(high / step + kSlack);
      if (last - first + 1 > limit) continue;
      std::vector<double> ticks;
      for (double k = first; k <= last; ++k) ticks.push_back(decimal(k * digit, power) + 0.0);
      return ticks;
    }
  }
}

std::vector<double> log_ticks(double low, double high, std::size_t most) {
  const double from = std::log10(low), to = std::log10(high);
  const int first = static_cast<int>(std::ceil(from - kSlack)), last = static_cast<int>(std::floor(to + kSlack));
  if (last - first < 2) {
    std::vector<double> ticks;
    for (int power = first - 1; power <= last; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double place = std::log10(digit) + power;
        if (place >= from - kSlack && place <= to + kSlack) ticks.push_back(decimal(digit, power));
      }
    }
    return ticks.size() >= 3 && ticks.size() <= most ? ticks : linear_ticks(low, high, most);
  }
  int stride = 1;
  const auto place = [&](int power) { return static_cast<int>(std::ceil(static_cast<double>(power) / stride)) * stride; };
  while ((last - place(first)) / stride + 1 > static_cast<int>(most)) ++stride;
  std::vector<double> ticks;
  for (int power = place(first); power <= last; power += stride) ticks.push_back(decimal(1, power));
  return ticks;
}

int decimals_for(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  for (int decimals = 0; decimals < kMostDecimals; ++decimals) {
    const double unit = std::pow(10.0, decimals);
    const auto exact = [&](double v) { return std::abs(std::round(v * unit) / unit - v) <= largest * 1e-13; };
    if (std::all_of(values.begin(), values.end(), exact)) return decimals;
  }
  return kMostDecimals;
}

// A true minus sign, and none before zero.
std::string plain_number(double value, int decimals) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool zero = digits.find_first_not_of("0.") == std::string::npos;
  return (value < 0 && !zero ? "−" : "") + digits;
}

std::string with_power(double value) {
  if (value == 0) return "0";
  int power = static_cast<int>(std::floor(std::log10(std::abs(value)) + kSlack));
  const double digits = power < -300 ? value * 1e300 / std::pow(10.0, power + 300) : value / std::pow(10.0, power);
  const std::string text = fmt::format("{:.4g}", std::abs(digits));
  return fmt::format("{}{}e{}", value < 0 ? "−" : "", text, power);
}

// In the notation that suits the largest of them.
std::vector<std::string> in_one_notation(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  const bool extreme = largest >= 1e9 || (largest < 0.999e-3 && largest > 0);
  const double unit = largest >= 1e6 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
  const std::string_view suffix = unit == 1e6 ? "M" : unit == 1e3 ? "k" : "";
  std::vector<double> shown;
  for (const double v : values) shown.push_back(v / unit);
  const int decimals = decimals_for(shown);
  std::vector<std::string> labels;
  for (const double v : shown) {
    labels.push_back(extreme              ? with_power(v * unit)
                     : v == 0 && unit > 1 ? "0"
                                          : fmt::format("{}{}", plain_number(v, decimals), suffix));
  }
  return labels;
}

}  // namespace

double scaled(double value, Scale scale) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(value) || std::abs(value) > kLargest) return kNone;
  if (scale == Scale::linear) return value;
  return value > 0 ? std::log10(value) : kNone;
}

void ChartExtent::include(double value) {
  if (std::isnan(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

ChartExtent widened(ChartExtent data, Scale scale, double part) {
  if (data.empty()) return {0, 1};
  const double size = std::max(std::abs(data.low), std::abs(data.high));
  const double least = scale == Scale::log ? 1e-9 : std::max(size * 1e-9, 1e-280);
  if (data.high - data.low <= least) {
    const double middle = data.low / 2 + data.high / 2;
    const double half = scale == Scale::log ? 0.5 : size > 1e-280 ? size / 10 : 1;
    return {middle - half, middle + half};
  }
  const double more = (data.high - data.low) * part;
  ChartExtent wide{data.low - more, data.high + more};
  if (scale == Scale::linear && data.low >= 0) wide.low = std::max(wide.low, 0.0);
  if (scale == Scale::linear && data.high <= 0) wide.high = std::min(wide.high, 0.0);
  return wide;
}

double ChartAxis::at(double scaled_value) const {
  const double part = (scaled_value - shown.low) / (shown.high - shown.low);
  return from + (to - from) * std::clamp(part, -10.0, 10.0);
}

ChartAxis make_axis(Scale scale, const ChartExtent& shown, std::size_t most) {
  ChartAxis axis{scale, shown, 0, 0, {}, {}};
  const auto value = [&](double end) {
    return scale == Scale::linear ? end : std::clamp(std::pow(10, end), 1 / kLargest, kLargest);
  };
  axis.ticks = axis_ticks(value(shown.low), value(shown.high), scale, most);
  axis.labels = tick_labels(axis.ticks, scale);
  return axis;
}

std::vector<double> minor_ticks(const ChartAxis& axis) {
  std::vector<double> minor;
  if (axis.scale != Scale::log || axis.ticks.size() < 2 || axis.ticks[1] / axis.ticks[0] < 9 ||
      axis.ticks[1] / axis.ticks[0] > 11) {
    return minor;
  }
  for (int power = static_cast<int>(std::floor(axis.shown.low)); power <= axis.shown.high; ++power) {
    for (int digit = 2; digit < 10; ++digit) {
      const double place = std::log10(digit) + power;
      if (place > axis.shown.low && place < axis.shown.high) minor.push_back(decimal(digit, power));
    }
  }
  return minor;
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks, Scale scale) {
  if (scale == Scale::linear || ticks.empty() || ticks.back() < 5 * ticks.front()) return in_one_notation(ticks);
  std::vector<std::string> labels;
  for (const double tick : ticks) labels.push_back(in_one_notation({tick}).front());
  return labels;
}

std::string reading(double value, double span) {
  const double size = std::max(std::abs(value), span);
  if (size >= 1e6 || size < 1e-3) return with_power(value);
  const double decimals = std::ceil(kReadingDigits - std::log10(span > 0 ? span : size));
  return plain_number(value, static_cast<int>(std::clamp<double>(decimals, 0, kMostDecimals)));
}

std::vector<double> axis_ticks(double low, double high, Scale scale, std::size_t most) {
  const bool drawable = !std::isnan(scaled(low, scale)) && !std::isnan(scaled(high, scale));
  if (!drawable || most == 0 || high - low <= std::max(std::abs(low), std::abs(high)) * kLeastRange) return {};
  most = std::min<std::size_t>(most, kMostTicks);
  return scale == Scale::log ? log_ticks(low, high, most) : linear_ticks(low, high, most);
}

}  // namespace cautious::report
