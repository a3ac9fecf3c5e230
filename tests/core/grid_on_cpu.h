// The grid of src/kernels/grid.h on the CPU: its blocks one after the other, the threads of a block in a loop between barriers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/grid.h"
#include "optim/work.h"

namespace grid_on_cpu {

namespace kernels = cautious::kernels;

// Every other block runs its threads backwards: no thread may rely on another that has not passed a barrier.
struct AllThreads {
  bool backwards;
  template <class Body>
  void operator()(Body body) const {
    for (std::uint32_t i = 0; i < kernels::kGridThreads; ++i) body(backwards ? kernels::kGridThreads - 1 - i : i);
  }
};

inline void launch(const cautious::Rule& rule, const cautious::Decay& decay, const kernels::Grid& grid) {
  const cautious::optim::FlushDenormals flush;
  std::vector<kernels::Counted> own(kernels::kGridThreads);
  cautious::portable::visit_on_grid(rule, decay, [&]<class R, class D>(const R&, const D&) {
    for (std::uint32_t b = 0; b < grid.block_count; ++b) {
      cautious::portable::move_chunk<R, D>(grid, b, own.data(), AllThreads{b % 2 == 1});
    }
  });
  for (std::uint32_t i = 0; i < grid.tensor_count; ++i) {
    cautious::portable::report_tensor(grid, i, own.data(), AllThreads{i % 2 == 1});
  }
}

inline constexpr kernels::GridDevice kCpu{&cautious::portable::prepare_on_grid, &launch};

}  // namespace grid_on_cpu
