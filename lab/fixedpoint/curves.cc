// One coordinate, f = λ (x - c)^2 / 2: where an optimizer rests as a function of the target c, and as a function of lambda.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/fixedpoint/fixedpoint.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr int kTargetsPerSide = 20;
constexpr double kFarthest = 2;  // c reaches twice the box
constexpr double kFixedTarget = 3;
constexpr int kDecays = 19;

Arm arm_of(std::string_view name, double weight_decay) {
  const auto arms = plain_arms(weight_decay);
  return *std::ranges::find(arms, name, [](const Arm& arm) { return std::string_view(arm.name); });
}

// All targets at once: coordinates of a separable problem do not see each other.
Quadratic all_targets() {
  const auto count = 2 * kTargetsPerSide + 1;
  return {Eigen::MatrixXd::Identity(count, count), Eigen::VectorXd::LinSpaced(count, -kFarthest, kFarthest)};
}

struct Curve {
  report::ChartSeries series;
  double off = 0;  // largest distance from the closed form
};

// The closed form is nearest(): with F = (y - c)^2 / 2 the minimiser of F + K* is the proximal point of c.
Curve over_targets(const Arm& arm, const Posed& problem, const Quadratic& quadratic, const Pace& pace, std::size_t colour) {
  const Point at = rest(arm, problem, pace);
  const Point targets(quadratic.c.begin(), quadratic.c.end());
  const Point expected = nearest(arm.surrogate, targets);
  Curve curve;
  curve.series.name = arm.name;
  curve.series.colour = colour;
  curve.series.x = targets;
  curve.series.y = at;
  curve.series.markers = true;
  curve.off = (as_vector(PointView(at)) - as_vector(PointView(expected))).lpNorm<Eigen::Infinity>();
  return curve;
}

// f = (x - 3)^2 / 2 whatever lambda is; in units of the box that is curvature 1/λ and target 3λ.
double rest_of_fixed(const Arm& arm, const Pace& pace) {
  const double weight_decay = arm.recipe.weight_decay;
  const Quadratic quadratic{Eigen::MatrixXd::Constant(1, 1, 1 / weight_decay),
                            Eigen::VectorXd::Constant(1, kFixedTarget * weight_decay)};
  return rest(arm, pose("fixed", quadratic, weight_decay, {0.5}), pace).front() / weight_decay;
}

Curve over_decays(std::string_view name, bool cautious, double (*expected)(double), const Pace& pace, std::size_t colour) {
  Curve curve;
  curve.series.colour = colour;
  curve.series.markers = true;
  for (int i = 0; i < kDecays; ++i) {
    const double weight_decay = 0.1 + 0.05 * i;
    Arm arm = arm_of(name, weight_decay);
    if (cautious) arm = with_cwd(std::move(arm));
    curve.series.name = arm.name;
    curve.series.x.push_back(weight_decay);
    curve.series.y.push_back(rest_of_fixed(arm, pace));
    curve.off = std::max(curve.off, std::abs(curve.series.y.back() - expected(weight_decay)));
  }
  return curve;
}

// The largest distance from another closed form.
template <class Form>
double farthest(const Point& x, const Point& y, Form form) {
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(y[i] - form(x[i])));
  return most;
}

std::string offs(const std::vector<Curve>& curves) {
  std::string text;
  for (const Curve& curve : curves) {
    text += fmt::format("{}{} {:.1e}", text.empty() ? "" : ", ", curve.series.name, curve.off);
  }
  return text;
}

bool all_near(const std::vector<Curve>& curves) {
  return std::ranges::all_of(curves, [](const Curve& curve) { return curve.off <= kSolved; });
}

report::LineChart chart_of(const std::vector<Curve>& curves, std::string title) {
  report::LineChart chart;
  chart.title = std::move(title);
  for (const Curve& curve : curves) chart.series.push_back(curve.series);
  return chart;
}

