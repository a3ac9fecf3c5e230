#include "lab/dynamics/dynamics_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lab/dynamics/dynamics_direction.h"

namespace cautious::lab {
namespace {

// Adam's bias correction is infinite at 0, and norms K have no gradient at m = 0.
constexpr double kBegin = 0.01;

// dH/dt by differences of H along the field. Nothing where the field changes within the step, or where a step that keeps all
// signs would drown in rounding; `scale` is what H was at first.
std::optional<double> numerical_rate(const System& system, const Problem& problem, const Inclusion& inclusion,
                                     const FlowPoint& point, double scale) {
  const Point& z = point.z;
  Point dz(z.size()), q(inclusion.switches), moved(z.size()), there(z.size());
  inclusion.field(point.t, z, point.side, dz);
  double step = 1e-3;
  for (std::size_t i = 0; i < z.size(); ++i) step = std::min(step, 1e-3 * std::abs(z[i]) / std::abs(dz[i]));
  if (!(step > 1e-9)) return {};
  const auto at = [&](double by) {
    for (std::size_t i = 0; i < z.size(); ++i) moved[i] = z[i] + by * dz[i];
    return lyapunov(system, problem, point.t + by, moved);
  };
  for (const double by : {-2 * step, 2 * step}) {
    at(by);
    inclusion.indicator(moved, q);
    for (std::size_t i = 0; i < q.size(); ++i) {
      if (q[i] * point.side[i] <= 0) return {};
    }
    inclusion.field(point.t + by, moved, point.side, there);
    if ((as_vector(PointView(there)) - as_vector(PointView(dz))).norm() > 0.1 * as_vector(PointView(dz)).norm()) return {};
  }
  const double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
  if (std::abs(near) < 1e-8 * std::abs(at(0)) + 1e-12 * scale) return {};
  return (8 * near - far) / (12 * step);
}

}  // namespace

double largest_rise(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity(), rise = 0;
  for (const double value : values) {
    least = std::min(least, value);
    rise = std::max(rise, value - least);
  }
  return rise;
}

Watched watch(const System& system, const Problem& problem, PointView x, const FlowOptions& options) {
  const Inclusion inclusion = inclusion_of(system, problem);
  Watched watched;
  watched.trajectory = flow(inclusion, state_at(system, problem, x, options.t_begin), options);
  const auto& points = watched.trajectory.points;
  for (const FlowPoint& point : points) watched.h.push_back(lyapunov(system, problem, point.t, point.z));
  const double fall = watched.h.front() - *std::min_element(watched.h.begin(), watched.h.end());
  watched.rise = largest_rise(watched.h) / std::max(fall, 1e-12 * std::abs(watched.h.front()));
  const StateView end = parts(system, points.back().z);
  const double first = as_vector(PointView(lab::gradient(problem, x))).norm();
  watched.gradient = as_vector(PointView(lab::gradient(problem, end.x))).norm() / first;
  watched.momentum = as_vector(end.m).norm() / first;
  return watched;
}

std::vector<double> rate_mismatches(const System& system, const Problem& problem, const Trajectory& trajectory) {
  const Inclusion inclusion = inclusion_of(system, problem);
  const auto& points = trajectory.points;
  const std::size_t stride = std::max<std::size_t>(1, points.size() / 100);
  const double scale = std::abs(lyapunov(system, problem, points.front().t, points.front().z));
  std::vector<double> mismatches;
  for (std::size_t n = 1; n < points.size(); n += stride) {
    const FlowPoint& point = points[n];
    if (std::find(point.sliding.begin(), point.sliding.end(), true) != point.sliding.end()) continue;
    if (const auto numerical = numerical_rate(system, problem, inclusion, point, scale)) {
      const double analytic = lyapunov_rate(system, problem, point.t, point.z, point.side);
      mismatches.push_back(std::abs(analytic - *numerical) / std::max(std::abs(analytic), std::abs(*numerical)));
    }
  }
  return mismatches;
}

System random_system(Random& random, System system) {
  system.lambda = random.uniform(kLeastLambda, kMostLambda);
  system.alpha = random.uniform(0.7, 1.5);
  system.beta = random.uniform(0.7, 1.5);
  system.gamma = random.uniform(0.7, 1.5);
  if (system.flow == Flow::adam) system.gamma = random.uniform(0.2, 4) * system.alpha;
  return system;
}

FlowOptions usual_options(double t_end) {
  FlowOptions options;
  options.t_begin = kBegin;
  options.t_end = t_end;
  options.relative = 1e-10;
  options.absolute = 1e-12;
  return options;
}

}  // namespace cautious::lab
