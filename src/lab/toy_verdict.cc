// The claims of the paper's caption, each set against the end points of a study.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/toy.h"

namespace cautious {
namespace {

// Below this a step no longer moves: the arm has come to rest, and its end says something about its limit.
constexpr double kRest = 1e-3;

bool at_rest(const ToyRun& run) {
  const std::size_t last = run.path.size() - 1;
  return distance(run.path[last - std::max<std::size_t>(1, last / 20)], run.end) <= kRest;
}

std::string restless(const ToyRun& run) { return at_rest(run) ? "" : ", not yet at rest"; }

std::string adam(const ToyRun& run) {
  if (run.to_manifold > kOn) return fmt::format("ends {:.2g} off the minimisers{}", run.to_manifold, restless(run));
  const bool front = run.to_front <= kOn;
  return fmt::format("ends on the minimisers (distance {:.1e}), {}{}", run.to_manifold,
                     front ? "here on their Pareto front" : fmt::format("{:.2g} from their Pareto front", run.to_front),
                     restless(run));
}

std::string adamw(const ToyStudy& study, const ToyRun& run) {
  if (!std::isfinite(study.box)) return adam(run) + "; without weight decay there is no box";
  const auto where = run.to_box <= kOn ? fmt::format("ends in the box |x|, |y| ≤ {:.3g}", study.box)
                                       : fmt::format("ends {:.2g} outside the box |x|, |y| ≤ {:.3g}", run.to_box, study.box);
  const auto off =
      run.to_manifold <= kOn ? std::string("on the minimisers") : fmt::format("{:.2g} off the minimisers", run.to_manifold);
  return fmt::format("{}, {}: f = {:.3g}, the least in the box is {:.3g}{}", where, off, run.f, study.least_in_box,
                     restless(run));
}

std::string cwd(const ToyRun& run) {
  if (run.to_manifold > kOn) return adam(run);
  const auto on = fmt::format("ends on the minimisers (distance {:.1e})", run.to_manifold);
  if (run.to_front <= kOn) {
    const auto moved = run.arrival && run.slide > kNear
                           ? fmt::format("; it came there in step {} and slid on along it by {:.2g}", *run.arrival, run.slide)
                           : std::string();
    return fmt::format("{} and on their Pareto front{}{}", on, moved, restless(run));
  }
  if (run.to_local_front <= kOn) {
    return fmt::format("{} where only near points do not beat it: on the paper's local front, {:.2g} from the global one{}", on,
                       run.to_front, restless(run));
  }
  return fmt::format("{} but {:.2g} from their Pareto front{}", on, run.to_front, restless(run));
}

}  // namespace

std::vector<std::string> verdict(const ToyStudy& study) {
  std::vector<std::string> sentences;
  for (const ToyRun& run : study.runs) {
    const auto words = run.arm == ToyArm::adam ? adam(run) : run.arm == ToyArm::adamw ? adamw(study, run) : cwd(run);
    sentences.push_back(fmt::format("{} {}", name_of(run.arm), words));
  }
  return sentences;
}

}  // namespace cautious
