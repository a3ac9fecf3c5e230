// What the figures of left sides and bounds share.
#pragma once

#include <string>
#include <vector>

#include "lab/bound/bound_sweep.h"
#include "report/chart.h"

namespace cautious::lab {

// eps = 1: the bound is least loose about there.
inline constexpr BoundSetting kUsualSetting{.eta = 0.01, .eps = 1};

// No momentum and a small eps: the update is little more than the sign of one gradient, which noise can hide.
inline constexpr BoundSetting kSignSetting{.eta = 0.03, .beta1 = 0, .beta2 = 0, .eps = 0.01};

struct NamedCurve {
  std::string name;
  BoundCurve curve;
};

// Both axes logarithmic.
report::LineChart bound_chart(std::string title, std::string x_label, std::string description);

// Left sides with their intervals, then the paper's bound for each, then sharper_bound() for the first.
void add_curves(report::LineChart& chart, const std::vector<NamedCurve>& curves);

// first, first * factor, ... up to last.
std::vector<std::size_t> powers(std::size_t first, std::size_t last, std::size_t factor);

}  // namespace cautious::lab
