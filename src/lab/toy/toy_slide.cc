// Equation (2) keeps the decay alone, x' = -lambda s x, because momentum vanishes on the manifold M. On the Pareto set no s but
// 0 is admissible there, so the motion should end. But iterates are never on M: they cross it to and fro, the mask is on while
// they are on one side of it, and what brings them back is the optimizer's u, not nothing. With n the normal of M, all
// coordinates of u turn together, u = rho p with p = n for SGD with momentum and p = sgn(n) for Lion and Adam, whose u does not
// shrink with the gradient. That the mean motion -rho p - lambda s x stays on M fixes rho:
//   x' = -lambda s (x - p <n, x> / <n, p>),   s the part of the time that the mask is on.
// It ends where x is parallel to p: for p = sgn(n) where all |x_i| are equal, for p = n at the point of M with the least norm.
#include "lab/toy/toy_slide.h"

#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <cautious/optimizer.h>

#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr double kTime = 60;  // steps times learning rate, the same for all
constexpr std::array kRates{0.01, 0.005, 0.0025};
constexpr double kEnds = std::numbers::pi;  // the near arc: angles from here to 3/2 pi about (3, 3)

struct Slide {
  std::string arm;
  bool sign_like = false;
  double lr = 0;
  double arrival = NAN;  // time, after which it stays near the arc
  Point at_arrival, end;
  double mask = 0;                         // part of the time that it is on after arrival
  double moved_late = 0;                   // in the second half of all time
  double moved = 0, predicted = 0;         // angle along the arc after arrival
  std::vector<double> time, angle, ahead;  // the run and the prediction from the arrival on
};

double angle_of(PointView x) {
  const double angle = std::atan2(x[1] - 3, x[0] - 3);
  return angle < 0 ? angle + 2 * std::numbers::pi : angle;
}

bool near_arc(PointView x) {
  const double angle = angle_of(x);
  return std::abs(std::hypot(x[0] - 3, x[1] - 3) - 1) <= kNear && angle >= kEnds && angle <= 1.5 * std::numbers::pi;
}

// Angle per unit of time at mask 1, on the arc at that angle.
double predicted_speed(double angle, bool sign_like, double weight_decay) {
  const double n[2]{std::cos(angle), std::sin(angle)};
  const double x[2]{3 + n[0], 3 + n[1]};
  const double p[2]{sign_like ? std::copysign(1, n[0]) : n[0], sign_like ? std::copysign(1, n[1]) : n[1]};
  const double back = (n[0] * x[0] + n[1] * x[1]) / (n[0] * p[0] + n[1] * p[1]);
  return weight_decay * ((x[0] - back * p[0]) * n[1] - (x[1] - back * p[1]) * n[0]);
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
  if (arrival >= path.size()) return slide;
  slide.arrival = static_cast<double>(arrival) * lr;
  slide.at_arrival = path[arrival];
  const std::size_t stride = std::max<std::size_t>(1, steps / 300);
  double ahead = angle_of(path[arrival]);
  const double from = ahead;
  for (std::size_t t = arrival; t < path.size(); ++t) {
    if (t % stride == 0) {
      slide.time.push_back(static_cast<double>(t) * lr);
      slide.angle.push_back(angle_of(path[t]));
      slide.ahead.push_back(ahead);
    }
    if (t < steps) {
      slide.mask += mask[t] / static_cast<double>(steps - arrival);
      ahead += lr * mask[t] * predicted_speed(ahead, slide.sign_like, weight_decay);
    }
  }
  slide.moved = angle_of(path.back()) - from;
  slide.moved_late = angle_of(path.back()) - angle_of(path[path.size() / 2]);
  slide.predicted = ahead - from;
  return slide;
}

std::string shown(PointView x) { return fmt::format("({:.3f}, {:.3f})", x[0], x[1]); }

Table table_of(const std::vector<Slide>& slides) {
  Table table;
  table.name = "toy_slide";
  table.title = "Motion along the Pareto front of the circle after reaching it";
  table.head = {"arm", "learning rate", "reached at time", "there", "mask on", "moved", "predicted", "moved late", "end"};
  for (const Slide& s : slides) {
    const bool arrived = std::isfinite(s.arrival);
    table.rows.push_back({s.arm, fmt::format("{}", s.lr), arrived ? fmt::format("{:.2f}", s.arrival) : "-",
                          arrived ? shown(s.at_arrival) : "-", arrived ? fmt::format("{:.2f}", s.mask) : "-",
                          arrived ? fmt::format("{:.3f}", s.moved) : "-", arrived ? fmt::format("{:.3f}", s.predicted) : "-",
                          arrived ? fmt::format("{:.1e}", s.moved_late) : "-", shown(s.end)});
  }
  table.note = fmt::format(
      "Time is steps times learning rate; every run ends at {}. Moved and predicted: angle on the circle in radians; late: "
      "in the second half of the time. The "
      "prediction takes from the run only when the mask is on.",
      kTime);
  return table;
}

