// What rest means: the fixed-point identity of AdamW, its eps and beta2, and a learning rate that does not go to 0.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/fixedpoint/fixedpoint.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr double kFace = 1e-3;  // nearer than this to a face counts as on it
constexpr double kStill = 1e-9;
constexpr std::array kRates{3e-2, 1e-2, 3e-3, 1e-3};
constexpr std::array kEpsilons{1e-1, 1e-2, 1e-3, 1e-4};
constexpr std::array kBeta2{0.95, 0.99, 0.999};

struct Setting {
  Quadratic quadratic;
  Posed problem;
};

Setting setting(const FixedpointOptions& options) {
  Random random(options.seed + 2);
  const Quadratic quadratic = coupled(random);
  const auto size = static_cast<std::size_t>(quadratic.c.size());
  return {quadratic, pose("coupled quadratic", quadratic, kWeightDecay, random_start(random, size, kWeightDecay))};
}

double distance_to(const Eigen::VectorXd& solution, PointView y) { return (as_vector(y) - solution).lpNorm<Eigen::Infinity>(); }

// At the end of a run, sorted by whether |λx| is at a face of the box.
struct AtRest {
  double on_face = 0, inside_slope = 0, inside_extent = 0, sum = 0, product = 0;
  std::size_t count = 0, coordinates = 0;
  bool holds() const {
    return count > 0 && on_face <= kSolved && inside_slope <= kSolved && std::abs(product) <= kSolved * sum;
  }
};

AtRest at_rest(const Arm& arm, const Setting& where, const Pace& pace) {
  const Point y = rest(arm, where.problem, pace), g = slope_at(where.problem, y);
  AtRest found{.coordinates = y.size()};
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::abs(y[i]) > 1 - kFace) {
      found.on_face = std::max(found.on_face, std::abs(std::copysign(1.0, g[i]) + y[i]));
      ++found.count;
    } else {
      found.inside_slope = std::max(found.inside_slope, std::abs(g[i]));
      found.inside_extent = std::max(found.inside_extent, std::abs(y[i]));
    }
  }
  found.sum = as_vector(PointView(g)).lpNorm<1>();
  found.product = found.sum + as_vector(PointView(g)).dot(as_vector(PointView(y)));
  return found;
}

Claim identity_claim(const Arm& arm, const Setting& where, const Pace& pace) {
  const AtRest found = at_rest(arm, where, pace), masked = at_rest(with_cwd(arm), where, pace);
  return {fmt::format("At rest {} satisfies sgn(∇f) + λx = 0, so that |∇f|₁ + <λx, ∇f> = 0; inside the box sgn(0) is a set",
                      arm.name),
          "appendix C",
          outcome_of(found.holds()),
          fmt::format("{} of {} coordinates on a face, |sgn(g) + λx| at most {:.1e} there; inside |g| at most {:.1e} while "
                      "λ|x| is up to {:.2f}; |g|₁ = {:.2f}, |g|₁ + <λx, g> = {:.1e}",
                      found.count, found.coordinates, found.on_face, found.inside_slope, found.inside_extent, found.sum,
                      found.product),
          "",
          {{"with the mask of CWD",
            fmt::format("{} coordinates beyond the box, |sgn(g) + λx| at most {:.1f} there", masked.count, masked.on_face),
            !masked.holds()}}};
}

// How far from its solution the arm still goes late in a run with a constant learning rate.
double reach(const Arm& arm, const Setting& where, double lr) {
  const auto steps = static_cast<std::int64_t>(60 / lr);
  const Eigen::VectorXd solution = solve(where.quadratic, arm.surrogate);
  double far = 0;
  rest(arm, where.problem, {lr, steps, ScheduleKind::constant}, [&](std::int64_t step, PointView y) {
    if (step > steps * 9 / 10) far = std::max(far, distance_to(solution, y));
  });
  return far;
}

struct Constant {
  report::Figure figure;
  Claim claim;
};

Constant constant_rate(const Setting& where) {
  const auto plain = plain_arms(where.problem.weight_decay);
  const std::vector<Arm> arms{plain[0], plain[2], plain[3], plain[4], with_cwd(plain[0]), with_cwd(plain[2])};
  report::LineChart chart;
  chart.title = "Distance from the solution with a constant learning rate";
  chart.x_label = "learning rate, in units of 1/λ";
  chart.y_label = "largest distance in the last tenth, in units of 1/λ";
  chart.description = "Largest distance from the solution late in a run against the learning rate, one line per optimizer.";
  chart.x_scale = chart.y_scale = report::Scale::log;
  std::string evidence;
  std::vector<std::string> resting, moving;
  for (const Arm& arm : arms) {
    report::ChartSeries series;
    series.name = arm.name;
    series.colour = chart.series.size();
    series.markers = true;
    for (const double lr : kRates) {
      series.x.push_back(lr);
      series.y.push_back(reach(arm, where, lr));
    }
    const bool moves = largest(series.y) > kStill;
    (moves ? moving : resting).push_back(arm.name);
    const double power = std::log(series.y.front() / series.y.back()) / std::log(kRates.front() / kRates.back());
    evidence += fmt::format("{}{} {:.1e}", evidence.empty() ? "" : ", ", arm.name, series.y[1]);
    if (moves) evidence += fmt::format(" (as lr^{:.2f})", power);
    chart.series.push_back(std::move(series));
  }
  const std::string who =
      fmt::format("at rest: {}; still moving: {}", resting.empty() ? "none" : fmt::format("{}", fmt::join(resting, ", ")),
                  moving.empty() ? "none" : fmt::format("{}", fmt::join(moving, ", ")));
  return {{"fixedpoint_constant_rate", std::move(chart),
           fmt::format("In the last tenth of the steps, {}. At rest: within {:g} of the solution at every rate.", who, kStill)},
          {"With a constant learning rate, " + who, "", Outcome::noted,
           fmt::format("largest distance at lr = {:g}/λ: {}", kRates[1], evidence)}};
}

