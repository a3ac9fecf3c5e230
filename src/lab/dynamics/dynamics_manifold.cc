// On the manifold of minimisers: the sliding motion of equation (2), and why it does not end on the Pareto set for sign-like
// updates.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "lab/dynamics/dynamics_direction.h"
#include "lab/dynamics/dynamics_sections.h"
#include "lab/dynamics/dynamics_watch.h"
#include "lab/dynamics/random_problem.h"

namespace cautious::lab {
namespace {

// While a trajectory of SGD or SGDM slides in all coordinates.
struct Slide {
  std::size_t trajectories = 0, slid = 0, points = 0, moving = 0;
  double outside = 0;   // of the selectors: how far from [0, 1]
  double residual = 0;  // |Hessian (s x)| over |Hessian| |x|
  double motion = 0;    // |x' + lambda s x| over lambda |x|
  double gradient = 0;  // |g| over that at the start
};

bool slides_whole(const FlowPoint& point) {
  return !point.sliding.empty() && std::find(point.sliding.begin(), point.sliding.end(), false) == point.sliding.end();
}

void add(Slide& slide, const System& system, const Problem& problem, PointView start, double t_end) {
  const Inclusion inclusion = inclusion_of(system, problem);
  FlowOptions options = usual_options(t_end);
  options.most_events = 20000;
  const Trajectory trajectory = flow(inclusion, state_at(system, problem, start, options.t_begin), options);
  const double first = as_vector(PointView(gradient(problem, start))).norm();
  const std::size_t d = problem.size();
  bool slid = false;
  for (const FlowPoint& point : trajectory.points) {
    if (!slides_whole(point)) continue;
    slid = true;
    ++slide.points;
    const PointView x = PointView(point.z).first(d);
    Eigen::VectorXd sx(d);
    for (std::size_t i = 0; i < d; ++i) {
      const double s = selector(system, x, point.side, {}, i);
      slide.outside = std::max({slide.outside, -s, s - 1});
      sx[static_cast<Eigen::Index>(i)] = s * x[i];
    }
    slide.moving += sx.norm() > 1e-6 * as_vector(x).norm();
    Point dz(point.z.size());
    inclusion.field(point.t, point.z, point.side, dz);
    const Matrix h = hessian(problem, x);
    const double length = as_vector(x).norm();
    slide.residual = std::max(slide.residual, (h * sx).norm() / (h.norm() * length));
    const Eigen::VectorXd rest = as_vector(PointView(dz).first(d)) + system.lambda * sx;
    slide.motion = std::max(slide.motion, rest.norm() / (system.lambda * length));
    slide.gradient = std::max(slide.gradient, as_vector(PointView(gradient(problem, x))).norm() / first);
  }
  ++slide.trajectories;
  slide.slid += slid;
}

// Explicit Euler steps of SGD + CWD, as a discrete optimizer would do them.
Point small_steps(const Problem& problem, double lambda, Point x, double time, double step) {
  Point g(x.size());
  for (auto left = static_cast<std::int64_t>(std::llround(time / step)); left > 0; --left) {
    problem.gradient(x, g);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= step * (g[i] + (g[i] * x[i] >= 0 ? lambda * x[i] : 0));
  }
  return x;
}

const Point kCircleStart = {4.5, 2.2};  // comes to the circle where it is not Pareto-optimal

Figure selector_figure(const Trajectory& trajectory) {
  LineChart chart =
      new_chart("Selectors while SGD + CWD slides along the circle", "time", "selector",
                "The selectors of both coordinates over time: they add up to 1 while the trajectory slides, and are 0 on "
                "the Pareto set.");
  ChartSeries first = new_series("s of x", 0), second = new_series("s of y", 1);
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

}  // namespace

Section manifold_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section("On the manifold: equation (2)",
                                "SGD and SGDM with CWD on degenerate quadratics, ellipsoids and the circle. Where the "
                                "trajectory has come to the minimisers the "
                                "masks' values between 0 and 1 are solved for so that it stays.");
  for (const Flow kind : {Flow::sgd, Flow::sgdm}) {
    Slide slide;
    Random random(options.seed + 31);
    for (std::size_t n = 0; n < options.trials; ++n) {
      progress((static_cast<double>(n) / static_cast<double>(options.trials) + (kind == Flow::sgdm)) / 2, "sliding");
      System system = random_system(random, {.flow = kind});
      const std::size_t d = 2 + random.below(4);
      const Problem drawn = n % 2 == 0 ? random_quadratic(random, d, d - 1) : random_ellipsoid(random, d);
      add(slide, system, drawn, drawn.start, 30);
    }
    add(slide, {.flow = kind}, problem("circle"), kCircleStart, 30);
    const bool holds =
        slide.slid > 0 && slide.outside <= 1e-9 && slide.residual < 1e-5 && slide.motion < 1e-3 && slide.gradient < 1e-4;
    section.claims.push_back(
        {fmt::format("{}: on the manifold the motion is -λ s x with s in [0, 1] and stays on it", name_of({.flow = kind})),
         "equation (2)", outcome(holds),
         fmt::format("{} of {} trajectories slide, {} points, x in motion at {}: selectors outside [0, 1] by {:.0e}, |∇²f (s "
                     "x)| at most {:.0e} "
                     "of |∇²f| |x|, "
                     "|x' + λ s x| at most {:.0e} of λ |x|, |g| at most {:.0e} of the start's",
                     slide.slid, slide.trajectories, slide.points, slide.moving, slide.outside, slide.residual, slide.motion,
                     slide.gradient)});
  }
  const Problem& circle = problem("circle");
  const System sgd{.flow = Flow::sgd};
  const double time = 2;
  const Watched watched = watch(sgd, circle, kCircleStart, usual_options(2.5));
  FlowOptions until = usual_options(time);
  until.t_begin = 0;
  const Point end = flow(inclusion_of(sgd, circle), kCircleStart, until).points.back().z;
  double last = 0;
  std::string differences;
  for (const double step : {1e-2, 1e-3, 1e-4}) {
    const Point there = small_steps(circle, sgd.lambda, kCircleStart, time, step);
    last = std::hypot(there[0] - end[0], there[1] - end[1]);
    differences += fmt::format("{}{:.0e}", differences.empty() ? "" : ", ", last);
  }
  section.claims.push_back(
      {"The sliding motion is what small steps of SGD + CWD do", "", last < 1e-3 ? Outcome::noted : Outcome::fails,
       fmt::format("on the circle at time {:g}, steps of 10⁻², 10⁻³ and 10⁻⁴ end {} from it", time, differences)});
  section.claims.push_back({"For SGD on a manifold of codimension 1 the selectors are unique",
                            "section 3.2: \"need not be unique\"", Outcome::noted,
                            "all entries of g change sign together there, so Filippov's set is the segment between two fields, "
                            "s_i = (1 + τ sgn(n_i x_i))/2 "
                            "with one τ in [-1, 1]; on the circle s of x and s of y add up to 1"});
  section.figures.push_back(selector_figure(watched.trajectory));
  return section;
}

}  // namespace cautious::lab
