// Steps of Dormand and Prince with the sides frozen, events on their dense output, and the decision at an event: cross or
// slide.
//
// Gradient flow slides as soon as it meets a surface that it cannot leave. With momentum it meets m_i = 0 with a gradient that
// is not 0 and crosses; where the sides then drive it back again and again, the swings get smaller and faster without end. Once
// they are within slide_within they are replaced by the sliding they tend to. All of z is then shifted along the jump of the
// field that the sides make, to where the drive is 0: in a swing that is where the mean motion is, so the shift errs by the
// swing's square only.
#include "lab/dynamics/inclusion.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>

#include <cautious/error.h>

#include "lab/dynamics/sliding.h"

namespace cautious::lab {
namespace {

namespace odeint = boost::numeric::odeint;

// The company of a switch counts as turned beyond this part of its class's drive.
constexpr double kTurned = 1e-9;

// No time passes in a step below this part of t.
constexpr double kLeast = 4e-16;

bool is_finite(PointView z) {
  return std::all_of(z.begin(), z.end(), [](double v) { return std::isfinite(v); });
}

class Solver {
 public:
  Solver(const Inclusion& inclusion, Point z, const FlowOptions& options)
      : inclusion_(inclusion),
        options_(options),
        floor_(1e-6 * options.slide_within),
        sliding_(inclusion, z),
        stepper_(odeint::make_controlled<odeint::runge_kutta_dopri5<Point>>(options.absolute, options.relative)),
        t_(options.t_begin),
        z_(std::move(z)),
        dz_(inclusion.size),
        z_next_(inclusion.size),
        dz_next_(inclusion.size),
        look_(inclusion.size),
        rate_(inclusion.size),
        side_(inclusion.switches, 1),
        marked_(inclusion.switches, false),
        q_(inclusion.switches),
        p_(inclusion.switches),
        swings_(inclusion.switches) {}

  Trajectory run() {
    begin();
    while (options_.t_end - t_ > kLeast * std::abs(t_) && result_.end == FlowEnd::time) {
      advance();
      if (result_.events >= options_.most_events || result_.steps >= options_.most_steps) result_.end = FlowEnd::events;
    }
    if (result_.end == FlowEnd::time) result_.points.back().t = std::max(t_, options_.t_end);
    return std::move(result_);
  }

 private:
  void begin() {
    inclusion_.indicator(z_, q_);
    // Where q is 0 the side is the one that it goes to; with momentum its rate does not depend on it.
    inclusion_.field(t_, z_, side_, dz_);
    const double span = 1e-6;
    for (std::size_t i = 0; i < z_.size(); ++i) look_[i] = z_[i] + span * dz_[i];
    inclusion_.indicator(look_, p_);
    for (std::size_t i = 0; i < q_.size(); ++i) {
      side_[i] = (std::abs(q_[i]) > floor_ ? q_[i] : p_[i]) < 0 ? -1 : 1;
    }
    swings_.see(q_);
    decide(true);
    record();
    const double speed = as_vector(PointView(dz_)).lpNorm<Eigen::Infinity>();
    const double length = 1 + as_vector(PointView(z_)).lpNorm<Eigen::Infinity>();
    dt_ = std::min(options_.t_end - t_, 1e-2 * length / (1 + speed));
    last_event_ = t_;
  }

  void record() { result_.points.push_back({t_, z_, side_, marked_}); }

  void rate(PointView z, std::span<double> dz, double t) {
    if (sliding_.classes() == 0) return inclusion_.field(t, z, side_, dz);
    sliding_.solve(t, z, side_, dz);
  }

  // From z_ at t_ to z_next_; the new time.
  double try_step() {
    const auto rhs = [this](const Point& z, Point& dz, double t) { rate(z, dz, t); };
    while (true) {
      const double left = options_.t_end - t_;
      const bool is_last = dt_ >= left * (1 - 1e-12);
      double dt = is_last ? left : dt_, t = t_;
      const double tried = dt;
      if (tried <= kLeast * std::abs(t_) || tried < 1e-300) {
        throw Error(Fault::failure, fmt::format("the flow cannot be continued at t = {}: its field is not smooth there", t_));
      }
      const auto outcome = stepper_.try_step(std::cref(rhs), z_, dz_, t, z_next_, dz_next_, dt);
      const bool accepted = outcome == odeint::success && is_finite(z_next_) && is_finite(dz_next_);
      dt_ = outcome == odeint::success && !accepted ? tried / 5 : dt;
      if (accepted) {
        ++result_.steps;
        return is_last ? options_.t_end : t;
      }
      ++result_.rejected;
    }
  }

