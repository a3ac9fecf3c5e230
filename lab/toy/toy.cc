// Running the arms, and measuring where they end.
#include "lab/toy/toy.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/optimizer.h>

#include "base/text.h"
#include "lab/linear.h"
#include "lab/numbers.h"

namespace cautious::lab {
namespace {

constexpr int kRandomStarts = 16, kSteps = 2000;
constexpr std::uint64_t kSeed = 7;

void clamp(Point& x, double half_side) {
  for (double& value : x) value = std::clamp(value, -half_side, half_side);
}

// Steps that halve until f falls (Armijo's rule on the projected step) and double again; stops where none does.
double descend(const Problem& problem, Point x, double half_side) {
  clamp(x, half_side);
  double f = problem.value(x), step = 0.1;
  Point g(x.size()), next(x.size());
  for (int i = 0; i < kSteps; ++i) {
    problem.gradient(x, g);
    for (;; step /= 2) {
      if (step < 1e-16) return f;
      double decrease = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        next[k] = std::clamp(x[k] - step * g[k], -half_side, half_side);
        decrease += g[k] * (x[k] - next[k]);
      }
      if (decrease <= 1e-16 * (1 + std::abs(f))) return f;
      const double found = problem.value(next);
      if (found <= f - 1e-4 * decrease) {
        x = next;
        f = found;
        step *= 2;
        break;
      }
    }
  }
  return f;
}

}  // namespace

double least_in_box(const Problem& problem, double half_side, const std::vector<Point>& guesses) {
  std::vector<Point> starts = guesses;
  starts.emplace_back(problem.size(), 0.0);
  Random random(kSeed);
  const double reach = std::min(half_side, 10.0);
  for (int i = 0; i < kRandomStarts; ++i) {
    Point x(problem.size());
    for (double& value : x) value = random.uniform(-reach, reach);
    starts.push_back(std::move(x));
  }
  double least = INFINITY;
  for (const Point& start : starts) {
    const double found = descend(problem, start, half_side);
    if (found < least) least = found;
  }
  return least;
}

namespace {

// A stationary point that is farther off than this part of |x| is not the one that the arm went to.
constexpr double kReach = 0.5;

// A negative curvature below this part of the largest one is rounding.
constexpr double kFlat = 1e-6;

// An arm is at rest if, in the last tenth of its time (steps times learning rate), it moved less than this per unit of time,
// and its decay had time to act. Otherwise its end says nothing about its limit.
constexpr double kRest = 5e-4, kDecayTimes = 3;

bool is_matrix_problem(const Problem& problem) {
  return std::all_of(problem.tensors.begin(), problem.tensors.end(), [](const auto& t) { return t.shape.size() == 2; });
}

std::vector<ToyArm> arms_of(const Problem& problem, const ToyOptions& options) {
  if (!options.arms.empty()) return options.arms;
  std::vector<Rule> rules{Adam{options.beta1, options.beta2, options.eps}};
  if (is_matrix_problem(problem)) rules.push_back(Muon{});
  std::vector<ToyArm> arms;
  const auto add = [&](const Rule& rule, const Decay& decay) {
    const Recipe recipe{.rule = rule, .decay = decay, .weight_decay = options.weight_decay};
    arms.push_back({name_of(recipe), recipe, std::nullopt});
  };
  for (const Rule& rule : rules) {
    for (const Decay& decay : {Decay{None{}}, Decay{Decoupled{}}, Decay{Cautious{}}}) add(rule, decay);
  }
  if (rules.size() > 1) add(rules.back(), Cautious{.mask = MaskBy::momentum});
  return arms;
}

bool needs_matrices(const Rule& rule) {
  const auto* lion = std::get_if<LionK>(&rule);
  return std::holds_alternative<Muon>(rule) || (lion != nullptr && lion->k == Convex::nuclear);
}

void check_matrices(const Problem& problem, const ToyArm& arm) {
  if (!needs_matrices(arm.recipe.rule) || is_matrix_problem(problem)) return;
  std::vector<std::string> fitting;
  for (const Problem& other : problems()) {
    if (is_matrix_problem(other)) fitting.push_back(other.name);
  }
  throw Error(Fault::usage, fmt::format("arm {} needs matrices, but x of {} is a vector; problems of matrices: {}",
                                        base::in_quotes(arm.name), base::in_quotes(problem.name), base::join(fitting)));
}

bool is_at_rest(const ToyRun& run, const ToyOptions& options) {
  const double peak = run.arm.lr.value_or(options.lr);
  const Schedule schedule{.kind = options.schedule, .lr = peak, .steps = options.steps};
  double time = 0, late = 0;
  for (std::int64_t t = 1; t <= options.steps; ++t) time += lr_at(schedule, t);
  const bool decays = !std::holds_alternative<None>(run.arm.recipe.decay);
  if (decays && run.arm.recipe.weight_decay * time < kDecayTimes) return false;
  std::int64_t t = options.steps;
  for (; t > 0 && late < time / 10; --t) late += lr_at(schedule, t);
  return late > 0 && distance(run.path[static_cast<std::size_t>(t)], run.end()) <= kRest * late;
}

// Where all paths and the problem's own view are in sight.
void set_view(ToyStudy& study, const std::vector<std::vector<Point>>& paths) {
  const double own_low = study.problem.view_low, own_high = study.problem.view_high;
  double low = own_low, high = own_high;
  for (const auto& path : paths) {
    for (const Point& p : path) {
      low = std::min({low, p[0], p[1]});
      high = std::max({high, p[0], p[1]});
    }
  }
  const double margin = 0.05 * (high - low);
  study.view_low = low < own_low ? low - margin : low;
  study.view_high = high > own_high ? high + margin : high;
}

ToyRun measure(const ToyStudy& study, const ToyArm& arm, std::vector<Point> path) {
  ToyRun run;
  run.arm = arm;
  run.path = std::move(path);
  const Point& end = run.end();
  run.f = study.problem.value(end);
  run.at_rest = is_at_rest(run, study.options);
  run.to_box = to_box(study.box, end);
  const auto nearest = nearest_stationary(study.problem, end, kReach * (1 + as_vector(PointView(end)).norm()));
  if (nearest) {
    run.to_minimisers = nearest->distance;
    const Eigen::VectorXd curvatures = eigenvalues(nearest->hessian);
    run.minimum = curvatures.minCoeff() >= -kFlat * curvatures.cwiseAbs().maxCoeff();
    run.pareto = pareto(study.problem, *nearest, kOn).pareto;  // what decays to 0 is nearly there
  }
  if (!study.trace) return run;
  const auto to_front = [&](const Point& at) { return to_global_front(*study.trace, {at[0], at[1]}); };
  run.to_front = to_front(end);
  run.to_local_front = to_local_front(*study.trace, {end[0], end[1]});
  for (std::size_t t = run.path.size(); t-- > 0 && to_front(run.path[t]) <= kNear;) run.arrival = static_cast<std::int64_t>(t);
  if (run.arrival) run.slide = distance(run.path[static_cast<std::size_t>(*run.arrival)], end);
  return run;
}

}  // namespace

