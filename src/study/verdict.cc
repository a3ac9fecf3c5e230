// Paired differences of the contrasts and what may be said of them. A contrast of best points is fitted crosswise: the point of
// a seed is the one that was best on all other seeds, so that choosing and judging never share a run.
#include "study/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <cautious/error.h>

#include "recipe/names.h"

namespace cautious::study {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLevel = 0.05;

const Arm& arm_named(const Plan& plan, const std::string& name) {
  const auto found = std::find_if(plan.arms.begin(), plan.arms.end(), [&](const Arm& arm) { return arm.name == name; });
  if (found == plan.arms.end()) throw Error(Fault::usage, fmt::format("the plan has no arm '{}'", name));
  return *found;
}

bool follows(const Plan& plan, const std::string& control, const std::string& followed) {
  const Arm& arm = arm_named(plan, control);
  return arm.density_of == followed || arm.budget_of == followed;
}

// What a control keeps of the arm it follows.
std::string control_words(const Plan& plan, const std::string& control) {
  return arm_named(plan, control).density_of.empty() ? "plain decay of the same budget" : "a random mask of the same density";
}

std::string short_key(const std::string& key) { return key.substr(key.rfind('.') + 1); }

std::string words_of(const Overrides& point) {
  std::vector<std::string> words;
  for (const auto& [key, value] : point) words.push_back(short_key(key) + "=" + value);
  return fmt::format("{}", fmt::join(words, ", "));
}

// Mean over the seeds but one; NaN if none of them is done.
double mean_without(const std::vector<double>& losses, std::size_t left_out) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t seed = 0; seed < losses.size(); ++seed) {
    if (seed == left_out || std::isnan(losses[seed])) continue;
    sum += losses[seed];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kNaN;
}

// For every seed the point of the arm that was best on the other seeds; the only one where there is but one.
std::vector<Overrides> chosen_points(const Results& results, const std::string& arm) {
  const std::vector<Overrides> points = points_of(results, arm);
  const std::size_t seeds = results.plan.seeds.size();
  std::vector<std::vector<double>> losses;
  for (const Overrides& point : points) losses.push_back(losses_of(results, arm, point));
  std::vector<Overrides> chosen;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    std::size_t best = 0;
    double lowest = kNaN;
    for (std::size_t point = 0; point < points.size(); ++point) {
      const double mean = mean_without(losses[point], seeds > 1 ? seed : seeds);
      if (mean < lowest || (std::isnan(lowest) && !std::isnan(mean))) {
        lowest = mean;
        best = point;
      }
    }
    chosen.push_back(points[best]);
  }
  return chosen;
}

// One loss per seed, each at its point.
std::vector<double> losses_at(const Results& results, const std::string& arm, const std::vector<Overrides>& points) {
  std::vector<double> losses;
  for (std::size_t seed = 0; seed < points.size(); ++seed) losses.push_back(losses_of(results, arm, points[seed])[seed]);
  return losses;
}

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

bool significant(const Paired& paired) { return paired.n >= 2 && paired.t_p < kLevel; }

std::string figures(const Paired& paired) {
  return fmt::format("{:.4f} +/- {:.4f} nats (95%, {} seeds, {})", std::abs(paired.difference),
                     (paired.interval.high - paired.interval.low) / 2, paired.n, p_text(paired.t_p));
}

std::string sentence_of(const ContrastResult& result, const std::string& a, const std::string& b) {
  const Paired& paired = result.paired;
  if (paired.n == 0) return fmt::format("{} against {}: no seed has both runs done", a, b);
  if (paired.n == 1) {
    return fmt::format("{} against {}: {:+.4f} nats from one seed, which says nothing about chance; use more seeds", a, b,
                       paired.difference);
  }
  if (significant(paired)) {
    return fmt::format("{} has a {} validation loss than {}, by {}", a, paired.difference < 0 ? "lower" : "higher", b,
                       figures(paired));
  }
  const std::string needed = result.needed > 1000 ? "more than 1000" : std::to_string(result.needed);
  return fmt::format(
      "no difference between {} and {} is detectable: {:+.4f} +/- {:.4f} nats (95%, {} seeds, {}); {} seeds find "
      "{:.4f} or more, a difference as small as this one would need {}",
      a, b, paired.difference, (paired.interval.high - paired.interval.low) / 2, paired.n, p_text(paired.t_p), paired.n,
      result.detectable, needed);
}

