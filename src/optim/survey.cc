// A look at all gradients before the step, for clipping and for the non-finite policies that must not touch anything.
#include "optim/parts.h"
#include "optim/threads.h"

namespace cautious {

void Optimizer::Parts::survey() {
  for (Tally& tally : report.tensors) tally = {};
  optim::parallel(options, plan.jobs.size(), [this](std::size_t j) {
    for (std::size_t c = plan.jobs[j].first; c < plan.jobs[j].last; ++c) {
      kernels::Counted fresh;
      fresh.g2 = optim::survey_chunk(*kernels, slots[plan.chunks[c].slot], plan.chunks[c], fresh.nonfinite);
      counted[c] = fresh;
    }
  });
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    Tally& tally = report.tensors[plan.chunks[c].slot];
    tally.g2 += counted[c].g2;
    tally.nonfinite += counted[c].nonfinite;
  }
}

}  // namespace cautious
