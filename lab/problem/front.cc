// Seeds on a grid are projected on M; from each that lands on a new curve, the curve is walked both ways: a step along the
// tangent and back to M.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <Eigen/Core>

#include <cautious/error.h>

#include "lab/problem/minimisers.h"

namespace cautious::lab {
namespace {

using Eigen::Vector2d;

constexpr int kSeeds = 16;             // per axis
constexpr std::size_t kMost = 4000;    // points of a curve one way
constexpr double kLeastValue = 1e-12;  // of the seeds' range of f: more above the least one is not a minimiser
// Parts of the square's side:
constexpr double kLongestChord = 1.0 / 80;  // step along a curve
constexpr double kShortestChord = 1e-7;
constexpr double kBend = 4e-6;    // how far a chord may be from the curve
constexpr double kKnown = 1e-4;   // so near to a curve is on it
constexpr double kChange = 1e-6;  // how well the ends of an optimal part are known
constexpr double kSmaller = 1e-9;

struct Vertex {
  Stationary on;
  FrontPoint front;
};

using Curve = std::vector<Vertex>;

Vector2d in_plane(const Stationary& at) { return {at.x[0], at.x[1]}; }
Vector2d in_plane(drawing::PlanePoint p) { return {p.x, p.y}; }

double to_segment(const Vector2d& p, const Vector2d& a, const Vector2d& b) {
  const double square = (b - a).squaredNorm();
  const double part = square > 0 ? std::clamp((p - a).dot(b - a) / square, 0.0, 1.0) : 0;
  return (p - a - part * (b - a)).norm();
}

class Tracer {
 public:
  Tracer(const Problem& problem, double low, double high) : problem_(problem), low_(low), high_(high), side_(high - low) {}

  std::vector<Curve> trace() {
    std::vector<Curve> curves;
    for (const Stationary& seed : seeds()) {
      const Vector2d at = in_plane(seed);
      const auto is_near = [&](const Curve& curve) { return distance(curve, at) < kKnown * side_; };
      if (seed.tangent.cols() > 1 || std::ranges::any_of(curves, is_near)) continue;
      curves.push_back(through(seed));
    }
    for (Curve& curve : curves) split(curve, [](FrontPoint&) {});
    std::vector<Vector2d> sizes;
    for (const Curve& curve : curves) {
      for (const Vertex& vertex : curve) sizes.emplace_back(in_plane(vertex.on).cwiseAbs());
    }
    for (Curve& curve : curves) {
      split(curve, [&](FrontPoint& made) {
        made.global = made.local != Pareto::beaten && !is_beaten(in_plane(made.at).cwiseAbs(), sizes);
      });
    }
    return curves;
  }

 private:
  // Minimisers in the square.
  std::vector<Stationary> seeds() {
    std::vector<Stationary> found;
    double highest = -std::numeric_limits<double>::infinity();
    least_ = problem_.least.value_or(std::numeric_limits<double>::infinity());
    for (int i = 0; i < kSeeds * kSeeds; ++i) {
      const Point seed{low_ + side_ * (i % kSeeds + 0.5) / kSeeds, low_ + side_ * (i / kSeeds + 0.5) / kSeeds};
      if (const double f = problem_.value(seed); std::isfinite(f)) highest = std::max(highest, f);
      auto at = nearest_stationary(problem_, seed, side_);
      if (!at || !inside(in_plane(*at))) continue;
      least_ = std::min(least_, problem_.value(at->x));
      found.push_back(*std::move(at));
    }
    above_ = kLeastValue * (highest - least_);
    std::erase_if(found, [&](const Stationary& at) { return !is_minimiser(at); });
    return found;
  }

  bool inside(const Vector2d& p) const { return p.minCoeff() >= low_ && p.maxCoeff() <= high_; }
  bool is_minimiser(const Stationary& at) const { return problem_.value(at.x) - least_ <= above_; }

  // The largest distance of the curve from the chord between two of its points, by the angle between the tangents.
  static double bend(const Stationary& a, const Stationary& b) {
    const double cosine = std::min(1.0, std::abs(a.tangent.col(0).dot(b.tangent.col(0))));
    return (in_plane(b) - in_plane(a)).norm() * std::sqrt(2 - 2 * cosine) / 8;
  }

  // From the start on, first along `heading`, until the curve ends at the border or in the start again.
  std::vector<Stationary> walk(const Stationary& start, Vector2d heading) const {
    std::vector<Stationary> path{start};
    double step = kLongestChord * side_;
    while (step > kShortestChord * side_ && path.size() < kMost) {
      const Stationary& last = path.back();
      const Vector2d tangent = last.tangent.col(0);
      const Vector2d ahead = in_plane(last) + std::copysign(step, tangent.dot(heading)) * tangent;
      auto next = nearest_stationary(problem_, Point{ahead.x(), ahead.y()}, step / 2);
      if (!next || next->tangent.cols() != 1 || !inside(in_plane(*next)) || !is_minimiser(*next) ||
          bend(last, *next) > kBend * side_) {
        step /= 2;
        continue;
      }
      if (path.size() > 2 && to_segment(in_plane(start), in_plane(last), in_plane(*next)) < 2 * kBend * side_) next = start;
      heading = in_plane(*next) - in_plane(last);
      path.push_back(*std::move(next));
      if (path.back().x == start.x) break;
      step = std::min(kLongestChord * side_, 1.5 * step);
    }
    return path;
  }

