// |g| + |m| late in a trajectory, and the control that must not vanish.
#include "lab/dynamics/convergence.h"

#include <algorithm>

#include "lab/dynamics/dynamics.h"

namespace cautious::lab {
namespace {

constexpr double kLong = 400;      // nothing moves any more
constexpr double kPlateau = 0.95;  // of what was left in half of the time: it no longer falls

double size_of(const System& system, const Problem& problem, PointView z) {
  const StateView state = parts(system, z);
  const double momentum = system.flow == Flow::sgd ? 0 : as_vector(state.m).norm();
  return as_vector(PointView(gradient(problem, state.x))).norm() + momentum;
}

double left_of(const System& system, const Problem& problem, const Trajectory& trajectory) {
  const auto& points = trajectory.points;
  const double late = points.back().t - (points.back().t - points.front().t) / 4;
  double most = 0;
  for (const FlowPoint& point : points) {
    if (point.t >= late) most = std::max(most, size_of(system, problem, point.z));
  }
  return most;
}

}  // namespace

Fade Fading::fade() const {
  if (left < kVanished) return Fade::vanished;
  return before > 0 && left > kPlateau * before && !cut ? Fade::stays : Fade::undecided;
}

Fading follow_on(const System& system, const Problem& problem, const Trajectory& trajectory, const FlowOptions& options) {
  const double start =
      as_vector(PointView(gradient(problem, PointView(trajectory.points.front().z).first(problem.size())))).norm();
  Fading found{.left = left_of(system, problem, trajectory) / start};
  FlowOptions longer = options;
  longer.relative = 1e-7, longer.absolute = 1e-9;  // H is not watched here
  Point z = trajectory.points.back().z;
  longer.t_begin = trajectory.points.back().t;
  for (int round = 0; round < 3 && found.left >= kVanished; ++round) {
    longer.t_end = 2 * longer.t_begin;
    const Trajectory next = flow(inclusion_of(system, problem), z, longer);
    found = {.left = left_of(system, problem, next) / start, .before = found.left, .cut = next.end != FlowEnd::time};
    z = next.points.back().z;
    longer.t_begin = next.points.back().t;
  }
  return found;
}

void FadeCount::add(const Fading& fading) {
  ++trajectories;
  const Fade fade = fading.fade();
  vanished += fade == Fade::vanished;
  longer += fade == Fade::vanished && fading.before > 0;
  stays += fade == Fade::stays;
  undecided += fade == Fade::undecided;
  if (fade != Fade::vanished) left = std::max(left, fading.left);
}

FadeControl fade_control(std::uint64_t seed, std::size_t trajectories, double t_end) {
  FadeControl control;
  Random random(seed);
  for (std::size_t n = 0; n < trajectories; ++n) {
    const System system = random_system(random, {.flow = Flow::sgdm, .decay = FlowDecay::decoupled});
    const Problem problem = random_problem(random, n, 2 + random.below(5));
    const FlowOptions options = usual_options(t_end);
    const Fading found = follow_on(system, problem, watch(system, problem, problem.start, options).trajectory, options);
    control.count.add(found);
    const Trajectory longer = watch(system, problem, problem.start, usual_options(kLong)).trajectory;
    const double start = as_vector(PointView(gradient(problem, problem.start))).norm();
    const bool vanishes = size_of(system, problem, longer.points.back().z) / start < kVanished;
    control.truly += vanishes;
    control.wrongly += found.fade() == Fade::vanished && !vanishes;
  }
  return control;
}

}  // namespace cautious::lab
