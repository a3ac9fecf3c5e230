// The experiment: its random problems, one watched trajectory, and the order of its sections.
#include "lab/dynamics/dynamics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

Matrix normal_matrix(Random& random, std::size_t rows, std::size_t cols, double scale) {
  Matrix a(rows, cols);
  std::generate_n(a.data(), a.size(), [&] { return scale * random.normal(); });
  return a;
}

Point normal_point(Random& random, std::size_t d, double scale) {
  Point x(d);
  std::generate(x.begin(), x.end(), [&] { return scale * random.normal(); });
  return x;
}

Problem named(std::string name, Random& random, std::size_t d) {
  Problem problem;
  problem.title = problem.name = std::move(name);
  problem.tensors = {{"x", {static_cast<std::int64_t>(d)}}};
  problem.start = normal_point(random, d, 2);
  return problem;
}

}  // namespace

Problem random_quadratic(Random& random, std::size_t d, std::size_t rank) {
  Problem problem = named(rank < d ? "degenerate quadratic" : "quadratic", random, d);
  problem.formula = "|A x - b|^2 / 2";
  Matrix a = normal_matrix(random, rank, d, 1 / std::sqrt(static_cast<double>(d)));
  if (rank == d) a.diagonal().array() += 1;
  const Matrix square = a.transpose() * a;
  const Point target = normal_point(random, rank, 1.5);
  const Eigen::VectorXd b = as_vector(PointView(target));
  problem.value = [a, b](PointView x) { return (a * as_vector(x) - b).squaredNorm() / 2; };
  problem.gradient = [square, c = Eigen::VectorXd(a.transpose() * b)](PointView x, std::span<double> g) {
    as_vector(g).noalias() = square * as_vector(x) - c;
  };
  problem.hessian = [square](PointView, Matrix& h) { h = square; };
  problem.least = 0;
  return problem;
}

Problem random_waves(Random& random, std::size_t d) {
  Problem problem = random_quadratic(random, d, d);
  problem.title = problem.name = "waves";
  problem.formula = "|A x - b|^2 / 2 + sum of w_j cos(a_j x + c_j)";
  problem.least.reset();
  const Matrix a = normal_matrix(random, 3, d, 1.5 / std::sqrt(static_cast<double>(d)));
  const Point phase = normal_point(random, 3, 3);
  const Eigen::VectorXd c = as_vector(PointView(phase));
  const Eigen::VectorXd w = Eigen::VectorXd::Constant(3, 0.7);
  problem.value = [a, c, w, base = problem.value](PointView x) {
    return base(x) + w.dot(Eigen::VectorXd((a * as_vector(x) + c).array().cos()));
  };
  problem.gradient = [a, c, w, base = problem.gradient](PointView x, std::span<double> g) {
    base(x, g);
    as_vector(g) -= a.transpose() * Eigen::VectorXd(w.array() * (a * as_vector(x) + c).array().sin());
  };
  problem.hessian = [a, c, w, base = problem.hessian](PointView x, Matrix& h) {
    base(x, h);
    h -= a.transpose() * Eigen::VectorXd(w.array() * (a * as_vector(x) + c).array().cos()).asDiagonal() * a;
  };
  return problem;
}

Problem random_ellipsoid(Random& random, std::size_t d) {
  Problem problem = named("ellipsoid", random, d);
  problem.formula = "(sum of w_i (x_i - c_i)^2 - 1)^2 / 4";
  const Point middle = normal_point(random, d, 1.5);
  const Eigen::VectorXd c = as_vector(PointView(middle));
  Eigen::VectorXd w(d);
  std::generate(w.begin(), w.end(), [&] { return random.uniform(0.3, 1); });
  problem.value = [w, c](PointView x) {
    const Eigen::ArrayXd r = (as_vector(x) - c).array();
    return std::pow((w.array() * r * r).sum() - 1, 2) / 4;
  };
  problem.gradient = [w, c](PointView x, std::span<double> g) {
    const Eigen::ArrayXd r = (as_vector(x) - c).array();
    as_vector(g) = ((w.array() * r * r).sum() - 1) * w.array() * r;
  };
  problem.hessian = [w, c](PointView x, Matrix& h) {
    const Eigen::VectorXd r = as_vector(x) - c, wr = w.cwiseProduct(r);
    h = 2 * wr * wr.transpose();
    h.diagonal() += (wr.dot(r) - 1) * w;
  };
  // Near the minimisers, where f is not yet steep.
  for (std::size_t i = 0; i < d; ++i) problem.start[i] = middle[i] + random.normal();
  problem.least = 0;
  return problem;
}

Problem random_problem(Random& random, std::size_t number, std::size_t d) {
  switch (number % 4) {
    case 0:
      return random_quadratic(random, d, d);
    case 1:
      return random_quadratic(random, d, d - 1);
    case 2:
      return random_waves(random, d);
    default:
      return random_ellipsoid(random, d);
  }
}

Problem tilted_plane() {
  constexpr double kNormal[] = {1, 0.5, -0.7}, kOffset = 1.5;
  const auto residual = [=](PointView x) { return kNormal[0] * x[0] + kNormal[1] * x[1] + kNormal[2] * x[2] - kOffset; };
  Problem problem;
  problem.start = {2, 1.5, 1};
  problem.value = [=](PointView x) { return residual(x) * residual(x) / 2; };
  problem.gradient = [=](PointView x, std::span<double> g) {
    for (std::size_t i = 0; i < 3; ++i) g[i] = residual(x) * kNormal[i];
  };
  problem.hessian = [=](PointView, Matrix& h) {
    const Eigen::Vector3d normal(kNormal[0], kNormal[1], kNormal[2]);
    h = normal * normal.transpose();
  };
  return problem;
}

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

