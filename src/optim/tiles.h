// Walking a chunk tile by tile: bring the tile's streams to the compute type, fill u, apply, store back. One rounding per
// coordinate and step, at the store.
#pragma once

#include "kernels/kernels.h"
#include "optim/work.h"

namespace cautious::optim {

// Makes `decay` ready as the mask of the move; one that looks at the whole tensor has to be replaced before stage 2.
void set_mask(const kernels::Kernels& kernels, const Slot& slot, const Decay& decay, Move& move);

// Both stages of one chunk; only for slots whose direction and decay are elementwise.
void fill_and_apply(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                    const Move& move, const Chunk& chunk, kernels::Counted& counted);

// Stage 1 alone: the chunk's part of slot.u.
void fill_only(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Move& move, const Chunk& chunk);

// Stage 2 alone, from slot.u.
void apply_only(const kernels::Kernels& kernels, const Slot& slot, const Options& options, const Move& move, const Chunk& chunk,
                kernels::Counted& counted);

// What whole-tensor decays and clipping need to know of a chunk, in the compute type's values and double sums.
struct Dots {
  double u2 = 0, ux = 0;           // |u|^2, <u, x>
  double g_away = 0;               // <g, x - x0>
  double away2 = 0, stepped2 = 0;  // |x - x0|^2, |x - lr u - x0|^2
};
Dots dots(const kernels::Kernels& kernels, const Slot& slot, const Move& move, const Chunk& chunk);

// Sum of squares of the chunk's gradient in double; adds its non-finite entries to `nonfinite`.
double survey_chunk(const kernels::Kernels& kernels, const Slot& slot, const Chunk& chunk, std::int64_t& nonfinite);

}  // namespace cautious::optim
