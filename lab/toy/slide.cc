// Equation (2) keeps the decay alone, x' = -lambda s x, because momentum vanishes on the manifold M. On the Pareto set no s but
// 0 is admissible there, so the motion should end. But iterates are never on M: they cross it to and fro, the mask is on while
// they are on one side of it, and what brings them back is the optimizer's u, not nothing. With n the normal of M, all
// coordinates of u turn together, u = rho p with p = n for SGD with momentum and p = sgn(n) for Lion and Adam, whose u does not
// shrink with the gradient. That the mean motion -rho p - lambda s x stays on M fixes rho:
//   x' = -lambda s (x - p <n, x> / <n, p>),   s the part of the time that the mask is on.
// It ends where x is parallel to p: for p = sgn(n) where all |x_i| are equal, for p = n at the point of M with the least norm.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include <fmt/format.h>

#include <cautious/optimizer.h>

#include "base/text.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr double kTime = 60;                // steps times learning rate, the same for all
constexpr double kSettle = 3, kWindow = 2;  // times: after arrival, before speeds are compared; over which they are
constexpr std::array kRates{0.01, 0.005, 0.0025, 0.00125, 0.0006, 0.0003};
constexpr double kPi = std::numbers::pi;  // the near arc: angles from pi to 3/2 pi about (3, 3)

struct Slide {
  std::string arm;
  bool sign_like = false;
  double lr = 0;
  std::optional<double> arrival;  // time, after which it stays near the arc
  Point at_arrival, end;
  double mask = 0;                         // part of the time that it is on after arrival
  double agree = 0;                        // part of those steps in which it is the same for both coordinates
  double moved = 0;                        // angle along the arc after arrival
  double moved_late = 0;                   // in the second half of the time after arrival
  double ratio = NAN;                      // speed over predicted speed: the slope through the windows
  double mutant = NAN;                     // the same with the other p
  double off = NAN;                        // largest difference in a window, over the largest predicted motion in one
  std::vector<double> time, angle, ahead;  // the run and the prediction from kSettle after the arrival on
};

double angle_of(PointView x) {
  const double angle = std::atan2(x[1] - 3, x[0] - 3);
  return angle < 0 ? angle + 2 * kPi : angle;
}

bool near_arc(PointView x) {
  const double angle = angle_of(x);
  return std::abs(std::hypot(x[0] - 3, x[1] - 3) - 1) <= kNear && angle >= kPi && angle <= 1.5 * kPi;
}

// Angle per unit of time at mask 1, on the arc at that angle.
double predicted_speed(double angle, bool sign_like, double weight_decay) {
  const double n[2]{std::cos(angle), std::sin(angle)};
  const double x[2]{3 + n[0], 3 + n[1]};
  const double p[2]{sign_like ? std::copysign(1, n[0]) : n[0], sign_like ? std::copysign(1, n[1]) : n[1]};
  const double back = (n[0] * x[0] + n[1] * x[1]) / (n[0] * p[0] + n[1] * p[1]);
  return weight_decay * ((x[0] - back * p[0]) * n[1] - (x[1] - back * p[1]) * n[0]);
}

// What the run did after its arrival, and what the prediction says.
void follow(Slide& slide, const std::vector<Point>& path, const std::vector<double>& mask, std::size_t arrival,
            double weight_decay) {
  const std::size_t steps = mask.size();
  const auto step_of = [&](double time) { return std::min(steps, static_cast<std::size_t>(std::lround(time / slide.lr))); };
  slide.arrival = static_cast<double>(arrival) * slide.lr;
  slide.at_arrival = path[arrival];
  slide.moved = angle_of(path.back()) - angle_of(path[arrival]);
  slide.moved_late = angle_of(path.back()) - angle_of(path[(arrival + steps) / 2]);
  for (std::size_t t = arrival; t < steps; ++t) {
    slide.mask += mask[t] / static_cast<double>(steps - arrival);
    slide.agree += (mask[t] == 0.5 ? 0 : 1) / static_cast<double>(steps - arrival);
  }

  const std::size_t settled = step_of(*slide.arrival + kSettle), stride = std::max<std::size_t>(1, steps / 300);
  double ahead = angle_of(path[settled]);
  for (std::size_t t = settled; t < steps; ++t) {
    if (t % stride == 0) {
      slide.time.push_back(static_cast<double>(t) * slide.lr);
      slide.angle.push_back(angle_of(path[t]));
      slide.ahead.push_back(ahead);
    }
    ahead += slide.lr * mask[t] * predicted_speed(ahead, slide.sign_like, weight_decay);
  }

  // Per window, so that a wrong speed shows although both end at the same place.
  const std::size_t window = step_of(kWindow);
  const auto slope = [&](bool sign_like) {
    double product = 0, square = 0;
    for (std::size_t from = settled; from + window <= steps; from += window) {
      double predicted = 0;
      for (std::size_t t = from; t < from + window; ++t) {
        predicted += slide.lr * mask[t] * predicted_speed(angle_of(path[t]), sign_like, weight_decay);
      }
      const double moved = angle_of(path[from + window]) - angle_of(path[from]);
      product += moved * predicted;
      square += predicted * predicted;
    }
    return square > 0 ? product / square : NAN;
  };
  slide.ratio = slope(slide.sign_like);
  slide.mutant = slope(!slide.sign_like);
}

