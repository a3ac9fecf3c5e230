// One tensor of an optimizer: the caller's buffers, our state, and what the current step does with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "kernels/kernels.h"

namespace cautious::optim {

struct Slot {
  Parameter parameter;
  std::size_t count = 0;  // coordinates
  std::size_t group = 0;
  std::uint64_t name_hash = 0;
  std::int64_t t = 0;  // steps taken
  double density = 0;  // of the random decay

  int moments = 0;  // of the rule
  Element moment = Element::f32;
  bool whole_tensor = false;  // the direction or the decay needs all of u before any of x moves
  std::byte* moment_data[2] = {nullptr, nullptr};
  std::int16_t* low = nullptr;  // lower halves under split rounding
  std::vector<std::byte> x0;    // anchor, in the parameter's element type
  std::byte* u = nullptr;       // workspace of a whole-tensor direction, in the compute type
  bool has_state = false;       // moments, low and u are allocated
};

// f64 computes in f64, everything else in f32.
inline Element compute_element(const Slot& slot) {
  return slot.parameter.element == Element::f64 ? Element::f64 : Element::f32;
}

// What this step does with a slot, resolved before the first pass.
struct Move {
  const kernels::Prepared* rule = nullptr;
  double lr = 0, wd = 0;
  double g_scale = 1;     // of global-norm clipping
  double u_scale = 1;     // of update-RMS clipping
  std::size_t decay = 0;  // index in Decay of the mask that Algorithm 1 uses
  bool projects = false;  // selective projection instead of Algorithm 1; wd holds wd r
  kernels::Prepared mask = {};
  kernels::Stream chance, rounding;
};

}  // namespace cautious::optim