  Curve through(const Stationary& seed) const {
    std::vector<Stationary> path{seed};
    if (seed.tangent.cols() == 1) {
      path = walk(seed, seed.tangent.col(0));
      if (path.size() < 2 || path.back().x != seed.x) {
        std::vector<Stationary> back = walk(seed, -seed.tangent.col(0));
        std::ranges::reverse(back);
        back.insert(back.end(), path.begin() + 1, path.end());
        path = std::move(back);
      }
    }
    Curve curve;
    for (Stationary& at : path) curve.push_back(vertex(std::move(at)));
    return curve;
  }

  Vertex vertex(Stationary at) const {
    const FrontPoint front{{at.x[0], at.x[1]}, pareto(problem_, at).pareto, false};
    return {std::move(at), front};
  }

  // Labels all points, and halves the way between neighbours that differ.
  template <typename Label>
  void split(Curve& curve, const Label& label) const {
    for (Vertex& made : curve) label(made.front);
    Curve finer;
    for (Vertex& made : curve) {
      if (!finer.empty()) between(Vertex(finer.back()), made, label, finer);
      finer.push_back(std::move(made));
    }
    curve = std::move(finer);
  }

  template <typename Label>
  void between(const Vertex& a, const Vertex& b, const Label& label, Curve& out) const {
    const bool same = a.front.local == b.front.local && a.front.global == b.front.global;
    const double length = (in_plane(b.on) - in_plane(a.on)).norm();
    if (same || length < kChange * side_) return;
    const Vector2d middle = (in_plane(a.on) + in_plane(b.on)) / 2;
    auto at = nearest_stationary(problem_, Point{middle.x(), middle.y()}, length / 4);
    if (!at) return;
    Vertex made = vertex(*std::move(at));
    label(made.front);
    between(a, made, label, out);
    out.push_back(made);
    between(made, b, label, out);
  }

  bool is_beaten(const Vector2d& size, const std::vector<Vector2d>& by) const {
    return std::ranges::any_of(by, [&](const Vector2d& other) {
      const Vector2d fall = size - other;
      return fall.minCoeff() >= 0 && fall.maxCoeff() > kSmaller * side_;
    });
  }

  static double distance(const Curve& curve, const Vector2d& p) {
    double least = (in_plane(curve.front().on) - p).norm();
    for (std::size_t i = 1; i < curve.size(); ++i) {
      least = std::min(least, to_segment(p, in_plane(curve[i - 1].on), in_plane(curve[i].on)));
    }
    return least;
  }

  const Problem& problem_;
  double low_, high_, side_;
  double least_ = 0, above_ = 0;
};

// To the points that belong and to the segments between two of them.
template <typename Belongs>
double distance(const FrontTrace& trace, drawing::PlanePoint to, const Belongs& belongs) {
  const Vector2d p = in_plane(to);
  double least = std::numeric_limits<double>::infinity();
  for (const auto& curve : trace.curves) {
    const FrontPoint* before = nullptr;
    for (const FrontPoint& point : curve) {
      if (belongs(point))
        least = std::min(least, to_segment(p, in_plane(before != nullptr ? before->at : point.at), in_plane(point.at)));
      before = belongs(point) ? &point : nullptr;
    }
  }
  return least;
}

}  // namespace

FrontTrace trace_minimisers(const Problem& problem, double low, double high) {
  if (problem.size() != 2) {
    throw Error(Fault::usage,
                fmt::format("{} has {} variables; curves of minimisers are traced for 2", problem.name, problem.size()));
  }
  FrontTrace trace;
  for (const Curve& curve : Tracer(problem, low, high).trace()) {
    trace.curves.emplace_back();
    for (const Vertex& vertex : curve) trace.curves.back().push_back(vertex.front);
  }
  return trace;
}

double to_minimisers(const FrontTrace& trace, drawing::PlanePoint p) {
  return distance(trace, p, [](const FrontPoint&) { return true; });
}

double to_local_front(const FrontTrace& trace, drawing::PlanePoint p) {
  return distance(trace, p, [](const FrontPoint& point) { return point.local == Pareto::optimal; });
}

double to_global_front(const FrontTrace& trace, drawing::PlanePoint p) {
  return distance(trace, p, [](const FrontPoint& point) { return point.global; });
}

}  // namespace cautious::lab