Slide slide_of(const std::string& recipe_name, double lr, double weight_decay) {
  Slide slide;
  Recipe recipe = cautious::recipe(recipe_name);
  recipe.decay = Cautious{};
  recipe.weight_decay = weight_decay;
  if (recipe_name == "adam") set(recipe, "beta2", "0.95");
  slide.arm = name_of(recipe);
  slide.sign_like = recipe_name != "sgdm";
  slide.lr = lr;
  const Problem& circle = problem("circle");
  Point x = circle.start, g(2);
  Optimizer optimizer(recipe, {.norms = Norms::off, .threads = 1});
  optimizer.add("x", {2}, x.data(), g.data());
  const auto steps = static_cast<std::size_t>(kTime / lr);
  std::vector<Point> path{x};
  std::vector<double> mask;
  for (std::size_t t = 0; t < steps; ++t) {
    circle.gradient(x, g);
    mask.push_back(static_cast<double>(optimizer.step({.lr = lr, .lr_max = lr}).tensors.front().active) / 2);
    path.push_back(x);
  }
  slide.end = x;
  std::size_t arrival = path.size();
  while (arrival > 0 && near_arc(path[arrival - 1])) --arrival;
  if (arrival < steps) follow(slide, path, mask, arrival, weight_decay);
  return slide;
}

std::string shown(PointView x) { return fmt::format("({:.3f}, {:.3f})", x[0], x[1]); }

std::string or_dash(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
}

report::Table table_of(const std::vector<Slide>& slides) {
  report::Table table;
  table.name = "toy_slide";
  table.title = "Motion along the Pareto front of the circle after reaching it";
  table.head = {"arm",        "learning rate",        "reached at time", "mask on", "moved",
                "moved late", "speed over predicted", "masks agree",     "end"};
  for (const Slide& s : slides) {
    if (s.arrival) {
      table.rows.push_back({s.arm, fmt::format("{}", s.lr), fmt::format("{:.2f}", *s.arrival), fmt::format("{:.2f}", s.mask),
                            fmt::format("{:.3f}", s.moved), fmt::format("{:.1e}", s.moved_late), or_dash(s.ratio, "{:.2f}"),
                            fmt::format("{:.1f}%", 100 * s.agree), shown(s.end)});
    } else {
      table.rows.push_back({s.arm, fmt::format("{}", s.lr), "never", "-", "-", "-", "-", "-", shown(s.end)});
    }
  }
  table.note = fmt::format(
      "Time is steps times learning rate; every run ends at {}. Moved: angle on the circle in radians; late: in the second "
      "half of the time since the front was reached. Speeds are compared over windows of time {}; the prediction takes the "
      "position and the times when the mask is on from the run. Masks agree: the part of the steps in which both coordinates "
      "have the same, as one s for both assumes.",
      kTime, kWindow);
  return table;
}

report::Figure figure_of(const std::vector<Slide>& slides) {
  report::LineChart chart;
  chart.title = "On the Pareto front, and still moving";
  chart.x_label = "time (steps times learning rate)";
  chart.y_label = "angle on the circle, degrees";
  constexpr std::array<std::size_t, 3> kRun{0, 1, 3}, kAhead{6, 2, 7};  // of the palette, far apart
  std::size_t arm = 0;
  for (const Slide& s : slides) {
    if (s.lr != kRates.back()) continue;
    report::ChartSeries run, ahead;
    run.name = s.arm;
    run.colour = kRun[arm];
    ahead.name = s.arm + ", predicted";
    ahead.colour = kAhead[arm++];
    ahead.markers = true;
    for (std::size_t i = 0; i < s.time.size(); ++i) {
      run.x.push_back(s.time[i]);
      run.y.push_back(s.angle[i] * 180 / kPi);
      if (i % 15 != 0) continue;  // few markers, between which the run is seen
      ahead.x.push_back(s.time[i]);
      ahead.y.push_back(s.ahead[i] * 180 / kPi);
    }
    chart.series.push_back(std::move(run));
    if (s.sign_like) chart.series.push_back(std::move(ahead));
  }
  chart.description =
      "Angle of the iterates on the circle after they have reached its near arc, which is its Pareto front, between 180 and "
      "270 degrees.";
  return {
      "toy_slide", chart,
      fmt::format("Learning rate {}. Lines: the runs; marks: x' = -λ s (x - p ⟨n, x⟩/⟨n, p⟩) with s of the run. The front is "
                  "all of 180° to 270°; its middle, 225°, is where |x₁| = |x₂|.",
                  kRates.back())};
}

