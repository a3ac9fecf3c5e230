// Where flows end: whether momentum and gradient vanish, whether the end is on the local Pareto front, and whether two limits
// of small steps agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"
#include "lab/problem/minimisers.h"
#include "lab/problem/problem.h"
#include "report/table.h"

namespace cautious::lab {

// Do momentum and gradient vanish along a trajectory? That they fall is no proof: a trajectory that tends to a limit above 0
// falls as well. What is not below kVanished is followed on, three times for as long as it has taken so far; it stays if the
// last of these changes nothing, and is undecided if it still falls.

inline constexpr double kVanished = 1e-2;  // of |g| at the start

enum class Fade { vanished, stays, undecided };

struct Fading {
  double left = 0;    // largest |g| + |m| in the last quarter of the time, over |g| at the start
  double before = 0;  // the same when half of the time was over; 0 if it was not followed on
  bool cut = false;   // the solver gave up before the time was over
  Fade fade() const;
};

// `trajectory` is continued while it has not vanished.
Fading follow_on(const System& system, const Problem& problem, const Trajectory& trajectory, const FlowOptions& options);

struct FadeCount {
  std::size_t trajectories = 0, vanished = 0, stays = 0, undecided = 0;
  std::size_t longer = 0;  // of the vanished: followed on
  double left = 0;         // the largest of those that have not vanished
  void add(const Fading& fading);
};

// SGDM with decoupled decay in place of CWD, whose gradient does not vanish: what fade() says, against what is left at a much
// later time.
struct FadeControl {
  FadeCount count;
  std::size_t truly = 0;    // vanish in truth
  std::size_t wrongly = 0;  // called vanished and do not
};
FadeControl fade_control(std::uint64_t seed, std::size_t trajectories, double t_end);

// Does the flow of SGD + CWD end on the local Pareto front of the minimisers? docs/theory.md has the proof of what is known:
// no accumulation point is strictly beaten. Here are its two alternatives as linear programs.

// How fast all |x_i| that are not 0 can shrink at once along the tangent space while the others stay 0: the largest t with
// sgn(x_i) v_i <= -t for a tangent v with entries of size 1. Above 0: strictly beaten. Coordinates up to `zero` count as 0.
double strict_shrinkage(const Stationary& at, double zero = 0);

// The alternative (Stiemke, Motzkin): how far a normal w of the manifold can be in the orthant of x, w_i x_i >= 0 where x_i is
// not 0. Above 0 exactly where strict_shrinkage() is 0.
double normal_in_orthant(const Stationary& at, double zero = 0);

// Whether the manifold crosses the plane of the coordinates that are 0: no normal has entries there alone.
bool is_transversal(const Stationary& at, double zero);

inline constexpr double kStrictly = 1e-6;  // of both

// Adam + CWD in two limits of small steps; see limits.cc.

struct LimitRow {
  double lr = 0;
  double from_205 = 0, from_250 = 0;  // where on the circle it ends, in degrees
};

struct AdamLimits {
  std::vector<LimitRow> fixed;    // betas 0.9 and 0.99
  std::vector<LimitRow> flowing;  // betas 1 - lr
};

AdamLimits adam_limits(double lambda, double eps);

// Whether it moved towards 225 degrees, where |x| = |y|, from both starts; or away from there.
bool toward_balance(const LimitRow& row);
bool from_balance(const LimitRow& row);

report::Table limits_table(const AdamLimits& limits);

}  // namespace cautious::lab