struct Epsilon {
  report::Table table;
  Claim limit, barrier;
};

Epsilon epsilon(const Setting& where, const Pace& pace) {
  const double weight_decay = where.problem.weight_decay;
  const Eigen::VectorXd box = solve(where.quadratic, {.target = Target::box});
  report::Table table;
  table.name = "fixedpoint_eps";
  table.title = "AdamW's ε is a barrier";
  table.head = {"ε", "distance from the box solution", "residual of the barrier problem", "λ|x|∞"};
  std::vector<double> distances;
  double worst = 0;
  for (const double eps : kEpsilons) {
    const Point y = rest(adamw(weight_decay, 0.95, eps), where.problem, pace);
    distances.push_back(distance_to(box, y));
    const double residual = barrier_residual(y, slope_at(where.problem, y), eps);
    worst = std::max(worst, residual);
    table.rows.push_back({fmt::format("{:g}", eps), fmt::format("{:.1e}", distances.back()), fmt::format("{:.1e}", residual),
                          fmt::format("{:.5f}", largest(y))});
  }
  table.note =
      "Barrier problem: f plus ε/λ times the sum of -log(1 - λ|x|) - λ|x|, whose stationary points are the fixed points of "
      "AdamW with this ε.";
  const bool falls = std::ranges::is_sorted(distances, std::greater<>{}) && distances.back() <= kSolved;
  const double masked = distance_to(box, rest(with_cwd(adamw(weight_decay, 0.95, kEpsilons.back())), where.problem, pace));
  return {
      table,
      {"As ε tends to 0, the fixed point of AdamW tends to the solution in the box",
       "appendix C",
       outcome_of(falls),
       fmt::format("distance {:.1e} with ε = {:g}, {:.1e} with {:g}; gradients are of size 1", distances.front(),
                   kEpsilons.front(), distances.back(), kEpsilons.back()),
       "",
       {{"with the mask of CWD", fmt::format("distance {:.1e} with ε = {:g}", masked, kEpsilons.back()), masked > kSolved}}},
      observed(worst <= kSolved,
               "With ε > 0 AdamW minimises f plus a logarithmic barrier of the box, (ε/λ) Σ (-log(1 - λ|x|) - λ|x|)",
               fmt::format("|g + ε λx/(1 - λ|x|)| at most {:.1e} for ε from {:g} to {:g}", worst, kEpsilons.back(),
                           kEpsilons.front()))};
}

struct Memory {
  report::Table table;
  Claim claim;
};

Memory memory(const Setting& where, const FixedpointOptions& options) {
  report::Table table;
  table.name = "fixedpoint_beta2";
  table.title = "AdamW: residual of the problem in the box, by β₂ and steps";
  const std::int64_t longer = 10 * options.steps;
  table.head = {"β₂", fmt::format("{} steps", options.steps), fmt::format("{} steps", longer)};
  std::vector<double> usual, more;
  for (const double beta2 : kBeta2) {
    const Arm arm = adamw(kWeightDecay, beta2);
    usual.push_back(residual_at(arm.surrogate, where.problem, rest(arm, where.problem, pace_of(options))));
    more.push_back(residual_at(arm.surrogate, where.problem, rest(arm, where.problem, {.steps = longer})));
    table.rows.push_back({fmt::format("{:g}", beta2), fmt::format("{:.1e}", usual.back()), fmt::format("{:.1e}", more.back())});
  }
  return {table,
          observed(std::ranges::is_sorted(usual), "The longer β₂ remembers, the more slowly AdamW converges",
                   fmt::format(
                       "residual after {} steps {:.1e} with β₂ = {:g}, {:.1e} with {:g}; with the latter after {} steps {:.1e}",
                       options.steps, usual.front(), kBeta2.front(), usual.back(), kBeta2.back(), longer, more.back()))};
}

}  // namespace

Section motion_section(const FixedpointOptions& options) {
  const Setting where = setting(options);
  const Pace pace = pace_of(options);
  Constant constant = constant_rate(where);
  const Epsilon eps = epsilon(where, pace);
  const Memory beta2 = memory(where, options);
  Section section;
  section.title = "Convergence";
  section.text =
      "The paper assumes that AdamW converges; no proof is known. Here the learning rate falls to 0 unless the title says that "
      "it is constant.";
  section.claims = {identity_claim(adamw(kWeightDecay), where, pace), eps.limit, eps.barrier, constant.claim, beta2.claim};
  section.figures = {std::move(constant.figure)};
  section.tables = {eps.table, beta2.table};
  return section;
}

}  // namespace cautious::lab::fixedpoint
