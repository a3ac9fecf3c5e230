// How a step is cut into work: tensors into chunks of fixed size (sums are added chunk by chunk, so bits do not depend on the
// number of threads), chunks into jobs that are worth a thread's while.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "optim/slot.h"

namespace cautious::optim {

struct Chunk {
  std::size_t slot, first, count;
};

struct Job {
  std::size_t first, last;  // chunks
};

struct Plan {
  std::vector<Chunk> chunks;
  std::vector<Job> jobs;
};

inline constexpr std::size_t kChunk = 16 * 1024;  // coordinates; a multiple of the tile

// Chunks of the slots for which `takes_part` is set.
Plan make_plan(std::span<const Slot> slots, std::span<const char> takes_part, int threads);

}  // namespace cautious::optim