report::Figure target_figure(const std::vector<Curve>& curves) {
  report::LineChart chart = chart_of(curves, "Where an optimizer converges, by target");
  chart.x_label = "target c, in units of 1/λ";
  chart.y_label = "x at rest, in units of 1/λ";
  chart.description = "Where each optimizer converges, against the target, which reaches twice as far as the box.";
  return {"fixedpoint_clamp", std::move(chart),
          fmt::format(
              "f = λ(x - c)²/2. Closed forms: AdamW clips c to the box, SGD shrinks it to c/2, huber shrinks it to c/(1 + e) "
              "and clips, Adam + CWD keeps it, Lion-K threshold + CWD shrinks it by e = {}. Largest distance from them: {}.",
              kThreshold, offs(curves))};
}

report::Figure decay_figure(const std::vector<Curve>& curves) {
  report::LineChart chart = chart_of(curves, "Where an optimizer converges, by weight decay");
  chart.x_label = "weight decay λ";
  chart.y_label = "x at rest";
  chart.description = "Where AdamW, SGD and Adam + CWD converge, against the weight decay, from 0.1 to 1.";
  return {"fixedpoint_decay", std::move(chart),
          fmt::format("f = (x - 3)²/2, the same for every λ. Closed forms: AdamW the smaller of 3 and 1/λ, SGD 3/(1 + λ), Adam "
                      "+ CWD 3. Largest distance from them: {}.",
                      offs(curves))};
}

}  // namespace

Section curves_section(const FixedpointOptions& options) {
  const Pace pace = pace_of(options);
  const Quadratic quadratic = all_targets();
  Random random(options.seed);
  const auto count = static_cast<std::size_t>(quadratic.c.size());
  const Posed problem = pose("targets", quadratic, kWeightDecay, random_start(random, count, kWeightDecay));
  const std::vector<Arm> arms{adamw(kWeightDecay), arm_of("SGD", kWeightDecay), with_cwd(adamw(kWeightDecay)),
                              arm_of("Lion-K huber", kWeightDecay), with_cwd(threshold(kWeightDecay))};
  std::vector<Curve> by_target;
  for (const Arm& arm : arms) by_target.push_back(over_targets(arm, problem, quadratic, pace, by_target.size()));
  const std::vector<Curve> by_decay{
      over_decays(
          "AdamW", false, [](double decay) { return std::min(kFixedTarget, 1 / decay); }, pace, 0),
      over_decays(
          "SGD", false, [](double decay) { return kFixedTarget / (1 + decay); }, pace, 1),
      over_decays(
          "AdamW", true, [](double) { return kFixedTarget; }, pace, 2)};

  const double masked =
      farthest(by_target[2].series.x, by_target[2].series.y, [](double c) { return std::clamp(c, -1.0, 1.0); });
  const double by_masked =
      farthest(by_decay[2].series.x, by_decay[2].series.y, [](double decay) { return std::min(kFixedTarget, 1 / decay); });
  Section section;
  section.title = "One coordinate: clamp, shrink, keep";
  section.text = "41 targets c from -2/λ to 2/λ at once, then one target and 19 values of λ.";
  section.claims = {
      {"In one coordinate every optimizer converges to the closed form of its problem: clamp, shrink, or keep",
       "section 2.2, appendix C",
       outcome_of(all_near(by_target)),
       "largest distance, in units of 1/λ: " + offs(by_target),
       "",
       {{"AdamW with the mask of CWD", fmt::format("{:.2f} from the clamp", masked), masked > kSolved}}},
      {"Plain decay minimises a surrogate that depends on λ, CWD does not",
       "section 2.2",
       outcome_of(all_near(by_decay)),
       fmt::format("from λ = 0.1 to 1 AdamW moves from {:.2f} to {:.2f}, SGD from {:.2f} to {:.2f}, Adam + CWD from {:.2f} to "
                   "{:.2f}; distance from the closed forms: {}",
                   by_decay[0].series.y.front(), by_decay[0].series.y.back(), by_decay[1].series.y.front(),
                   by_decay[1].series.y.back(), by_decay[2].series.y.front(), by_decay[2].series.y.back(), offs(by_decay)),
       "",
       {{"AdamW with the mask of CWD", fmt::format("{:.2f} from its closed form", by_masked), by_masked > kSolved}}}};
  section.figures = {target_figure(by_target), decay_figure(by_decay)};
  return section;
}

}  // namespace cautious::lab::fixedpoint