std::vector<Point> toy_path(const Problem& problem, const ToyArm& arm, const ToyOptions& options) {
  const double peak = arm.lr.value_or(options.lr);
  base::check_range("lr * weight_decay", peak * arm.recipe.weight_decay, kFraction);  // beyond it decay overshoots zero
  Optimizer optimizer(arm.recipe, {.norms = Norms::off, .threads = 1});
  Point x = options.start.value_or(problem.start), g(x.size());
  std::size_t at = 0;
  for (const ProblemTensor& tensor : problem.tensors) {
    std::size_t count = 1;
    for (const std::int64_t side : tensor.shape) count *= static_cast<std::size_t>(side);
    optimizer.add(tensor.name, tensor.shape, x.data() + at, g.data() + at);
    at += count;
  }
  const Schedule schedule{.kind = options.schedule, .lr = peak, .steps = options.steps};
  std::vector<Point> path{x};
  path.reserve(static_cast<std::size_t>(options.steps) + 1);
  for (std::int64_t t = 1; t <= options.steps; ++t) {
    problem.gradient(x, g);
    optimizer.step({.lr = lr_at(schedule, t), .lr_max = peak});
    path.push_back(x);
  }
  if (!std::isfinite(problem.value(x))) {
    throw Error(Fault::failure,
                fmt::format("lab toy: {} diverged on {}; try a smaller lr than {}", arm.name, problem.name, peak));
  }
  return path;
}

void check(const Problem& problem, const ToyOptions& options) {
  base::check_range("lr", options.lr, kToyLr);
  if (options.weight_decay == 0) {
    throw Error(Fault::usage,
                "weight_decay is 0, but then there is no box |x| <= 1/weight_decay; valid: " + to_string(kToyWeightDecay));
  }
  base::check_range("weight_decay", options.weight_decay, kToyWeightDecay);
  base::check_range("beta1", options.beta1, kMomentum);
  base::check_range("beta2", options.beta2, kMomentum);
  base::check_range("eps", options.eps, kFraction);
  base::check_range("steps", static_cast<double>(options.steps), kToySteps);
  base::check_range("steps * variables", static_cast<double>(options.steps) * static_cast<double>(problem.size()), kToyPath);
  if (options.start) check_point(problem, "start", *options.start);
  ToyOptions one_step = options;
  one_step.steps = 1;
  for (const ToyArm& arm : arms_of(problem, options)) {
    check_matrices(problem, arm);
    try {
      toy_path(problem, arm, one_step);  // whatever else is refused is refused in the first step
    } catch (const Error& error) {
      throw Error(error.fault(), fmt::format("arm {}: {}", base::in_quotes(arm.name), error.what()));
    }
  }
}

ToyStudy run_toy(const Problem& problem, const ToyOptions& options, const std::function<void()>& alive) {
  check(problem, options);
  ToyStudy study;
  study.problem = problem;
  study.options = options;
  study.box = 1 / options.weight_decay;
  const auto arms = arms_of(problem, options);
  const auto go_on = [&] {
    if (alive) alive();
  };
  std::vector<std::vector<Point>> paths;
  study.lowest = problem.least.value_or(INFINITY);
  for (const ToyArm& arm : arms) {
    go_on();
    paths.push_back(toy_path(problem, arm, options));
    for (const Point& p : paths.back()) study.lowest = std::min(study.lowest, problem.value(p));
  }
  if (problem.size() == 2) {
    set_view(study, paths);
    study.trace = trace_minimisers(problem, study.view_low, study.view_high);
  }
  std::vector<Point> ends;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    go_on();
    ends.push_back(paths[i].back());
    study.runs.push_back(measure(study, arms[i], std::move(paths[i])));
    study.controls.emplace_back();
    for (ToyBroken& broken : broken_arms(problem, arms[i], options)) {
      study.controls.back().push_back({broken.change, measure(study, arms[i], std::move(broken.path))});
    }
  }
  go_on();
  study.least_in_box = least_in_box(problem, study.box, ends);
  return study;
}

double to_box(double half_side, PointView x) {
  double square = 0;
  for (const double value : x) square += std::pow(std::max(0.0, std::abs(value) - half_side), 2);
  return std::sqrt(square);
}

double distance(PointView a, PointView b) { return (as_vector(a) - as_vector(b)).norm(); }

}  // namespace cautious::lab
