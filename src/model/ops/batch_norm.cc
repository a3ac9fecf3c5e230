// Batch norm over channels-last memory, with the addition and the rectifier that follow it: two passes forward, for the
// statistics and for the result, and two backward. What is rectified away is seen from the input again, or from the outcome
// where something was added.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

// Few channels are taken several pixels at a time, so that loops are long enough to be worth their beginning: a `line` is so
// many pixels that it has at least kLine entries, and per channel there is one number for each of them.
constexpr std::int64_t kLine = 64, kLinesOfJob = 256;

struct Lines {
  std::int64_t channels, pixels, length;  // length: entries of a line

  Lines(std::int64_t c, std::int64_t n) : channels(c), pixels(n), length(c * std::max<std::int64_t>(1, kLine / c)) {}
  std::int64_t entries() const { return channels * pixels; }
  std::int64_t jobs() const { return (entries() + length * kLinesOfJob - 1) / (length * kLinesOfJob); }

  // body(first entry, entries of the line) for the lines of a job; the last line may be short.
  template <class Body>
  CAUTIOUS_INLINE void each(std::int64_t job, const Body& body) const {
    const std::int64_t begin = job * kLinesOfJob * length, end = std::min(entries(), begin + kLinesOfJob * length);
    for (std::int64_t at = begin; at < end; at += length) body(at, std::min(length, end - at));
  }

  // One number per channel as one per entry of a line.
  template <class T, class From>
  std::vector<T> repeated(const From* numbers) const {
    std::vector<T> all(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) all[static_cast<std::size_t>(i)] = static_cast<T>(numbers[i % channels]);
    return all;
  }
};

// Sums per entry of a line, `kinds` of them per job, to sums per channel; always in the same order.
std::vector<double> folded(const Lines& lines, const std::vector<double>& sums, std::int64_t kinds) {
  std::vector<double> total(static_cast<std::size_t>(kinds * lines.channels), 0.0);
  for (std::int64_t job = 0; job < lines.jobs(); ++job)
    for (std::int64_t kind = 0; kind < kinds; ++kind)
      for (std::int64_t i = 0; i < lines.length; ++i)
        total[kind * lines.channels + i % lines.channels] += sums[(job * kinds + kind) * lines.length + i];
  return total;
}

// Sums of entries and of their squares, both in f64: the squares of f32 are exact there.
template <class T>
CAUTIOUS_CLONES void statistics_of(const Lines& lines, std::int64_t job, const T* x, double* sums) {
  double* __restrict sum = sums, * __restrict squares = sums + lines.length;
  std::fill(sums, sums + 2 * lines.length, 0.0);
  lines.each(job, [&](std::int64_t at, std::int64_t count) {
    const T* __restrict line = x + at;
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = double(line[i]);
      sum[i] += value;
      squares[i] += value * value;
    }
  });
}

// What a pass over the entries needs of a channel, repeated along a line.
template <class T>
struct PerEntry {
  std::vector<T> mean, factor, bias;  // y = (x - mean) factor + bias
};

template <class T>
struct NormPass {
  const T *x, *added;  // added may be null
  T* y;
  bool relu;
};

template <class T>
CAUTIOUS_CLONES void normalize(const Lines& lines, std::int64_t job, const PerEntry<T>& by, const NormPass<T>& at) {
  const T* __restrict mean = by.mean.data(), * __restrict factor = by.factor.data(), * __restrict bias = by.bias.data();
  const T least = at.relu ? T(0) : -std::numeric_limits<T>::infinity();
  lines.each(job, [&](std::int64_t begin, std::int64_t count) {
    const T* __restrict x = at.x + begin, * __restrict added = at.added + (at.added == nullptr ? 0 : begin);
    T* __restrict y = at.y + begin;
    if (at.added == nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T made = (x[i] - mean[i]) * factor[i] + bias[i];
        y[i] = made < least ? least : made;
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const T made = (x[i] - mean[i]) * factor[i] + bias[i] + added[i];
        y[i] = made < least ? least : made;
      }
    }
  });
}