Figure figure_of(const std::vector<Slide>& slides) {
  LineChart chart;
  chart.title = "On the Pareto front, and still moving";
  chart.x_label = "time (steps times learning rate)";
  chart.y_label = "angle on the circle, degrees";
  std::size_t colour = 0;
  for (const Slide& s : slides) {
    if (s.lr != kRates.back()) continue;
    ChartSeries run, ahead;
    run.name = s.arm;
    run.colour = colour++;
    ahead.name = s.arm + ", predicted";
    ahead.colour = colour + 2;
    for (std::size_t i = 0; i < s.time.size(); ++i) {
      run.x.push_back(s.time[i]);
      run.y.push_back(s.angle[i] * 180 / std::numbers::pi);
      ahead.x.push_back(s.time[i]);
      ahead.y.push_back(s.ahead[i] * 180 / std::numbers::pi);
    }
    chart.series.push_back(std::move(run));
    if (s.sign_like) chart.series.push_back(std::move(ahead));
  }
  chart.description =
      "Angle of the iterates on the circle after they have reached its near arc, which is its Pareto front, between 180 and "
      "270 "
      "degrees. Adam and Lion with CWD go on to 225 degrees, where both coordinates are equal, as predicted.";
  return {"toy_slide", chart,
          fmt::format("Learning rate {}. The front is all of 180° to 270°; its middle, 225°, is where |x₁| = |x₂|.",
                      kRates.back())};
}

const Slide& finest(const std::vector<Slide>& slides, std::string_view arm) {
  for (const Slide& s : slides) {
    if (s.lr == kRates.back() && s.arm == arm) return s;
  }
  return slides.back();
}

}  // namespace

Section why_it_slides_on(double weight_decay) {
  std::vector<Slide> slides;
  for (const char* name : {"adam", "lion", "sgdm"}) {
    for (const double lr : kRates) slides.push_back(slide_of(name, lr, weight_decay));
  }
  const Slide &adam = finest(slides, "Adam + CWD"), &lion = finest(slides, "Lion + CWD"), &sgdm = finest(slides, "SGDM + CWD");
  const auto gap = [](const Slide& s) { return std::abs(s.end[0] - s.end[1]); };
  const auto close = [](const Slide& s) { return std::abs(s.moved - s.predicted) <= 0.1 * std::abs(s.moved) + 0.02; };
  Section section;
  section.title = "Why does the trajectory not stop on reaching the Pareto set?";
  section.text =
      "Because the optimizer does not stop pushing. Equation (2) keeps only the decay, as if the update were 0 on the "
      "minimisers. "
      "But iterates cross the minimisers to and fro; the mask is on for part of the time, and the update brings them back "
      "along "
      "its own direction p. For Adam and Lion p is the sign of the normal, not the normal: the two do not cancel, and a motion "
      "along "
      "the front is left: x' = -λ s (x - p ⟨n, x⟩/⟨n, p⟩). One coordinate shrinks and another grows, so no point beats the "
      "last one: the path stays Pareto-optimal all the way. It ends where x is parallel to p: for Adam and Lion where all "
      "|x_i| are "
      "equal, for SGD with momentum, while it still oscillates, at the least norm.";
  section.command = "cautious lab toy circle";
  section.claims = {
      {"Adam + CWD and Lion + CWD go on along the Pareto front until |x₁| = |x₂|", "", Outcome::noted,
       fmt::format(
           "at learning rate {} Adam + CWD came to {} and ended at {}, Lion + CWD came to {} and ended at {}; |x₁| - |x₂| "
           "is {:.1e} and {:.1e}",
           kRates.back(), shown(adam.at_arrival), shown(adam.end), shown(lion.at_arrival), shown(lion.end), gap(adam),
           gap(lion))},
      {"The motion is the one that staying on the minimisers implies, x' = -λ s (x - p ⟨n, x⟩/⟨n, p⟩) with p = sgn(n)", "",
       close(adam) && close(lion) ? Outcome::holds : Outcome::fails,
       fmt::format("Adam + CWD moved by {:.3f} rad, predicted {:.3f}; Lion + CWD by {:.3f}, predicted {:.3f}", adam.moved,
                   adam.predicted, lion.moved, lion.predicted)},
      {"SGD with momentum + CWD, whose update shrinks with the gradient, comes to rest on the front once the learning rate is "
       "small",
       "section 3.2", std::abs(sgdm.moved_late) <= 1e-3 ? Outcome::holds : Outcome::fails,
       fmt::format("at learning rate {} it came to {} and moved by {:.1e} rad in the second half of the time; at larger rates, "
                   "where it keeps "
                   "oscillating, it moves too (table)",
                   sgdm.lr, shown(sgdm.at_arrival.empty() ? sgdm.end : sgdm.at_arrival), sgdm.moved_late)},
  };
  section.figures.push_back(figure_of(slides));
  section.tables.push_back(table_of(slides));
  return section;
}

}  // namespace cautious::lab
