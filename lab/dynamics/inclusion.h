// Differential inclusions z' in F(t, z) with switches, and their solutions in the sense of Filippov.
//
// Switch i is on side +1 where its indicator q_i > 0 and on side -1 where q_i < 0; between the switches F is smooth. Where q_i
// changes sign the time is located and the side changes. Where a trajectory cannot leave the surfaces q_i = 0 of some switches
// to either side it slides on them: there the sides are selectors in [-1, 1], chosen so that it stays.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "lab/numbers.h"

namespace cautious::lab {

struct Inclusion {
  std::size_t size = 0;      // of z
  std::size_t switches = 0;  // d

  // z' with these sides in [-1, 1]; affine in each of them.
  std::function<void(double t, PointView z, PointView side, std::span<double> dz)> field;
  std::function<void(PointView z, std::span<double> q)> indicator;
  // What must stay 0, with q, for a trajectory to slide: the gradient of f. For gradient flow that is q itself; with momentum q
  // is m, whose rate does not feel the sides, and the gradient is what they can hold.
  std::function<void(PointView z, std::span<double> p)> drive;
  // Jacobian of the drive times dz.
  std::function<void(PointView z, PointView dz, std::span<double> dp)> drive_rate;
  // Sets what a sliding switch holds at 0 (its momentum) to 0.
  std::function<void(std::span<double> z, const std::vector<bool>& sliding)> settle;
};

struct FlowOptions {
  double t_begin = 0, t_end = 1;
  double relative = 1e-8, absolute = 1e-10;  // error per step
  double slide_within = 1e-7;  // a switch may slide where |q_i| and |p_i| are below this, or q_i swings about 0 within it
  bool may_slide = true;       // otherwise the trajectory ends where it would begin to slide
  std::size_t most_events = 200000, most_steps = 5000000;
};

struct FlowPoint {
  double t = 0;
  Point z;
  Point side;  // used from here on
  std::vector<bool> sliding;
};

enum class FlowEnd { time, slide, events };  // t_end; may_slide was false; most_events or most_steps

struct Trajectory {
  std::vector<FlowPoint> points;  // after every accepted step and event; an event appears twice, before and after
  std::size_t steps = 0, rejected = 0, events = 0;
  FlowEnd end{};
};

Trajectory flow(const Inclusion& inclusion, Point z, const FlowOptions& options);

// Sides that keep the sliding switches on their surfaces at z; see the .cc for the choice where there are many. Entries of
// switches that do not slide stay as given.
Point sliding_sides(const Inclusion& inclusion, double t, PointView z, Point side, const std::vector<bool>& sliding);

}  // namespace cautious::lab
