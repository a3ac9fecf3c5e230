#include "lab/toy_objective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "recipe/names.h"

namespace cautious {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ToyPoint kCentre{3, 3};  // of the circle; the vertex of the parabola

// The least square of a continuous quantity that takes all values between low and high.
double least_square(double low, double high) { return low <= 0 && high >= 0 ? 0 : std::min(low * low, high * high); }

namespace circle {

double residual(ToyPoint p) { return (p.y - 3) * (p.y - 3) + (p.x - 3) * (p.x - 3) - 1; }

double value(ToyPoint p) { return residual(p) * residual(p); }

ToyPoint gradient(ToyPoint p) { return {4 * residual(p) * (p.x - 3), 4 * residual(p) * (p.y - 3)}; }

ToyPoint minimiser(double angle) { return {3 + std::cos(angle), 3 + std::sin(angle)}; }

double distance(ToyPoint p, ToyArc arc) {
  const double radius = cautious::distance(p, kCentre);
  double angle = std::atan2(p.y - 3, p.x - 3);
  while (angle < arc.from) angle += 2 * kPi;
  if (radius == 0 || angle <= arc.to) return std::abs(radius - 1);
  return std::min(cautious::distance(p, minimiser(arc.from)), cautious::distance(p, minimiser(arc.to)));
}

double least_in_box(double half_side) {
  const double nearest = std::max(0.0, 3 - half_side);
  const double farthest = 3 + half_side;
  return least_square(2 * nearest * nearest - 1, 2 * farthest * farthest - 1);
}

}  // namespace circle

namespace parabola {

double residual(ToyPoint p) { return p.y - 3 - (p.x - 3) * (p.x - 3); }

double value(ToyPoint p) { return residual(p) * residual(p); }

ToyPoint gradient(ToyPoint p) { return {-4 * residual(p) * (p.x - 3), 2 * residual(p)}; }

ToyPoint minimiser(double x) { return {x, 3 + (x - 3) * (x - 3)}; }

// Real roots of t^3 + p t + q, the largest and the smallest twice where there is one only.
std::array<double, 3> roots(double p, double q) {
  const double discriminant = q * q / 4 + p * p * p / 27;
  std::array<double, 3> found{};
  if (discriminant >= 0) {
    const double root = std::cbrt(-q / 2 - std::copysign(std::sqrt(discriminant), q));
    found.fill(root == 0 ? 0 : root - p / (3 * root));
  } else {
    const double scale = 2 * std::sqrt(-p / 3);
    const double angle = std::acos(std::clamp(3 * q / (p * scale), -1.0, 1.0)) / 3;
    for (int k = 0; k < 3; ++k) found[static_cast<std::size_t>(k)] = scale * std::cos(angle - 2 * kPi * k / 3);
  }
  for (double& t : found) {  // two steps of Newton's method give back the digits that cancellation took
    for (int step = 0; step < 2; ++step) {
      const double slope = 3 * t * t + p;
      if (slope != 0) t -= (t * t * t + p * t + q) / slope;
    }
  }
  return found;
}

// The nearest point (3 + t, 3 + t^2) has 2 t^3 + (1 - 2k) t = h, with (h, k) the point seen from the vertex, or is an end.
double distance(ToyPoint p, ToyArc arc) {
  const double h = p.x - 3, k = p.y - 3;
  double least = kInfinity;
  const auto consider = [&](double x) {
    if (std::isfinite(x)) least = std::min(least, cautious::distance(p, minimiser(x)));
  };
  consider(arc.from);
  consider(arc.to);
  for (const double t : roots((1 - 2 * k) / 2, -h / 2)) consider(std::clamp(3 + t, arc.from, arc.to));
  return least;
}

double least_in_box(double half_side) {
  const double nearest = std::max(0.0, 3 - half_side);
  const double farthest = 3 + half_side;
  return least_square(-half_side - 3 - farthest * farthest, half_side - 3 - nearest * nearest);
}

}  // namespace parabola

// On the circle the lower left quarter trades |x| for |y| and cannot be beaten; so does the upper right one, but only locally.
// On the parabola the part between the y axis and the vertex does; left of the axis |x| grows again.
constexpr std::array<ToyObjective, 2> kObjectives{{
    {"circle",
     "Circle",
     "((y − 3)² + (x − 3)² − 1)²",
     {1.4, 5.2},
     circle::value,
     circle::gradient,
     circle::minimiser,
     circle::distance,
     circle::least_in_box,
     {0, 2 * kPi},
     {kPi, 1.5 * kPi},
     ToyArc{0, 0.5 * kPi}},
    {"parabola",
     "Parabola",
     "(y − 3 − (x − 3)²)²",
     {5.4, 4.4},
     parabola::value,
     parabola::gradient,
     parabola::minimiser,
     parabola::distance,
     parabola::least_in_box,
     {-kInfinity, kInfinity},
     {0, 3},
     std::nullopt},
}};

}  // namespace

double distance(ToyPoint a, ToyPoint b) { return std::hypot(a.x - b.x, a.y - b.y); }

std::span<const ToyObjective> toy_objectives() { return kObjectives; }

const ToyObjective& toy_objective(std::string_view name) {
  constexpr auto names = std::array{kObjectives[0].name, kObjectives[1].name};
  return kObjectives[index_of_name("toy objective", name, names)];
}

double to_manifold(const ToyObjective& objective, ToyPoint at) { return objective.distance(at, objective.manifold); }

double to_front(const ToyObjective& objective, ToyPoint at) { return objective.distance(at, objective.front); }

double to_local_front(const ToyObjective& objective, ToyPoint at) {
  const double front = to_front(objective, at);
  return objective.local_front ? std::min(front, objective.distance(at, *objective.local_front)) : front;
}

double to_box(double half_side, ToyPoint at) {
  return std::hypot(std::max(0.0, std::abs(at.x) - half_side), std::max(0.0, std::abs(at.y) - half_side));
}

}  // namespace cautious
