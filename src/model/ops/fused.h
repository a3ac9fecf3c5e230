// Shared by the fused operations: which tensors they take, one parallel loop with a single-threaded BLAS inside, and its
// memory.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <cautious/error.h>

#include "model/ops/fast_math.h"

namespace cautious::model::ops {

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
    throw Error(Fault::usage, std::string(operation) + ": a gradient of the gradient needs Path::plain");
}

// job(i) for i in [0, count), in any order, on libtorch's threads; products of the BLAS inside stay on their thread. Jobs of
// unequal size are best given largest first.
template <class Job>
void parallel(std::int64_t count, const Job& job) {
  if (count <= 0) return;
  const int threads = at::in_parallel_region() ? 1 : static_cast<int>(std::min<std::int64_t>(count, at::get_num_threads()));
  const int saved = omp_get_max_threads();  // OpenBLAS and BLIS ask the calling thread for it
  std::exception_ptr error;
#pragma omp parallel num_threads(threads)
  {
    omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < count; ++i) {
      try {
        job(i);
      } catch (...) {
#pragma omp critical(cautious_ops_error)
        error = std::current_exception();
      }
    }
  }
  omp_set_num_threads(saved);
  if (error) std::rethrow_exception(error);
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

}  // namespace cautious::model::ops
