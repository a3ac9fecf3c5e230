#include "bench/step_case.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
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

Buffers::Buffers(std::size_t count, std::size_t bytes, Spacing spacing, Pages pages, std::size_t before) {
  constexpr std::size_t kStagger = (64 + 4) * 1024 + 256, kAlias = std::size_t{1} << 28;
  const std::size_t page = pages == Pages::huge ? std::size_t{1} << 21 : 4096;
  const std::size_t rounded = (bytes + 63) / 64 * 64, first = before * kStagger;
  const std::size_t step = spacing == Spacing::aliased ? (rounded + kAlias - 1) / kAlias * kAlias : rounded + kStagger;
  const std::size_t all = (first + step * count + page - 1) / page * page;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, all)));
  if (!memory_) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (pages == Pages::huge) madvise(memory_.get(), all, MADV_HUGEPAGE);
#endif
  for (std::size_t i = 0; i < count; ++i) starts_.push_back(memory_.get() + first + i * step);
}

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

Data::Data(const StepCase& c) : buffers_(2, c.total() * size_of(c.element), c.spacing, c.pages) {
  const auto n = static_cast<std::ptrdiff_t>(c.total());
#pragma omp parallel for
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float x = value_at(at), g = c.gradient * value_at(at + 12345);
    if (c.element == Element::bf16) {
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
    : parameters_(2, c.total() * size_of(c.element), Spacing::staggered, c.pages),
      moments_(static_cast<std::size_t>(c.moments()), c.total() * sizeof(float), Spacing::staggered, Pages::huge, 2),
      threads_(c.threads) {
  const std::size_t n = traffic_.n = c.total();
  if (c.element == Element::bf16) {
    traffic_.x16 = parameters_.at<std::uint16_t>(0);
    traffic_.g16 = parameters_.at<std::uint16_t>(1);
    for (std::size_t i = 0; i < 2; ++i) std::fill_n(parameters_.at<std::uint16_t>(i), n, std::uint16_t{1});
  } else {
    traffic_.x = parameters_.at<float>(0);
    traffic_.g = parameters_.at<float>(1);
    for (std::size_t i = 0; i < 2; ++i) std::fill_n(parameters_.at<float>(i), n, 1.0f);
  }
  traffic_.m = moments_.at<float>(0);
  std::fill_n(traffic_.m, n, 1.0f);
  if (c.moments() == 2) {
    traffic_.v = moments_.at<float>(1);
    std::fill_n(traffic_.v, n, 1.0f);
  }
}

}  // namespace cautious::bench
