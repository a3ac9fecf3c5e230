// The grid on CUDA: two kernels per launch, the first of them once per elementwise rule and decay. Compiled by nvcc into
// cautious::cuda, with flags that keep the arithmetic of docs/spec.md (cmake/cuda.cmake).
#include <string>

#include <cautious/error.h>

#include "kernels/grid.h"

namespace cautious::cuda {
namespace {

struct AllThreads {
  template <class Body>
  __device__ void operator()(Body body) const {
    body(threadIdx.x);
    __syncthreads();
  }
};

// One of each thread of the block. As bytes, since shared memory is never constructed.
__device__ kernels::Counted* own_memory() {
  __shared__ alignas(kernels::Counted) unsigned char bytes[kernels::kGridThreads * sizeof(kernels::Counted)];
  return reinterpret_cast<kernels::Counted*>(bytes);
}

template <class R, class D>
__global__ void __launch_bounds__(kernels::kGridThreads) move(kernels::Grid grid) {
  move_chunk<R, D>(grid, blockIdx.x, own_memory(), AllThreads{});
}

__global__ void __launch_bounds__(kernels::kGridThreads) report(kernels::Grid grid) {
  report_tensor(grid, blockIdx.x, own_memory(), AllThreads{});
}

void launch(const Rule& rule, const Decay& decay, const kernels::Grid& grid) {
  visit_on_grid(rule, decay, [&]<class R, class D>(const R&, const D&) {
    if (grid.block_count > 0) move<R, D><<<grid.block_count, kernels::kGridThreads>>>(grid);
  });
  report<<<grid.tensor_count, kernels::kGridThreads>>>(grid);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw Error(Fault::failure, std::string("the step could not be started on CUDA: ") + cudaGetErrorString(status));
}

}  // namespace
}  // namespace cautious::cuda

namespace cautious::kernels {
const GridDevice kCuda{&cuda::prepare_on_grid, &cuda::launch};
}