  // What must not fall below 0: one value per switch, then one per class.
  void watch(double t, PointView z, Point& values, Point& slacks) {
    const std::size_t d = inclusion_.switches;
    inclusion_.indicator(z, q_);
    values.assign(d + sliding_.classes(), 0);
    slacks.assign(d + sliding_.classes(), floor_);
    for (std::size_t i = 0; i < d; ++i) values[i] = q_[i] * side_[i];
    if (sliding_.classes() == 0) return;
    sliding_.solve(t, z, side_, rate_);
    for (std::size_t i = 0; i < d; ++i) {
      if (!sliding_.slides(i)) continue;
      values[i] = 0;
      slacks[i] = kTurned;
    }
    sliding_.company(z, std::span(values).first(d));
    for (std::size_t c = 0; c < sliding_.classes(); ++c) {
      values[d + c] = 2 * Sliding::kLeaves - sliding_.leaving(c);
      slacks[d + c] = 0;
    }
  }

  void advance() {
    const double t_next = try_step();
    const auto go_to = [&](double t) {
      if (t == t_next) {
        look_ = z_next_;
      } else {
        stepper_.stepper().calc_state(t, look_, z_, dz_, t_, z_next_, dz_next_, t_next);
      }
    };
    const auto watch_at = [&](double t, Point& values, Point& slacks) {
      go_to(t);
      watch(t, look_, values, slacks);
    };
    if (const auto event = search_.first(watch_at, t_, t_next, [&] { swings_.see(q_); })) {
      go_to(event->t);
      return meet(*event);
    }
    t_ = t_next;
    z_.swap(z_next_);
    dz_.swap(dz_next_);
    if (sliding_.classes() > 0) slide_on();
    record();
  }

  // Takes what the step erred by off the surfaces.
  void slide_on() {
    inclusion_.settle(z_, marked_);
    sliding_.project(z_, marked_);
    sliding_.refresh(z_);
    sliding_.solve(t_, z_, side_, dz_);
  }

  // The event at look_.
  void meet(const Event& event) {
    const auto [t, which] = event;
    const double since = t - last_event_;
    dt_ = std::min(dt_, 2 * std::max({since, before_last_, 1e-12 * std::abs(t)}));
    before_last_ = since;
    last_event_ = t;
    t_ = t;
    z_ = look_;
    ++result_.events;
    if (sliding_.classes() > 0) sliding_.solve(t_, z_, side_, dz_);
    record();
    inclusion_.indicator(z_, q_);
    if (which >= inclusion_.switches) {
      decide(false);
    } else if (sliding_.slides(which)) {
      slide_on();
      sliding_.turn(which, t_, z_, side_);
      sliding_.solve(t_, z_, side_, dz_);
    } else {
      side_[which] = -side_[which];
      swings_.cross(which, result_.events);
      decide(false);
    }
    record();
  }

  // Which switches slide from here on, the sides of all, and dz_.
  void decide(bool is_start) {
    before_ = marked_;
    free_side_ = side_;
    inclusion_.drive(z_, p_);
    for (std::size_t i = 0; i < marked_.size(); ++i) marked_[i] = before_[i] || may_slide(i);
    if (others_swing()) drop_new();
    while (is_any_marked()) {
      look_ = z_;
      inclusion_.settle(look_, marked_);
      const bool is_there = sliding_.project(look_, marked_) <= options_.slide_within;
      if (marked_ != before_ &&
          (!is_there || (!sliding_.is_first_order() && !sliding_.may_begin(look_, marked_, options_.slide_within)))) {
        drop_new();
        continue;
      }
      sliding_.group(look_, marked_);
      sliding_.solve(t_, look_, side_, rate_);
      if (!drop_those_that_leave(is_start)) break;
    }
    if (!options_.may_slide && marked_ != before_ && is_any_marked()) {
      result_.end = FlowEnd::slide;
      marked_ = before_;
      side_ = free_side_;
      return;
    }
    begin_sliding();
  }

