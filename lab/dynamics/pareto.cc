// Why does the trajectory not stop on reaching the Pareto set? Equation (2) keeps the decay's selectors alone, since m goes to
// 0. But a sign-like update (Lion: sgn(m); Adam: m / sqrt(v), and v goes to 0 as well) does not go to 0 with m: across the
// manifold it switches too and has selectors of its own. At m = 0 all combinations of sides meet, so Filippov's set is a whole
// box and does not say which motion along the manifold is taken; following every switch does.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "lab/dynamics/convergence.h"
#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

constexpr double kMiddle = 3;  // of the circle, both coordinates; its radius is 1
constexpr double kPi = std::numbers::pi;
constexpr double kLambda = 0.5;
constexpr double kRest = 1e-4;           // a motion below this is rest
constexpr double kNear = 5 * kPi / 180;  // to where it reached the circle

double angle_of(PointView z) {
  const double angle = std::atan2(z[1] - kMiddle, z[0] - kMiddle);
  return angle < 0 ? angle + 2 * kPi : angle;
}

double degrees(double angle) { return angle * 180 / kPi; }

// Lion on the circle at this angle if both signs of m switch together, as they do for m along the normal n: u = tau sgn(n) and
// s = (1 - tau sgn(n x)) / 2 with the one tau in [-1, 1] that keeps x on the circle. Returns the rate of the angle.
double together_rate(double angle) {
  const double n[2] = {std::cos(angle), std::sin(angle)};
  const double x[2] = {kMiddle + n[0], kMiddle + n[1]};
  double with_tau = 0, without = 0;
  for (int i = 0; i < 2; ++i) {
    with_tau += std::abs(n[i]) + kLambda / 2 * std::abs(n[i] * x[i]);
    without += kLambda / 2 * n[i] * x[i];
  }
  const double tau = without / with_tau;
  double rate[2];
  for (int i = 0; i < 2; ++i) rate[i] = tau * sign(n[i]) - kLambda * (1 - tau * sign(n[i] * x[i])) / 2 * x[i];
  return -n[1] * rate[0] + n[0] * rate[1];
}

// A flow from a point a little off the front's arc.
struct Journey {
  std::string name;
  double start = 0, end = 0;  // angles
  double off = 0;             // distance of the end to the circle
  double late = 0;            // how far it is from its end, in angle, in the second half of the time
  std::size_t events = 0;
  report::ChartSeries series;
};

struct Traveller {
  std::string name;
  System system;
  bool follow_every_switch = false;  // to the end; otherwise it may slide
  double t_end = 40;
};

Journey journey(const Traveller& traveller, double start, std::size_t colour) {
  const Problem& circle = problem("circle");
  FlowOptions options = usual_options(traveller.t_end);
  options.slide_within = traveller.follow_every_switch ? 0 : 1e-6;
  options.most_events = 60000;
  if (traveller.follow_every_switch)
    options.relative = 1e-14, options.absolute = 1e-17;  // short steps, to miss no pair of switches
  const Point x = {kMiddle + 1.02 * std::cos(start), kMiddle + 1.02 * std::sin(start)};
  const Trajectory trajectory =
      flow(inclusion_of(traveller.system, circle), state_at(traveller.system, circle, x, options.t_begin), options);
  Journey result{
      .name = traveller.name, .start = start, .events = trajectory.events, .series = new_series(traveller.name, colour)};
  for (const FlowPoint& point : trajectory.points) {
    result.series.x.push_back(point.t);
    result.series.y.push_back(degrees(angle_of(point.z)));
  }
  const Point& end = trajectory.points.back().z;
  result.end = angle_of(end);
  for (const FlowPoint& point : trajectory.points) {
    if (point.t >= traveller.t_end / 2) result.late = std::max(result.late, std::abs(angle_of(point.z) - result.end));
  }
  result.off = std::abs(std::hypot(end[0] - kMiddle, end[1] - kMiddle) - 1);
  return result;
}

