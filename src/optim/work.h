// The work of a step: one tensor of an optimizer (Slot), what this step does with it (Move), how all tensors are cut into
// chunks and jobs (Plan), and the threads that run the jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "kernels/kernels.h"

namespace cautious::optim {

// The caller's buffers and our state. What every step reads comes first: with many small tensors it decides about the time.
struct Slot {
  Parameter parameter;
  std::size_t count = 0;  // coordinates
  Slice own;              // those that this rank moves; moments and low begin at the first
  std::size_t group = 0;
  std::int64_t t = 0;  // steps taken
  std::byte* moment_data[2] = {nullptr, nullptr};
  std::int16_t* low = nullptr;  // lower halves under split rounding
  kernels::Stream rounding;     // random bits of stochastic rounding in this step
  int moments = 0;              // of the rule
  Element moment = Element::f32;
  bool whole_tensor = false;  // the direction or the decay needs all of u before any of x moves
  bool looks_first = false;   // the decay does
  bool random = false;        // the decay is
  bool split = false;         // has low
  bool has_state = false;     // moments, low and u are allocated
  std::byte* u = nullptr;     // workspace of a whole-tensor direction, in the compute type
  std::uint64_t name_hash = 0;
  Decay decay;                // the recipe's; the density may be its own
  std::vector<std::byte> x0;  // anchor, in the parameter's element type
  std::vector<Slice> slices;  // of each rank; known with the state
};

// f64 computes in f64, everything else in f32.
inline Element compute_element(const Slot& slot) {
  return slot.parameter.element == Element::f64 ? Element::f64 : Element::f32;
}

// What this step does with a slot, resolved before the first pass.
struct Move {
  const kernels::Prepared* rule = nullptr;
  double lr = 0, wd = 0;
  double g_scale = 1;        // of global-norm clipping
  double u_scale = 1;        // of update-RMS clipping
  std::size_t decay = 0;     // index in Decay of the mask that Algorithm 1 uses
  bool by_momentum = false;  // whose signs that mask compares
  bool projects = false;     // not Algorithm 1: a projection, wd holds wd r
  kernels::Prepared mask = {};
  kernels::Stream chance;
};

// Tensors are cut into chunks of fixed size (sums are added chunk by chunk, so bits do not depend on the number of threads),
// chunks are gathered into jobs that are worth a thread's while. All ranks have all chunks, and jobs of their own.
struct Chunk {
  std::size_t slot, first, count;
  int owner;
};

struct Job {
  std::size_t first, last;  // chunks
};

struct Plan {
  std::vector<Chunk> chunks;
  std::vector<Job> jobs;
};

inline constexpr std::size_t kChunk = 16 * 1024;  // coordinates; a multiple of the tile

// Chunks of the slots for which `takes_part` is set. A job is worked through by those who skip the chunks of other ranks.
Plan make_plan(std::span<const Slot> slots, std::span<const char> takes_part, int rank, int threads);

// Sets flush-to-zero and denormals-are-zero for the current thread and restores the caller's mode at the end of the scope.
// Moments of rows without gradient decay into denormals and would slow a step down threefold.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned long saved_;
};

// How many threads parallel() will use at most.
int thread_count(const Options& options);

// body(0) ... body(count - 1), each with denormals flushed: by the caller's parallel_for if there is one, else by OpenMP.
void parallel(const Options& options, std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace cautious::optim
