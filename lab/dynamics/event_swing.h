// How far the indicators of switches swing about 0 between their sign changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "lab/vector.h"

namespace cautious::lab {

class Swings {
 public:
  explicit Swings(std::size_t switches) : now_(switches, 0), last_(switches, 0), crossing_(switches, 0) {}

  void see(PointView q) {
    for (std::size_t i = 0; i < q.size(); ++i) now_[i] = std::max(now_[i], std::abs(q[i]));
  }
  // Switch i changed its side; `event` counts from 1.
  void cross(std::size_t i, std::size_t event) {
    last_[i] = now_[i];
    now_[i] = 0;
    crossing_[i] = event;
  }
  // Largest |q_i| since the sign change before the last.
  double size(std::size_t i) const { return std::max(now_[i], last_[i]); }
  // Whether it changed its side in the last few events, a few for each switch.
  bool is_lively(std::size_t i, std::size_t events) const {
    return crossing_[i] > 0 && events - crossing_[i] < 20 * crossing_.size();
  }

 private:
  Point now_, last_;
  std::vector<std::size_t> crossing_;
};

}  // namespace cautious::lab
