// On the manifold of minimisers: the sliding motion of equation (2), against small steps.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

constexpr double kSteps[] = {1e-3, 1e-4};
constexpr double kPerStep = 20;  // every difference of solver and small steps may be this times the step
constexpr double kWindow = 1;    // a slide shorter than this is not compared

// Small steps against the solver while it slides in all coordinates, from `begin` to the end. All are 0 for tiny steps if
// equation (2) holds.
struct Differences {
  double end = 0;       // of x at the end, over |x|
  double share = 0;     // mean over the steps of x where the mask is on against the mean of s x, over |x|
  double update = 0;    // what the update without the decay adds up to, over lambda |x| and the time
  double gradient = 0;  // the largest |g| in the slide, over |Hessian| |x|
  double worst() const { return std::max({end, share, update, gradient}); }
  void include(const Differences& other) {
    end = std::max(end, other.end), share = std::max(share, other.share);
    update = std::max(update, other.update), gradient = std::max(gradient, other.gradient);
  }
};

struct Slide {
  std::size_t trajectories = 0, slid = 0, moving = 0;
  std::size_t compared = 0, agreeing = 0;  // of the random ones: solver and steps end at the same place
  Differences differences[std::size(kSteps)];
  double mutated = INFINITY;  // the worst difference of the longer steps with the mask reversed, from the start; the least
};

bool slides_whole(const FlowPoint& point) {
  return !point.sliding.empty() && std::find(point.sliding.begin(), point.sliding.end(), false) == point.sliding.end();
}

double length(PointView x) { return as_vector(x).norm(); }

// Steps of the discrete optimizer; shares nothing with the solver.
struct SmallSteps {
  Point x, masked, update;  // from `begin` on: mean of x where the mask is on and 0 where not; sum of step times update
  double gradient = 0;
};

// With system.reversed they decay exactly where they should not.
SmallSteps small_steps(const System& system, const Problem& problem, const FlowPoint& start, double begin, double t_end,
                       double step) {
  const std::size_t d = problem.size();
  const auto count = [&](double until) { return std::llround((until - start.t) / step); };
  const auto all = count(t_end), before = count(begin);
  const Point& z = start.z;
  SmallSteps steps{.x = Point(z.begin(), z.begin() + static_cast<std::ptrdiff_t>(d)), .masked = Point(d), .update = Point(d)};
  Point m(z.begin() + static_cast<std::ptrdiff_t>(z.size() - d), z.end()), g(d);
  for (auto n = 0LL; n < all; ++n) {
    problem.gradient(steps.x, g);
    if (n >= before) steps.gradient = std::max(steps.gradient, length(g));
    for (std::size_t i = 0; i < d; ++i) {
      m[i] = system.flow == Flow::sgd ? g[i] : m[i] + step * system.beta * (g[i] - m[i]);
      const bool decays = (m[i] * steps.x[i] >= 0) != system.reversed;
      const double masked = decays ? steps.x[i] : 0;
      steps.x[i] -= step * (m[i] + system.lambda * masked);
      if (n < before) continue;
      steps.masked[i] += masked / static_cast<double>(all - before);
      steps.update[i] += step * m[i];
    }
  }
  return steps;
}

// The mean of s x of the solver from point number `first` on.
Point mean_masked(const System& system, const std::vector<FlowPoint>& points, std::size_t first, std::size_t d) {
  Point mean(d);
  for (std::size_t n = first; n + 1 < points.size(); ++n) {
    const double part = (points[n + 1].t - points[n].t) / (points.back().t - points[first].t);
    for (std::size_t i = 0; i < d; ++i) {
      for (const FlowPoint& point : {points[n], points[n + 1]}) {
        mean[i] += part / 2 * selector(system, point.z, point.side, {}, i) * point.z[i];
      }
    }
  }
  return mean;
}

enum class From { start, slide };  // what the small steps begin at

void add(Slide& slide, const System& system, const Problem& problem, PointView start, From from) {
  const double t_end = 30;
  FlowOptions options = usual_options(t_end);
  options.most_events = 20000;
  const Trajectory trajectory = flow(inclusion_of(system, problem), state_at(system, problem, start, options.t_begin), options);
  ++slide.trajectories;
  const auto& points = trajectory.points;
  std::size_t first = points.size();
  while (first > 0 && slides_whole(points[first - 1])) --first;
  if (trajectory.end != FlowEnd::time || first == points.size() || t_end - points[first].t < kWindow) return;
  ++slide.slid;
  const std::size_t d = problem.size();
  const Point masked = mean_masked(system, points, first, d);
  const PointView end = PointView(points.back().z).first(d);
  const double size = length(end), time = t_end - points[first].t;
  double motion = 0;
  for (std::size_t i = 0; i < d; ++i) motion = std::max(motion, std::abs(end[i] - points[first].z[i]));
  slide.moving += motion > 1e-3 * size;
  const auto compare = [&](const System& stepped, double step) {
    const SmallSteps steps =
        small_steps(stepped, problem, points[from == From::start ? 0 : first], points[first].t, t_end, step);
    Differences differences{.update = length(steps.update) / (system.lambda * size * time),
                            .gradient = steps.gradient / (hessian(problem, end).norm() * size)};
    for (std::size_t i = 0; i < d; ++i) {
      differences.end = std::max(differences.end, std::abs(steps.x[i] - end[i]) / size);
      differences.share = std::max(differences.share, std::abs(steps.masked[i] - masked[i]) / size);
    }
    return differences;
  };
  if (from == From::start) {
    System mutant = system;
    mutant.reversed = true;
    slide.mutated = std::min(slide.mutated, compare(mutant, kSteps[0]).worst());
  }
  for (std::size_t k = 0; k < std::size(kSteps); ++k) {
    Differences differences = compare(system, kSteps[k]);
    if (from == From::slide) {
      // Where selectors are not unique the steps may go another way.
      slide.compared += k == 0;
      slide.agreeing += k + 1 == std::size(kSteps) && differences.worst() <= kPerStep * kSteps[k];
      differences.end = differences.share = 0;
    }
    slide.differences[k].include(differences);
  }
}

