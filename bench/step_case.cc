#include "bench/step_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace cautious::bench {
namespace {

Optimizer make_optimizer(const StepCase& c) {
  Recipe ours = recipe(c.optimizer);
  set(ours, "decay", c.decay);
  Options options;
  options.threads = c.threads;
  options.norms = c.norms;
  options.rounding = Rounding::stochastic;
  return Optimizer(ours, options);
}

// Deterministic values in about [-1, 1], cheap enough for 10^8 of them.
float value_at(std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>(i * 2654435761u) >> 8;
  return static_cast<float>(mixed) * 0x1p-23f - 1.0f;
}

}  // namespace

std::size_t StepCase::total() const { return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}); }

int StepCase::moments() const { return optimizer == "adamw" ? 2 : 1; }

double StepCase::bytes_per_param() const { return 3.0 * static_cast<double>(size_of(element)) + 8.0 * moments(); }

std::vector<std::size_t> gpt2_small() {
  constexpr std::size_t kWidth = 768, kVocabulary = 50257, kContext = 1024, kLayers = 12;
  std::vector<std::size_t> sizes{kVocabulary * kWidth, kContext * kWidth};
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (const std::size_t size : {kWidth, kWidth, 3 * kWidth * kWidth, 3 * kWidth, kWidth * kWidth, kWidth, kWidth, kWidth,
                                   4 * kWidth * kWidth, 4 * kWidth, 4 * kWidth * kWidth, kWidth}) {
      sizes.push_back(size);
    }
  }
  sizes.push_back(kWidth);
  sizes.push_back(kWidth);
  return sizes;
}

Data::Data(Element element, std::size_t total, Spacing spacing, float gradient)
    : buffers_(2, total * size_of(element), spacing) {
  const auto n = static_cast<std::ptrdiff_t>(total);
#pragma omp parallel for
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float x = value_at(at), g = gradient * value_at(at + 12345);
    if (element == Element::bf16) {
      buffers_.at<std::uint16_t>(0)[at] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16);
      buffers_.at<std::uint16_t>(1)[at] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, g) >> 16);
    } else {
      buffers_.at<float>(0)[at] = x;
      buffers_.at<float>(1)[at] = g;
    }
  }
}

StepRunner::StepRunner(const StepCase& c, const Data& data) : sizes_(c.sizes), optimizer_(make_optimizer(c)) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < c.sizes.size(); ++i) {
    const std::size_t offset = first * size_of(c.element);
    optimizer_.add({fmt::format("t{}", i),
                    {static_cast<std::int64_t>(c.sizes[i])},
                    c.element,
                    c.element,
                    static_cast<std::byte*>(data.x()) + offset,
                    static_cast<const std::byte*>(data.g()) + offset});
    first += c.sizes[i];
  }
}

void StepRunner::set_moments(float value) {
  for (std::size_t i = 0; i < optimizer_.size(); ++i) {
    for (const StateTensor& state : optimizer_.state(i)) {
      if (state.type == "F32") std::fill_n(static_cast<float*>(state.data), sizes_[i], value);
    }
  }
}

LimitRunner::LimitRunner(const StepCase& c)
    : wide_(c.element == Element::bf16 ? 2 : 4, c.total() * 4, Spacing::staggered),
      narrow_(c.element == Element::bf16 ? 2 : 0, c.total() * 2, Spacing::staggered),
      threads_(c.threads) {
  const bool narrow = c.element == Element::bf16;
  traffic_.n = c.total();
  traffic_.m = wide_.at<float>(0);
  if (c.moments() == 2) traffic_.v = wide_.at<float>(1);
  if (narrow) {
    traffic_.x16 = narrow_.at<std::uint16_t>(0);
    traffic_.g16 = narrow_.at<std::uint16_t>(1);
  } else {
    traffic_.x = wide_.at<float>(2);
    traffic_.g = wide_.at<float>(3);
  }
  for (std::size_t b = 0; b < (narrow ? 2u : 4u); ++b) std::fill_n(wide_.at<float>(b), traffic_.n, 1.0f);
  for (std::size_t b = 0; b < (narrow ? 2u : 0u); ++b) std::fill_n(narrow_.at<std::uint16_t>(b), traffic_.n, std::uint16_t{1});
}

}  // namespace cautious::bench