// Largest difference of the solver's sliding speed and together_rate on the front, relative.
double speed_mismatch() {
  const Problem& circle = problem("circle");
  const Inclusion inclusion = inclusion_of({.flow = Flow::lion_k, .lambda = kLambda}, circle);
  double most = 0;
  for (const double angle : {190.0, 200.0, 215.0, 240.0, 265.0}) {
    const double a = angle * kPi / 180;
    const Point z = {kMiddle + std::cos(a), kMiddle + std::sin(a), 0, 0};
    Point dz(4);
    inclusion.field(0, z, sliding_sides(inclusion, 0, z, {1, 1}, {true, true}), dz);
    const double speed = -std::sin(a) * dz[0] + std::cos(a) * dz[1];
    most = std::max(most, std::abs(speed / together_rate(a) - 1));
  }
  return most;
}

// Decoupled decay in place of the mask.
template <class Rests>
Mutation without_mask(Traveller traveller, const Rests& rests) {
  traveller.system.decay = FlowDecay::decoupled;
  const Journey low = journey(traveller, 205 * kPi / 180, 0), high = journey(traveller, 250 * kPi / 180, 0);
  return {traveller.name + " without the mask",
          fmt::format("from 205° to {:.1f}°, {:.1e} off the circle", degrees(low.end), low.off), !rests(low) || !rests(high)};
}

Claim limits_claim(const AdamLimits& limits, const std::string& mild, const std::string& sharp, const Journey& low,
                   const Journey& high) {
  const bool away = low.end < low.start && high.end > high.start;
  const bool differ =
      away && std::ranges::all_of(limits.fixed, toward_balance) && std::ranges::all_of(limits.flowing, from_balance);
  const std::string text =
      "Adam + CWD keeps moving along the Pareto set: in continuous time away from |x| = |y|, with fixed betas towards it, "
      "however small the learning rate; the limits lr to 0 and betas to 1 do not commute";
  const auto ends = [](const LimitRow& row) {
    return fmt::format("to {:.1f}° and {:.1f}° at {:g}", row.from_205, row.from_250, row.lr);
  };
  return {
      differ ? text : "Not in this run: " + text, "", Outcome::noted,
      fmt::format("|x| = |y| is at 225°; the flow with ε = 0.001 goes {}, with ε = 0.1, where √v soon counts less than ε, {}; "
                  "steps with betas 1 - lr go {}, with betas 0.9 and 0.99 {}",
                  sharp, mild, ends(limits.flowing.back()), ends(limits.fixed.back()))};
}

}  // namespace