Claim where_they_end(const std::vector<Slide>& slides) {
  std::string evidence;
  for (const Slide& s : slides) {
    if (s.lr != kRates.back() || !s.sign_like) continue;
    evidence += fmt::format("{}{} ", evidence.empty() ? fmt::format("at learning rate {} ", s.lr) : "; ", s.arm);
    evidence += s.arrival ? fmt::format("reached {} and ended at {}, where |x₁| - |x₂| = {:.1e}", shown(s.at_arrival),
                                        shown(s.end), std::abs(s.end[0]) - std::abs(s.end[1]))
                          : fmt::format("did not stay on the front and ended at {}", shown(s.end));
  }
  return {"Adam + CWD and Lion + CWD keep moving along the Pareto front towards |x₁| = |x₂|", "", Outcome::noted, evidence};
}

Claim how_fast(const std::vector<Slide>& slides) {
  std::string evidence = "speed over predicted speed, by learning rate:";
  std::string_view arm;
  for (const Slide& s : slides) {
    if (!std::isfinite(s.ratio)) continue;
    evidence += s.arm == arm ? fmt::format(", {:.2f} at {}", s.ratio, s.lr)
                             : fmt::format("{} {} {:.2f} at {}", arm.empty() ? "" : ";", s.arm, s.ratio, s.lr);
    arm = s.arm;
  }
  Claim claim{
      "For small learning rates their speed is the one that staying on the minimisers implies, x' = -λ s (x - p ⟨n, x⟩/⟨n, p⟩)",
      "", Outcome::noted,
      evidence +
          ". s, the part of the time that the mask is on, is taken from the run: predicted are the direction and the "
          "ratio to s, not the speed alone"};
  for (const Slide& s : slides) {
    if (s.lr != kRates.back() || !std::isfinite(s.mutant)) continue;
    claim.mutations.push_back({fmt::format("{} with p = {}", s.arm, s.sign_like ? "n" : "sgn(n)"),
                               fmt::format("speed over predicted {:.2f} at {}", s.mutant, s.lr), std::abs(s.mutant - 1) > 0.1});
  }
  return claim;
}

Claim what_sgdm_does(const std::vector<Slide>& slides) {
  std::string evidence;
  for (const Slide& s : slides) {
    if (s.sign_like) continue;
    evidence += fmt::format("{}{} at learning rate {}", evidence.empty() ? "late motion " : ", ",
                            s.arrival ? fmt::format("{:.1e} rad", s.moved_late) : std::string("(never there)"), s.lr);
  }
  return {
      "SGD with momentum + CWD, whose update shrinks with the gradient, stops on the front once the learning rate is small "
      "enough that it no longer oscillates",
      "", Outcome::noted, evidence};
}

}  // namespace

Section why_it_slides_on(double weight_decay) {
  std::vector<Slide> slides;
  for (const char* name : {"adam", "lion", "sgdm"}) {
    for (const double lr : kRates) slides.push_back(slide_of(name, lr, weight_decay));
  }
  Section section;
  section.title = "Why does the trajectory not stop on reaching the Pareto set?";
  section.text =
      "Because the optimizer does not stop pushing. Equation (2), x' = -λ s x, keeps only the decay, as if the update were 0 "
      "on the minimisers; its selector s, a number between 0 and 1 per coordinate, says how much of the decay the mask lets "
      "pass. But iterates cross the minimisers back and forth: the mask is on a part s of the time, now one number, and the "
      "update brings them back along its own direction p. With n the normal of the curve of minimisers, p is the sign of n for "
      "Adam and Lion, and n for SGD with momentum. Decay and update do not cancel, which leaves a motion along the front: x' = "
      "-λ s (x - p ⟨n, x⟩/⟨n, p⟩). One coordinate shrinks and another grows, so no point beats the last one: the path stays "
      "Pareto-optimal all the way. It ends where x is parallel to p: for Adam and Lion where all |x_i| are equal, for SGD with "
      "momentum, while "
      "it still oscillates, at the least norm.";
  section.command = "cautious lab toy circle";
  section.claims = {where_they_end(slides), how_fast(slides), what_sgdm_does(slides)};
  section.figures.push_back(figure_of(slides));
  section.tables.push_back(table_of(slides));
  return section;
}

}  // namespace cautious::lab