template <class T>
struct SlopePass {
  const T *x, *outcome, *gradient;  // outcome: null if nothing was added
  T *by_x, *by_added;               // by_added may be null
  bool relu;
};

// The gradient before the rectifier: `gradient` where the outcome is positive.
template <class T>
CAUTIOUS_INLINE T kept(T gradient, T outcome, bool relu) {
  return !relu || outcome > T(0) ? gradient : T(0);
}

// Sums of the gradient before the rectifier, and of its product with the normalized entries but for their factor; the gradient
// by what was added on the way.
template <class T>
CAUTIOUS_CLONES void slope_sums(const Lines& lines, std::int64_t job, const PerEntry<T>& by, const SlopePass<T>& at,
                                double* sums) {
  const T* __restrict mean = by.mean.data(), * __restrict factor = by.factor.data(), * __restrict bias = by.bias.data();
  double* __restrict sum = sums, * __restrict along = sums + lines.length;
  std::fill(sums, sums + 2 * lines.length, 0.0);
  lines.each(job, [&](std::int64_t begin, std::int64_t count) {
    const T* __restrict x = at.x + begin, * __restrict gradient = at.gradient + begin;
    if (at.outcome == nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        const T centered = x[i] - mean[i], slope = kept(gradient[i], centered * factor[i] + bias[i], at.relu);
        sum[i] += double(slope);
        along[i] += double(slope) * double(centered);
      }
    } else {
      const T* __restrict outcome = at.outcome + begin;
      T* __restrict by_added = at.by_added + begin;
      for (std::int64_t i = 0; i < count; ++i) {
        const T slope = kept(gradient[i], outcome[i], at.relu);
        by_added[i] = slope;
        sum[i] += double(slope);
        along[i] += double(slope) * double(x[i] - mean[i]);
      }
    }
  });
}

// by_x = factor slope + tilt (x - mean) + shift.
template <class T>
CAUTIOUS_CLONES void slopes_of(const Lines& lines, std::int64_t job, const PerEntry<T>& by, const std::vector<T>& tilts,
                               const std::vector<T>& shifts, const SlopePass<T>& at) {
  const T* __restrict mean = by.mean.data(), * __restrict factor = by.factor.data(), * __restrict bias = by.bias.data();
  const T* __restrict tilt = tilts.data(), * __restrict shift = shifts.data();
  lines.each(job, [&](std::int64_t begin, std::int64_t count) {
    const T* __restrict x = at.x + begin;
    T* __restrict by_x = at.by_x + begin;
    if (at.outcome == nullptr) {
      const T* __restrict gradient = at.gradient + begin;
      for (std::int64_t i = 0; i < count; ++i) {
        const T centered = x[i] - mean[i], slope = kept(gradient[i], centered * factor[i] + bias[i], at.relu);
        by_x[i] = slope * factor[i] + centered * tilt[i] + shift[i];
      }
    } else {
      const T* __restrict slope = at.by_added + begin;
      for (std::int64_t i = 0; i < count; ++i) by_x[i] = slope[i] * factor[i] + (x[i] - mean[i]) * tilt[i] + shift[i];
    }
  });
}

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

at::Tensor by_pixels(const at::Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }
at::Tensor made_like(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options().requires_grad(false).memory_format(at::MemoryFormat::ChannelsLast));
}
Lines lines_of(const at::Tensor& x) { return {x.size(1), x.numel() / x.size(1)}; }