Section pareto_section(const DynamicsOptions& options, const Progress& progress) {
  Section section =
      new_section("Why it does not stop on the Pareto set: in continuous time",
                  "Equation (2) keeps only the decay's selectors, because m tends to 0. For sign-like updates (Lion: u = "
                  "sgn(m); Adam: m/√v, where v tends to 0 too) u does not vanish with m: across the manifold it switches as "
                  "well and has selectors of its own, so on the Pareto set the motion need not be 0. At m = 0 every "
                  "combination of signs is near, so Filippov's set does not say which motion it is. Flows with CWD on the "
                  "circle, λ = 0.5, from 0.02 outside the front, the arc from 180° to 270°.",
                  options);
  const auto adam = [](double eps) { return System{.flow = Flow::adam, .lambda = kLambda, .eps = eps}; };
  const System lion{.flow = Flow::lion_k, .lambda = kLambda};
  const std::vector<Traveller> travellers = {{"SGD", {.flow = Flow::sgd, .lambda = kLambda}},
                                             {"SGDM", {.flow = Flow::sgdm, .lambda = kLambda}},
                                             {"Adam, ε = 0.1", adam(0.1)},
                                             {"Adam, ε = 0.001", adam(0.001)},
                                             {"Lion, every switch", lion, true, 12},
                                             {"Lion, signs together", lion}};
  report::Table table{.name = "dynamics_pareto",
                      .title = "Flows with CWD on the circle's front",
                      .head = {"flow", "from", "to", "from", "to", "distance from the circle"},
                      .rows = {},
                      .note =
                          "Every switch: all sign changes of m are followed, to time 12. Signs together: once m swings within "
                          "10⁻⁶, all its signs are taken to switch at once. |x| = |y| at 225°."};
  report::LineChart chart = new_chart("Flows with CWD along the circle's front", "time", "angle in degrees",
                                      "Angle on the circle over time for SGD, SGDM, Adam and Lion with CWD from 205 degrees.");
  std::vector<Journey> low, high;
  for (const Traveller& traveller : travellers) {
    progress(static_cast<double>(low.size()) / static_cast<double>(travellers.size()), traveller.name);
    low.push_back(journey(traveller, 205 * kPi / 180, low.size()));
    high.push_back(journey(traveller, 250 * kPi / 180, high.size()));
    table.rows.push_back({traveller.name, "205°", fmt::format("{:.1f}°", degrees(low.back().end)), "250°",
                          fmt::format("{:.1f}°", degrees(high.back().end)),
                          fmt::format("{:.0e}", std::max(low.back().off, high.back().off))});
    chart.series.push_back(low.back().series);
  }
  const auto moves = [&](std::size_t n) {
    return fmt::format("from 205° to {:.1f}° and from 250° to {:.1f}°", degrees(low[n].end), degrees(high[n].end));
  };
  const auto rests = [](const Journey& way) {
    return way.end >= kPi && way.end <= 1.5 * kPi && way.off < kRest && way.late < kRest &&
           std::abs(way.end - way.start) < kNear;
  };
  section.claims.push_back(
      {"SGD and SGDM with CWD stop on the Pareto set near where they reach it",
       "section 3.2",
       outcome_of(rests(low[0]) && rests(high[0]) && rests(low[1]) && rests(high[1])),
       fmt::format("SGD {}; SGDM {}; in the second half of the time they move by at most {:.0e}°", moves(0), moves(1),
                   degrees(std::max({low[0].late, high[0].late, low[1].late, high[1].late}))),
       "",
       {without_mask(travellers[0], rests), without_mask(travellers[1], rests)}});
  const AdamLimits limits = adam_limits(kLambda, 0.001);
  section.tables.push_back(limits_table(limits));
  section.claims.push_back(limits_claim(limits, moves(2), moves(3), low[3], high[3]));
  double to_end = 0, to_balance = 180;
  for (const double start : {195.0, 205.0, 215.0, 235.0, 245.0, 255.0}) {
    const double end = degrees(journey(travellers[4], start * kPi / 180, 0).end);
    to_end = std::max(to_end, std::min(std::abs(end - 180), std::abs(end - 270)));
    to_balance = std::min(to_balance, std::abs(end - 225));
  }
  section.claims.push_back(
      {"Lion + CWD does not stop on the Pareto set: it swings about an end of it, where the normal is along an axis", "",
       Outcome::noted,
       fmt::format("equation (2) has no u; {} at time 12; from six starts on the front it is then at most {:.1f}° from 180° or "
                   "270°, at least {:.0f}° from 225°; {} sign changes of m followed in the first",
                   moves(4), to_end, to_balance, low[4].events)});
  section.claims.push_back({"Filippov's set alone does not determine Lion's motion on the Pareto set", "", Outcome::noted,
                            fmt::format("with all signs of m switching together, also a Filippov solution, it moves to |x| = "
                                        "|y| instead ({}); its speed is the averaged field's to {:.0e}",
                                        moves(5), speed_mismatch())});
  section.figures.push_back(
      {"dynamics_pareto_angle", chart,
       fmt::format("From 205°: SGD is at {:.1f}° at the end, SGDM at {:.1f}°, Adam with ε = 0.001 at {:.1f}°; Lion at {:.1f}° "
                   "if every switch is followed, and at {:.1f}° if its signs are taken to switch together.",
                   degrees(low[0].end), degrees(low[1].end), degrees(low[3].end), degrees(low[4].end), degrees(low[5].end))});
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace cautious::lab
