// The optimizers of this experiment, and running one until it rests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cautious/recipe.h>
#include <cautious/schedule.h>

#include "lab/fixedpoint/fixedpoint_problem.h"

namespace cautious::lab::fixedpoint {

// An optimizer and the problem it is said to solve.
struct Arm {
  std::string name;
  Recipe recipe;
  Surrogate surrogate;
};

// Widths of huber and threshold, compared with gradients of size 1.
inline constexpr double kHuber = 0.5, kThreshold = 0.2;

// Of AdamW unless said otherwise: beta2 as in language models, eps far below every gradient that does not vanish.
inline constexpr double kEps = 1e-10;

// Plain weight decay: SGD, SGDM, AdamW, Lion, and Lion-K with l2 and huber.
std::vector<Arm> plain_arms(double weight_decay);

// The same with cautious weight decay; their problem is f.
std::vector<Arm> cautious_arms(double weight_decay);

// On a matrix of so many rows: Muon with exact factors, Lion-K with the nuclear norm, AdamW, SGD; Muon + CWD.
std::vector<Arm> matrix_arms(double weight_decay, Eigen::Index rows);

// Lion-K with K = sum max(|z| - e, 0), which is least wherever |z| <= e.
Arm threshold(double weight_decay);

Arm adamw(double weight_decay, double beta2 = 0.95, double eps = kEps);
Arm muon(double weight_decay, Eigen::Index rows, NewtonSchulz schedule = NewtonSchulz::exact);
// Its problem becomes f; of threshold, f + e |x|_1: where |g| <= e there is no update and x decays.
Arm with_cwd(Arm arm);

// The learning rate in units of the box: a step of a sign is lr / lambda, one of decay shrinks x by the part lr.
struct Pace {
  double lr = 0.01;
  std::int64_t steps = 20000;
  ScheduleKind kind = ScheduleKind::cosine;  // down to 0
};

// Called after each step with x in units of the box.
using Watch = std::function<void(std::int64_t step, PointView y)>;

// Where the arm ends, in units of the box.
Point rest(const Arm& arm, const Posed& problem, const Pace& pace, const Watch& watch = {});

}  // namespace cautious::lab::fixedpoint