// Means of the batch and 1 / deviation; moves the running statistics.
template <class T>
void batch_statistics(const Lines& lines, const at::Tensor& x, const BatchNorm& norm, T* mean, T* inverse) {
  std::vector<double> sums(static_cast<std::size_t>(lines.jobs() * 2 * lines.length));
  parallel(lines.jobs(),
           [&](std::int64_t job) { statistics_of<T>(lines, job, x.data_ptr<T>(), sums.data() + job * 2 * lines.length); });
  const std::vector<double> total = folded(lines, sums, 2);
  const auto count = static_cast<double>(lines.pixels);
  T *const running = norm.mean.data_ptr<T>(), *const variances = norm.variance.data_ptr<T>();
  for (std::int64_t c = 0; c < lines.channels; ++c) {
    const double center = total[c] / count, squares = std::max(0.0, total[lines.channels + c] - center * total[c]);
    const double unbiased = squares / std::max(1.0, count - 1);
    running[c] = static_cast<T>((1 - kBatchMomentum) * running[c] + kBatchMomentum * center);
    variances[c] = static_cast<T>((1 - kBatchMomentum) * variances[c] + kBatchMomentum * unbiased);
    mean[c] = static_cast<T>(center);
    inverse[c] = static_cast<T>(1 / std::sqrt(squares / count + kBatchEps));
  }
}

template <class T>
PerEntry<T> per_entry(const Lines& lines, const T* mean, const T* inverse, const at::Tensor& scale, const at::Tensor& bias) {
  std::vector<T> factor(static_cast<std::size_t>(lines.channels));
  for (std::int64_t c = 0; c < lines.channels; ++c) factor[c] = scale.data_ptr<T>()[c] * inverse[c];
  return {lines.repeated<T>(mean), lines.repeated<T>(factor.data()), lines.repeated<T>(bias.data_ptr<T>())};
}

template <class T>
at::Tensor normalized(const Lines& lines, const PerEntry<T>& by, const at::Tensor& x, const at::Tensor& added, Then then) {
  at::Tensor y = made_like(x);
  const NormPass<T> at{x.data_ptr<T>(), added.defined() ? added.data_ptr<T>() : nullptr, y.data_ptr<T>(), then == Then::relu};
  parallel(lines.jobs(), [&](std::int64_t job) { normalize<T>(lines, job, by, at); });
  return y;
}

// saved: x, scale, bias, means and inverses [2, C], the outcome if something was added.
template <class T>
variable_list batch_slopes(const variable_list& saved, const at::Tensor& gradient, Then then) {
  const at::Tensor &x = saved[0], &scale = saved[1], &outcome = saved[4];
  const Lines lines = lines_of(x);
  const std::int64_t channels = lines.channels;
  const T *const mean = saved[3].data_ptr<T>(), *const inverse = mean + channels;
  const PerEntry<T> by = per_entry(lines, mean, inverse, scale, saved[2]);
  const at::Tensor by_x = made_like(x), by_added = outcome.defined() ? made_like(x) : at::Tensor();
  const SlopePass<T> at{x.data_ptr<T>(),    outcome.defined() ? outcome.data_ptr<T>() : nullptr,  gradient.data_ptr<T>(),
                        by_x.data_ptr<T>(), outcome.defined() ? by_added.data_ptr<T>() : nullptr, then == Then::relu};
  std::vector<double> sums(static_cast<std::size_t>(lines.jobs() * 2 * lines.length));
  parallel(lines.jobs(), [&](std::int64_t job) { slope_sums<T>(lines, job, by, at, sums.data() + job * 2 * lines.length); });
  const std::vector<double> total = folded(lines, sums, 2);
  const at::Tensor both = at::empty({2, channels}, scale.options().requires_grad(false));
  std::vector<double> tilt(static_cast<std::size_t>(channels)), shift(tilt);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double one = double(inverse[c]), along = total[channels + c] * one, factor = double(scale.data_ptr<T>()[c]) * one;
    both.data_ptr<T>()[c] = static_cast<T>(along);
    both.data_ptr<T>()[channels + c] = static_cast<T>(total[c]);
    tilt[c] = -factor * one * along / static_cast<double>(lines.pixels);
    shift[c] = -factor * total[c] / static_cast<double>(lines.pixels);
  }
  const std::vector<T> tilts = lines.repeated<T>(tilt.data()), shifts = lines.repeated<T>(shift.data());
  parallel(lines.jobs(), [&](std::int64_t job) { slopes_of<T>(lines, job, by, tilts, shifts, at); });
  return {by_x, both.select(0, 0), both.select(0, 1), at::Tensor(), at::Tensor(), by_added, at::Tensor()};
}

