// The paper's toy experiment (Figures 2 and 3) on any problem: some arms from one start, and where they end: on the minimisers,
// on their Pareto front, in AdamW's box. Unless arms are given they are Adam, AdamW and Adam + CWD with the same learning rate,
// betas and eps, and Muon's three where the problem is one of matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <cautious/schedule.h>

#include "lab/problem/front.h"
#include "lab/problem/pareto.h"
#include "lab/problem/problem.h"
#include "lab/toy/arm.h"

namespace cautious::lab {

// The defaults make all arms settle and the box |x| <= 1 / weight_decay = 2 keep clear of the minimisers of circle and
// parabola. beta2 = 0.95 as in language models: with 0.999 AdamW needs many times the steps to come to rest.
struct ToyOptions {
  double lr = 0.01;
  double weight_decay = 0.5;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  std::int64_t steps = 4000;
  ScheduleKind schedule = ScheduleKind::cosine;  // down to 0 unless constant
  std::optional<Point> start = {};               // the problem's own unless set
  std::vector<ToyArm> arms = {};                 // the usual ones if empty
};

inline constexpr Range kToySteps{1, 1e6, false, false};
inline constexpr Range kToyPath{1, 4e6, false, false};  // steps times variables: every point is kept
inline constexpr Range kToyStart{-1e6, 1e6, false, false};

// An end point counts as on a set within kOn of it. While the learning rate is high, cautious decay chatters about the curve;
// an iterate counts as arrived within kNear.
inline constexpr double kOn = 1e-3;
inline constexpr double kNear = 0.05;

struct ToyRun {
  ToyArm arm;
  std::vector<Point> path;  // the start and the point after each step
  double f = 0;
  bool at_rest = false;
  bool minimum = false;                 // the nearest stationary point is a minimiser: no curvature there is negative
  std::optional<double> to_minimisers;  // to the nearest stationary point; nothing: none was found
  std::optional<Pareto> pareto;         // of the nearest minimiser
  std::optional<double> to_front, to_local_front;  // problems of two variables only
  double to_box = 0;
  std::optional<std::int64_t> arrival;  // the step after which it stays within kNear of the front; two variables only
  double slide = 0;                     // distance between the point at arrival and the end

  const Point& end() const { return path.back(); }
};

struct ToyStudy {
  Problem problem;
  ToyOptions options;
  double box = 0;                      // half side 1 / weight_decay
  double least_in_box = 0;             // least f found there: what AdamW should reach according to the paper
  double lowest = 0;                   // least f known: the problem's, or that of the paths where it is lower
  double view_low = 0, view_high = 1;  // the problem's view, widened to the paths
  std::optional<FrontTrace> trace;     // of a problem of two variables, in that view
  std::vector<ToyRun> runs;
};

// Throws an Error(Fault::usage) that names the value and the valid range; so does run_toy.
void check(const Problem& problem, const ToyOptions& options);

// `alive` is called now and then and may throw to stop.
ToyStudy run_toy(const Problem& problem, const ToyOptions& options, const std::function<void()>& alive = {});

// One arm's points under that schedule: path[0] is the start.
std::vector<Point> toy_path(const Problem& problem, const ToyArm& arm, const ToyOptions& options);

// Distance to the box |x_i| <= half_side; 0 inside.
double to_box(double half_side, PointView x);

double distance(PointView a, PointView b);

}  // namespace cautious::lab