const Point kCircleStart = {4.5, 2.2};  // comes to the circle where it is not Pareto-optimal

report::Figure selector_figure(const Trajectory& trajectory) {
  report::LineChart chart = new_chart("Selectors while SGD + CWD slides along the circle", "time", "selector",
                                      "The selectors of both coordinates over time: they add up to 1 while the trajectory "
                                      "slides, and are 0 on the Pareto set.");
  report::ChartSeries first = new_series("s of x", 0), second = new_series("s of y", 1);
  for (const FlowPoint& point : trajectory.points) {
    if (!slides_whole(point)) continue;
    first.x.push_back(point.t), second.x.push_back(point.t);
    first.y.push_back((1 + point.side[0] * sign(point.z[0])) / 2);
    second.y.push_back((1 + point.side[1] * sign(point.z[1])) / 2);
  }
  chart.series = {first, second};
  return {"dynamics_selectors", chart,
          "Both gradients change sign together across the circle, so the two selectors are one: they add up to 1. Where both "
          "coordinates would shrink on the same side, the Pareto set, both are 0 and the motion ends."};
}

Claim equation_claim(const std::string& name, const Slide& slide) {
  bool agree = true;
  std::string found;
  for (std::size_t k = 0; k < std::size(kSteps); ++k) {
    const Differences& most = slide.differences[k];
    agree = agree && most.worst() <= kPerStep * kSteps[k];
    found += fmt::format(
        "; steps of {:g}: x at the end differs by {:.0e} of |x|, its mean where the mask is on from that of s x by {:.0e}, the "
        "update adds {:.0e} of λ|x|, |g| is at most {:.0e} of |∇²f| |x|",
        kSteps[k], most.end, most.share, most.update, most.gradient);
  }
  return {
      fmt::format("{}: on the manifold the motion is -λ s x with s in [0, 1] and stays on it", name),
      "equation (2)",
      slide.slid == 0 ? Outcome::undecided : outcome_of(agree),
      fmt::format("{} of {} trajectories slide in all coordinates, {} of them in motion{}; on {} of {} slides on random "
                  "problems the steps end where the solver ends",
                  slide.slid, slide.trajectories, slide.moving, slide.slid == 0 ? "" : found, slide.agreeing, slide.compared),
      "",
      {{"steps with the mask reversed, on the plane and the circle",
        fmt::format("differ by {:.1e} at least, where {:g} is allowed", slide.mutated, kPerStep * kSteps[0]),
        slide.mutated > kPerStep * kSteps[0]}}};
}

// Until the front, straight below the middle.
Claim unique_claim(const Trajectory& trajectory) {
  std::size_t points = 0;
  double most = 0;
  for (const FlowPoint& point : trajectory.points) {
    if (!slides_whole(point) || point.z[0] < 3.01) continue;
    ++points;
    most = std::max(most, std::abs((point.side[0] + point.side[1]) / 2));
  }
  return {"For SGD on a manifold of codimension 1 the selectors are unique", "", Outcome::noted,
          fmt::format("all entries of g change sign together there, so Filippov's set is the segment between two fields, s_i = "
                      "(1 + τ sgn(n_i x_i))/2 with one τ in [-1, 1] (section 3.2: \"need not be unique\"); on the circle s of "
                      "x and s of y add up to 1 within {:.0e} at {} points of the slide",
                      most, points)};
}

}  // namespace

Section manifold_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section(
      "On the manifold: equation (2)",
      "SGD and SGDM with CWD on degenerate quadratics, ellipsoids and the circle. Where the trajectory has reached the "
      "minimisers, the solver finds the values of the masks between 0 and 1 that keep it there. Whether this is what happens "
      "is decided by small fixed steps of the optimizer, which share nothing with the solver: on a plane and the circle from "
      "the start, on the random problems from where the slide begins. All differences, relative, must be below 20 times the "
      "step; on the random problems, where selectors may not be unique, those that need no solver.",
      options);
  for (const Flow kind : {Flow::sgd, Flow::sgdm}) {
    Slide slide;
    Random random(options.seed + 31);
    for (std::size_t n = 0; n < options.trials; ++n) {
      progress((static_cast<double>(n) / static_cast<double>(options.trials) + (kind == Flow::sgdm)) / 2, "sliding");
      System system = random_system(random, {.flow = kind});
      const std::size_t d = 2 + random.below(4);
      const Problem drawn = n % 2 == 0 ? random_quadratic(random, d, d - 1) : random_ellipsoid(random, d);
      add(slide, system, drawn, drawn.start, From::slide);
    }
    // Little decay: it is still moving when the momentum has come to rest.
    const System slow{.flow = kind, .lambda = 0.05, .beta = 2};
    add(slide, slow, tilted_plane(), tilted_plane().start, From::start);
    add(slide, slow, problem("circle"), kCircleStart, From::start);
    section.claims.push_back(equation_claim(name_of({.flow = kind}), slide));
  }
  const Watched watched = watch({.flow = Flow::sgd}, problem("circle"), kCircleStart, usual_options(2.5));
  section.claims.push_back(unique_claim(watched.trajectory));
  section.figures.push_back(selector_figure(watched.trajectory));
  return section;
}

}  // namespace cautious::lab