ContrastResult judged(const Contrast& contrast, std::string name, const std::vector<double>& a, const std::vector<double>& b) {
  ContrastResult result;
  result.contrast = contrast;
  result.name = std::move(name);
  result.primary = contrast.primary;
  std::vector<double> kept_a, kept_b;
  for (std::size_t seed = 0; seed < a.size(); ++seed) {
    if (std::isnan(a[seed]) || std::isnan(b[seed])) continue;
    kept_a.push_back(a[seed]);
    kept_b.push_back(b[seed]);
  }
  result.paired = paired(kept_a, kept_b);
  if (result.paired.n >= 2) {
    result.needed = pairs_needed(result.paired.difference, result.paired.sd);
    result.detectable = detectable_difference(result.paired.n, result.paired.sd);
  }
  result.sentence = sentence_of(result, contrast.a, contrast.b);
  return result;
}

ContrastResult best_against_best(const Results& results, const Contrast& contrast) {
  const std::vector<Overrides> points_a = chosen_points(results, contrast.a);
  const bool control = follows(results.plan, contrast.b, contrast.a);
  const std::vector<Overrides> points_b = control ? points_a : chosen_points(results, contrast.b);
  std::vector<std::string> keys;
  for (const Axis& axis : results.plan.grid) keys.push_back(short_key(axis.key));
  const std::string where = keys.empty() ? ""
                            : control    ? fmt::format(", at the best {} of {}", fmt::join(keys, ", "), contrast.a)
                                         : fmt::format(", each at its best {}", fmt::join(keys, ", "));
  return judged(contrast, fmt::format("{} - {}{}", contrast.a, contrast.b, where), losses_at(results, contrast.a, points_a),
                losses_at(results, contrast.b, points_b));
}

void point_by_point(const Results& results, const Contrast& contrast, std::vector<ContrastResult>& all) {
  const std::vector<Overrides> points_a = points_of(results, contrast.a), points_b = points_of(results, contrast.b);
  for (const Overrides& point : points_a.size() >= points_b.size() ? points_a : points_b) {
    const Overrides &at_a = points_a.size() == 1 ? points_a[0] : point, &at_b = points_b.size() == 1 ? points_b[0] : point;
    ContrastResult result =
        judged(contrast, fmt::format("{} - {}{}{}", contrast.a, contrast.b, point.empty() ? "" : " at ", words_of(point)),
               losses_of(results, contrast.a, at_a), losses_of(results, contrast.b, at_b));
    if (!point.empty()) result.sentence = fmt::format("at {} {}", words_of(point), result.sentence);
    all.push_back(std::move(result));
  }
}

// What a comparison with a control adds to a difference.
std::string control_clause(const Plan& plan, const ContrastResult& result) {
  const std::string control = control_words(plan, result.contrast.b);
  if (result.paired.n < 2) return fmt::format("too few seeds to compare it with {}", control);
  if (significant(result.paired)) {
    return fmt::format("it is {} than {}, by {}", result.paired.difference < 0 ? "better" : "worse", control,
                       figures(result.paired));
  }
  return fmt::format("not distinguishable from {} ({:+.4f} +/- {:.4f} nats, {})", control, result.paired.difference,
                     (result.paired.interval.high - result.paired.interval.low) / 2, p_text(result.paired.t_p));
}

std::string summary(const Plan& plan, const std::vector<ContrastResult>& contrasts) {
  std::string text;
  for (const ContrastResult& result : contrasts) {
    if (!result.primary) continue;
    const bool control = !text.empty() && follows(plan, result.contrast.b, result.contrast.a);
    text += (text.empty() ? "" : "; ") + (control ? control_clause(plan, result) : result.sentence);
  }
  return text.empty() ? "no contrast was fixed beforehand: everything here is exploratory" : text;
}

}  // namespace

Verdict verdict_of(const Results& results) {
  Verdict verdict;
  for (const Contrast& contrast : results.plan.contrasts) {
    if (contrast.best) {
      verdict.contrasts.push_back(best_against_best(results, contrast));
    } else {
      point_by_point(results, contrast, verdict.contrasts);
    }
  }
  std::stable_partition(verdict.contrasts.begin(), verdict.contrasts.end(), [](const ContrastResult& r) { return r.primary; });
  verdict.exploratory = static_cast<std::size_t>(
      std::count_if(verdict.contrasts.begin(), verdict.contrasts.end(), [](const ContrastResult& r) { return !r.primary; }));
  verdict.sentence = summary(results.plan, verdict.contrasts);
  return verdict;
}

}  // namespace cautious::study