  bool is_any_marked() const { return std::find(marked_.begin(), marked_.end(), true) != marked_.end(); }

  bool may_slide(std::size_t i) const {
    if (std::abs(q_[i]) > options_.slide_within) return false;
    return std::abs(p_[i]) <= options_.slide_within || (!sliding_.is_first_order() && swings_.size(i) <= options_.slide_within);
  }

  // Takes back that switches begin to slide.
  void drop_new() {
    for (std::size_t i = 0; i < marked_.size(); ++i) {
      if (!before_[i] && marked_[i]) side_[i] = free_side_[i];
    }
    marked_ = before_;
  }

  // Whether some switch still swings beyond slide_within, about as fast as those that do not: they come to slide together.
  bool others_swing() const {
    if (sliding_.is_first_order()) return false;
    for (std::size_t i = 0; i < marked_.size(); ++i) {
      if (!marked_[i] && swings_.is_lively(i, result_.events) && swings_.size(i) > options_.slide_within) return true;
    }
    return false;
  }

  // Whether class c has not come to rest, nor to swings within slide_within.
  bool swings_far(std::size_t c) const {
    return !sliding_.is_first_order() && sliding_.drive(c, p_) > options_.slide_within &&
           sliding_.swing(c, p_) > options_.slide_within;
  }

  // After a solve. Whether there were some.
  bool drop_those_that_leave(bool is_start) {
    bool is_some = false;
    for (std::size_t i = 0; i < marked_.size(); ++i) {
      if (!marked_[i]) continue;
      const std::size_t c = sliding_.class_of(i);
      if (sliding_.leaving(c) <= Sliding::kLeaves) {
        if (before_[i] || !(sliding_.repels(c) || swings_far(c))) continue;
        drop_new();
        return true;
      }
      is_some = true;
      marked_[i] = false;
      // On its surface it goes where the solution says; beside it, it has a side already.
      const bool is_on_surface = before_[i] || ((is_start || sliding_.is_first_order()) && std::abs(q_[i]) <= floor_);
      if (!is_on_surface) side_[i] = free_side_[i];
    }
    return is_some;
  }

  // To the middle of the swing, if that is nearer to the surfaces.
  void shift() {
    const auto farthest = [&](PointView z) {
      inclusion_.drive(z, p_);
      double most = 0;
      for (std::size_t i = 0; i < p_.size(); ++i) most = marked_[i] ? std::max(most, std::abs(p_[i])) : most;
      return most;
    };
    look_ = z_;
    sliding_.shift(p_, look_);
    if (farthest(look_) < farthest(z_)) z_ = look_;
  }

  void begin_sliding() {
    if (is_any_marked()) {
      if (!sliding_.is_first_order() && marked_ != before_) shift();
      inclusion_.settle(z_, marked_);
      sliding_.project(z_, marked_);
    }
    sliding_.group(z_, marked_);
    rate(z_, dz_, t_);
  }

  const Inclusion& inclusion_;
  const FlowOptions& options_;
  double floor_;  // an indicator this near 0 is at 0
  Sliding sliding_;
  odeint::controlled_runge_kutta<odeint::runge_kutta_dopri5<Point>> stepper_;
  double t_, dt_ = 0, last_event_ = 0, before_last_ = 0;
  Point z_, dz_, z_next_, dz_next_, look_, rate_;
  Point side_, free_side_;             // free: as if none slid
  std::vector<bool> marked_, before_;  // that slide
  Point q_, p_;
  Swings swings_;
  EventSearch search_;
  Trajectory result_;
};

}  // namespace

Trajectory flow(const Inclusion& inclusion, Point z, const FlowOptions& options) {
  if (z.size() != inclusion.size || !is_finite(z)) {
    throw Error(Fault::usage, fmt::format("a start needs {} finite numbers; this one has {}", inclusion.size, z.size()));
  }
  return Solver(inclusion, std::move(z), options).run();
}

Point sliding_sides(const Inclusion& inclusion, double t, PointView z, Point side, const std::vector<bool>& sliding) {
  Sliding found(inclusion, z);
  found.group(z, sliding);
  Point dz(inclusion.size);
  if (found.classes() > 0) found.solve(t, z, side, dz);
  return side;
}

}  // namespace cautious::lab