double relative_rise(const std::vector<double>& values) {
  const double fall = values.front() - *std::min_element(values.begin(), values.end());
  return largest_rise(values) / std::max(fall, 1e-12 * std::abs(values.front()));
}

Watched watch(const System& system, const Problem& problem, PointView x, const FlowOptions& options) {
  const Inclusion inclusion = inclusion_of(system, problem);
  Watched watched;
  watched.trajectory = flow(inclusion, state_at(system, problem, x, options.t_begin), options);
  const auto& points = watched.trajectory.points;
  for (const FlowPoint& point : points) watched.h.push_back(lyapunov(system, problem, point.t, point.z));
  watched.rise = relative_rise(watched.h);
  const StateView end = parts(system, points.back().z);
  const double first = as_vector(PointView(lab::gradient(problem, x))).norm();
  watched.gradient = as_vector(PointView(lab::gradient(problem, end.x))).norm() / first;
  watched.momentum = as_vector(end.m).norm() / first;
  return watched;
}

double mutated_rise(const System& system, const Problem& problem, const Trajectory& trajectory,
                    const LyapunovWeights& weights) {
  std::vector<double> h;
  for (const FlowPoint& point : trajectory.points) h.push_back(lyapunov(system, problem, point.t, point.z, weights));
  return relative_rise(h);
}

void RateCheck::include(const RateCheck& other) {
  mismatches.insert(mismatches.end(), other.mismatches.begin(), other.mismatches.end());
  mutated.insert(mutated.end(), other.mutated.begin(), other.mutated.end());
  sliding += other.sliding;
  unclean += other.unclean;
}

RateCheck check_rate(const System& system, const Problem& problem, const Trajectory& trajectory) {
  System half = system;
  half.lambda /= 2;
  const Inclusion inclusion = inclusion_of(system, problem);
  const auto& points = trajectory.points;
  const std::size_t stride = std::max<std::size_t>(1, points.size() / 100);
  const double scale = std::abs(lyapunov(system, problem, points.front().t, points.front().z));
  RateCheck check;
  for (std::size_t n = 1; n < points.size(); n += stride) {
    const FlowPoint& point = points[n];
    if (std::find(point.sliding.begin(), point.sliding.end(), true) != point.sliding.end()) {
      ++check.sliding;
    } else if (const auto numerical = numerical_rate(system, problem, inclusion, point, scale)) {
      const auto mismatch = [&](const System& formula) {
        const double analytic = lyapunov_rate(formula, problem, point.t, point.z, point.side);
        return std::abs(analytic - *numerical) / std::max(std::abs(analytic), std::abs(*numerical));
      };
      check.mismatches.push_back(mismatch(system));
      check.mutated.push_back(mismatch(half));
    } else {
      ++check.unclean;
    }
  }
  return check;
}

System random_system(Random& random, System system) {
  system.lambda = random.uniform(kLeastLambda, kMostLambda);
  system.alpha = random.uniform(0.7, 1.5);
  system.beta = random.uniform(0.7, 1.5);
  system.gamma = random.uniform(kLeastGamma, kMostGamma);
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

std::string range_of(const std::vector<std::size_t>& counts, std::size_t of) {
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return fmt::format("{} of {}", *least == *most ? std::to_string(*least) : fmt::format("{} to {}", *least, *most), of);
}

std::string over_seeds(const std::vector<std::size_t>& counts, std::size_t of, const DynamicsOptions& options) {
  return fmt::format("{} over seeds {} to {}", range_of(counts, of), options.seed, options.seed + counts.size() - 1);
}

Section new_section(std::string title, std::string text, const DynamicsOptions& options) {
  Section section;
  section.title = std::move(title);
  section.text = std::move(text);
  const DynamicsOptions usual;
  section.command = command_of("dynamics", {{"trials", options.trials, usual.trials}, {"seed", options.seed, usual.seed}});
  return section;
}

report::LineChart new_chart(std::string title, std::string x_label, std::string y_label, std::string description) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(x_label);
  chart.y_label = std::move(y_label);
  chart.description = std::move(description);
  return chart;
}

report::ChartSeries new_series(std::string name, std::size_t colour) {
  report::ChartSeries series;
  series.name = std::move(name);
  series.colour = colour;
  return series;
}

Experiment run_dynamics(const DynamicsOptions& options, const Progress& progress) {
  using Make = Section (*)(const DynamicsOptions&, const Progress&);
  // With the part of the time that each takes.
  constexpr std::pair<Make, double> kSections[] = {{table1_section, 0.3}, {muon_section, 0.2},   {threshold_section, 0.1},
                                                   {adamw_section, 0.05}, {gamma_section, 0.05}, {manifold_section, 0.1},
                                                   {front_section, 0.05}, {pareto_section, 0.15}};
  Experiment experiment{.name = "dynamics", .title = "Continuous time: Table 1 and appendix D", .sections = {}};
  double done = 0;
  for (const auto& [make, part] : kSections) {
    experiment.sections.push_back(
        make(options, [&](double inside, std::string_view what) { progress(done + part * inside, what); }));
    done += part;
  }
  progress(1, "dynamics");
  return experiment;
}

}  // namespace cautious::lab
