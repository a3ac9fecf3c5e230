// Paired differences of the contrasts and what may be said of them. A contrast of best points is fitted crosswise: the point of
// a seed is the one that was best on all other seeds, so that no run helps to choose the point it is judged at.
#include "study/verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"

namespace cautious::study {
namespace {

constexpr double kLevel = 0.05;

const Arm& arm_named(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.arms, name, &Arm::name);
  if (found == plan.arms.end()) throw Error(Fault::usage, fmt::format("the plan has no arm '{}'", name));
  return *found;
}

bool is_control_of(const Plan& plan, const std::string& control, const std::string& reference) {
  return arm_named(plan, control).reference() == reference;
}

// What a control has in common with its reference arm.
std::string control_text(const Plan& plan, const std::string& control) {
  return arm_named(plan, control).density_of.empty() ? "plain decay of the same budget" : "a random mask of the same density";
}

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

bool significant(const Paired& paired) { return paired.n >= 2 && paired.t_p < kLevel; }

// "4 seeds", "3 of 4 seeds" where a seed lacks one of the runs.
std::string seeds_text(const ContrastResult& result) {
  const std::size_t n = result.paired.n;
  return n == result.planned ? fmt::format("{} seeds", n) : fmt::format("{} of {} seeds", n, result.planned);
}

// A t-test that finds what the test without its assumptions does not is said to do so.
std::string flips_text(const Paired& paired) {
  if (!significant(paired) || paired.permutation_p < kLevel) return "";
  const bool lowest = paired.permutation_p <= std::ldexp(2.0, -static_cast<int>(paired.n));
  return fmt::format(" in a t-test; {} by sign flips{}", p_text(paired.permutation_p),
                     lowest ? fmt::format(", the lowest that {} seeds can give", paired.n) : "");
}

// "(95%, 3 seeds, p = 0.034 in a t-test; p = 0.25 by sign flips, the lowest that 3 seeds can give)"
std::string tests_text(const ContrastResult& result) {
  return fmt::format("(95%, {}, {}{})", seeds_text(result), p_text(result.paired.t_p), flips_text(result.paired));
}

double half_width(const Paired& paired) { return (paired.interval.high - paired.interval.low) / 2; }

std::string amount_text(const ContrastResult& result) {
  return fmt::format("{:.4f} +/- {:.4f} nats {}", std::abs(result.paired.difference), half_width(result.paired),
                     tests_text(result));
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
                       amount_text(result));
  }
  const std::string needed = result.needed > 1000 ? "more than 1000" : std::to_string(result.needed);
  return fmt::format(
      "no difference between {} and {} is detectable: {:+.4f} +/- {:.4f} nats {}; {} seeds find {:.4f} or more with 80% power, "
      "a difference as small as this one would need {}",
      a, b, paired.difference, half_width(paired), tests_text(result), paired.n, result.detectable, needed);
}

ContrastResult judged(const Contrast& contrast, std::string name, const std::vector<double>& a, const std::vector<double>& b) {
  ContrastResult result;
  result.contrast = contrast;
  result.name = std::move(name);
  result.primary = contrast.primary;
  result.planned = a.size();
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
  const bool a_leads = is_control_of(results.plan, contrast.b, contrast.a),
             b_leads = is_control_of(results.plan, contrast.a, contrast.b);
  std::vector<std::string> keys;
  for (const Axis& axis : results.plan.grid) keys.emplace_back(run::without_section(axis.key));
  const std::string best = fmt::format("best {}", fmt::join(keys, ", "));
  const std::string where = keys.empty()         ? ""
                            : a_leads || b_leads ? fmt::format(", at the {} of {}", best, a_leads ? contrast.a : contrast.b)
                                                 : fmt::format(", each at its {}", best);
  return judged(contrast, fmt::format("{} - {}{}", contrast.a, contrast.b, where),
                losses_of(results, contrast.a, best_point(results, contrast.a)),
                losses_of(results, contrast.b, best_point(results, contrast.b)));
}

void point_by_point(const Results& results, const Contrast& contrast, std::vector<ContrastResult>& all) {
  const std::vector<Overrides> points_a = points_of(results, contrast.a), points_b = points_of(results, contrast.b);
  for (const Overrides& point : points_a.size() >= points_b.size() ? points_a : points_b) {
    const Overrides &at_a = points_a.size() == 1 ? points_a[0] : point, &at_b = points_b.size() == 1 ? points_b[0] : point;
    ContrastResult result =
        judged(contrast, fmt::format("{} - {}{}{}", contrast.a, contrast.b, point.empty() ? "" : " at ", point_text(point)),
               losses_of(results, contrast.a, at_a), losses_of(results, contrast.b, at_b));
    if (!point.empty()) result.sentence = fmt::format("at {} {}", point_text(point), result.sentence);
    all.push_back(std::move(result));
  }
}

// What a comparison with a control adds to a difference.
std::string control_clause(const Plan& plan, const ContrastResult& result) {
  const std::string control = control_text(plan, result.contrast.b);
  if (result.paired.n < 2) return fmt::format("too few seeds to compare it with {}", control);
  if (significant(result.paired)) {
    return fmt::format("it is {} than {}, by {}", result.paired.difference < 0 ? "better" : "worse", control,
                       amount_text(result));
  }
  return fmt::format("not distinguishable from {}: {:+.4f} +/- {:.4f} nats {}", control, result.paired.difference,
                     half_width(result.paired), tests_text(result));
}

std::string summary_of(const Plan& plan, const std::vector<ContrastResult>& contrasts) {
  std::string text;
  for (const ContrastResult& result : contrasts) {
    if (!result.primary) continue;
    const bool control = !text.empty() && is_control_of(plan, result.contrast.b, result.contrast.a);
    text += (text.empty() ? "" : "; ") + (control ? control_clause(plan, result) : result.sentence);
  }
  return text.empty() ? "no contrast was prespecified: everything here is exploratory" : text;
}

std::string diverged_clause(const Results& results) {
  const auto count = std::ranges::count(results.runs, RunStatus::diverged, &FinishedRun::status);
  return count == 0 ? "" : fmt::format("; {} of {} runs diverged and are left out", count, results.runs.size());
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
  verdict.sentence = summary_of(results.plan, verdict.contrasts) + diverged_clause(results);
  return verdict;
}

}  // namespace cautious::study