struct BatchNormed : ::torch::autograd::Function<BatchNormed> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                            const at::Tensor& running_mean, const at::Tensor& running_variance,
                            const c10::optional<at::Tensor>& added, Then then) {
    const at::Tensor of_batch = at::empty({2, x.size(1)}, x.options());
    const Lines lines = lines_of(x);
    at::Tensor y;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "batch_norm", [&] {
      scalar_t *const mean = of_batch.data_ptr<scalar_t>(), *const inverse = mean + lines.channels;
      batch_statistics(lines, x, {scale, bias, running_mean, running_variance}, mean, inverse);
      y = normalized(lines, per_entry(lines, mean, inverse, scale, bias), x, added.value_or(at::Tensor()), then);
    });
    context->save_for_backward({x, scale, bias, of_batch, added ? y : at::Tensor()});
    context->saved_data["then"] = static_cast<std::int64_t>(then);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("batch_norm");
    const auto then = static_cast<Then>(context->saved_data["then"].toInt());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = by_pixels(incoming[0]);
    variable_list result;
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "batch_norm_backward",
                               [&] { result = batch_slopes<scalar_t>(saved, gradient, then); });
    return result;
  }
};

// With the running statistics; nothing to differentiate.
template <class T>
at::Tensor calmly_normalized(const at::Tensor& x, const BatchNorm& norm, const at::Tensor& added, Then then) {
  const Lines lines = lines_of(x);
  std::vector<T> inverse(static_cast<std::size_t>(lines.channels));
  for (std::int64_t c = 0; c < lines.channels; ++c)
    inverse[c] = static_cast<T>(1 / std::sqrt(double(norm.variance.data_ptr<T>()[c]) + kBatchEps));
  const PerEntry<T> by = per_entry(lines, norm.mean.data_ptr<T>(), inverse.data(), norm.scale, norm.bias);
  return normalized(lines, by, x, added, then);
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const BatchNorm& norm, const at::Tensor& added, Then then, bool training,
                      Path path) {
  const bool fits = x.dim() == 4 && x.numel() > 0 && norm.scale.dim() == 1 && norm.scale.size(0) == x.size(1) &&
                    norm.bias.sizes() == norm.scale.sizes() && norm.mean.sizes() == norm.scale.sizes() &&
                    norm.variance.sizes() == norm.scale.sizes() && (!added.defined() || added.sizes() == x.sizes());
  if (!fits) {
    throw Error(Fault::usage,
                fmt::format("batch_norm: x is [{}] and the scale [{}]; valid: [N, C, H, W] and [C], what is added like x",
                            fmt::join(x.sizes(), ", "), fmt::join(norm.scale.sizes(), ", ")));
  }
  const bool fused = path == Path::fused && can_fuse({x, norm.scale, norm.bias, norm.mean, norm.variance, added});
  const bool differentiated = at::GradMode::is_enabled() && (x.requires_grad() || norm.scale.requires_grad());
  if (!fused || (!training && differentiated)) return plain::batch_norm(x, norm, added, then, training);
  const at::Tensor pixels = by_pixels(x), more = added.defined() ? by_pixels(added) : added;
  if (training) {
    const c10::optional<at::Tensor> onto = more.defined() ? c10::make_optional(more) : c10::nullopt;
    return BatchNormed::apply(pixels, norm.scale, norm.bias, norm.mean, norm.variance, onto, then);
  }
  at::Tensor y;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "batch_norm", [&] { y = calmly_normalized<scalar_t>(pixels, norm, more, then); });
  return y;
}

}  // namespace cautious::model::ops
