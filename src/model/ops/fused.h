// Shared by the fused operations: loops compiled for two instruction sets, with exp and tanh that the compiler vectorizes in
// them; which tensors they take, and the plain operations for all others; one parallel loop with its scratch memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <cautious/error.h>

#include "model/ops/ops.h"

// Before a function or template in an unnamed namespace: it is compiled for AVX2 with FMA too, and the better one is taken when
// the program starts. What it calls must be CAUTIOUS_INLINE, or it stays as it is. (Sanitizers cannot start such functions.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CAUTIOUS_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CAUTIOUS_CLONES
#endif
#define CAUTIOUS_INLINE __attribute__((always_inline)) inline

namespace cautious::model::ops {

// Below 2 ulp. 0 below the logarithm of the smallest normal number, infinite from 88.38 on; NaN stays.
CAUTIOUS_INLINE float fast_exp(float x) {
  constexpr float low = -87.336544f, high = 89.0f, shift = 0x1.8p23f;
  const float inside = x < low ? low : (x > high ? high : x);
  const float moved = inside * 1.44269504f + shift;  // the nearest whole number is in the low bits
  const float whole = moved - shift;
  const float r = (inside - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(moved) + 127u) << 23);
  return x < low ? 0.0f : p * power;
}
CAUTIOUS_INLINE double fast_exp(double x) { return std::exp(x); }

// Below 7 ulp: a rational function on |x| < 7.905, beyond which it is 1 in f32.
CAUTIOUS_INLINE float fast_tanh(float x) {
  constexpr float limit = 7.90531110763549805f;
  const float t = x < -limit ? -limit : (x > limit ? limit : x);
  const float s = t * t;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return t * p / q;
}
CAUTIOUS_INLINE double fast_tanh(double x) { return std::tanh(x); }

// Below 5 ulp, 3e-7 in the end: a rational function fitted on |x| < 3.9192, beyond which it is 1 in f32.
CAUTIOUS_INLINE float fast_erf(float x) {
  constexpr float limit = 3.9192f;
  float t = x < -limit ? -limit : x;  // two steps, or the compiler does not vectorize
  t = t > limit ? limit : t;
  const float s = t * t;
  float p = 2.0507307e-6f;
  p = p * s + 2.8489035e-4f;
  p = p * s + 3.7645602e-3f;
  p = p * s + 5.2745599e-2f;
  p = p * s + 1.9037770e-1f;
  p = p * s + 1.1283791f;
  float q = 3.8098751e-5f;
  q = q * s + 1.1623369e-3f;
  q = q * s + 1.4967086e-2f;
  q = q * s + 1.1409783e-1f;
  q = q * s + 5.0205058e-1f;
  q = q * s + 1.0f;
  return t * p / q;
}
CAUTIOUS_INLINE double fast_erf(double x) { return std::erf(x); }

// Plain memory on the CPU, f32 or f64, all of one type. Undefined tensors do not count.
inline bool can_fuse(std::initializer_list<at::Tensor> tensors) {
  const at::Tensor* first = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided) return false;
    if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) return false;
    if (first && first->scalar_type() != tensor.scalar_type()) return false;
    first = &tensor;
  }
  return first;
}

// At the start of a backward that libtorch cannot differentiate: it would take the gradient for a constant.
inline void not_twice(const char* operation) {
  if (c10::GradMode::is_enabled())
    throw Error(Fault::usage,
                std::string(operation) + ": the fused operation has no second derivative; use Path::plain for it");
}

// job(i) for i in [0, count), in any order, on libtorch's threads. Jobs of unequal size are best given largest first.
template <class Job>
void parallel(std::int64_t count, const Job& job) {
  if (count <= 0) return;
  const int threads = at::in_parallel_region() ? 1 : static_cast<int>(std::min<std::int64_t>(count, at::get_num_threads()));
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      job(i);
    } catch (...) {
#pragma omp critical(cautious_ops_error)
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

// to[j] = the sum of sums[i * columns + j] over i, in f64 and in order, so that it does not depend on who made the sums.
template <class T>
void add_in_order(const T* sums, std::int64_t rows, std::int64_t columns, T* to) {
  std::vector<double> total(static_cast<std::size_t>(columns), 0.0);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < columns; ++j) total[j] += static_cast<double>(sums[row * columns + j]);
  std::transform(total.begin(), total.end(), to, [](double sum) { return static_cast<T>(sum); });
}

// Memory of this thread that is kept from call to call; the content is not. One per Tag.
template <class T, class Tag>
T* scratch(std::size_t count) {
  thread_local std::unique_ptr<T[]> memory;
  thread_local std::size_t size = 0;
  if (size < count) {
    memory.reset();
    size = 0;
    memory.reset(new T[count]);
    size = count;
  }
  return memory.get();
}

// Of batch norms, as everywhere.
constexpr double kBatchEps = 1e-5;

// The operations of ops.h in ATen operations, on any device and type; libtorch differentiates them. They check no shapes.
namespace plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps);
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias, double eps);
at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor batch_norm(const at::Tensor& x, const BatchNorm& norm, const at::Tensor& added, Then then, bool training);
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation);
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& starts,
                     const AttentionShape& shape);
at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap);

}  // namespace plain
}  // namespace cautious::model::ops
