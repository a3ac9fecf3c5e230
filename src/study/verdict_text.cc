// What may be said of the numbers of a verdict.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/recipe.h>

#include "base/text.h"
#include "study/verdict.h"

namespace cautious::study {
namespace {

constexpr std::size_t kMany = 1000;  // seeds

std::string first_of(const ContrastResult& result) { return cell_text(result.contrast.a, result.point_a); }
std::string second_of(const ContrastResult& result) { return cell_text(result.contrast.b, result.point_b); }

// "4 seeds", "3 of 4 seeds" where a seed lacks one of the runs.
std::string seeds_text(const ContrastResult& result) {
  const std::size_t n = result.paired.n;
  return n == result.planned ? fmt::format("{} seeds", n) : fmt::format("{} of {} seeds", n, result.planned);
}

// Why a difference is judged by its own spread, in a study of more than two arms.
std::string alone_text(const ContrastResult& result, std::size_t arms) {
  if (result.layout.arms > 2 || arms < 3) return "";
  return result.complete ? ", paired t-test of these two, which scatter unlike the other arms"
                         : ", paired t-test of the seeds that have both";
}

// "(95%, 5 seeds, p = 0.012, corrected for 2 contrasts p = 0.024)"
std::string tests_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  std::string text = fmt::format("95%, {}{}, {}", seeds_text(result), alone_text(result, results.plan.arms.size()),
                                 p_text(result.difference.p));
  if (verdict.family > 1 && !std::isnan(result.holm_p)) {
    text += fmt::format(", corrected for {} contrasts {}", verdict.family, p_text(result.holm_p));
  }
  return fmt::format("({})", text);
}

double half_width(const ContrastResult& result) {
  return (result.difference.interval.high - result.difference.interval.low) / 2;
}

std::string signed_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  const Measure& measure = verdict.measure;
  return fmt::format("{} +/- {} {}", measure.signed_number(result.difference.value),
                     measure.with_unit(measure.number(half_width(result))), tests_text(results, verdict, result));
}

std::string many_text(std::size_t seeds) { return seeds > kMany ? fmt::format("more than {}", kMany) : std::to_string(seeds); }

std::string seeds_needed_text(const Measure& measure, const ContrastResult& result) {
  const Power& power = result.power;
  if (power.needed <= result.paired.n) {
    return fmt::format("these seeds find {} with 80% power, one that is smaller may be missed", measure.target_text());
  }
  const std::string range =
      power.needed_low > kMany ? "" : fmt::format(" (95%: {} to {})", power.needed_low, many_text(power.needed_high));
  return fmt::format("{}{} seeds would find {} with 80% power", many_text(power.needed), range, measure.target_text());
}

// "weight_decay"; "point" where several keys are chosen.
std::string chosen_key(const Overrides& point) {
  const std::string text = point_text(point);
  return point.size() == 1 ? text.substr(0, text.find('=')) : "point";
}

std::string regret_text(const Measure& measure, const ContrastResult& result) {
  if (result.regret < std::abs(result.difference.value)) return "";
  const bool first = result.difference.value > 0;
  return fmt::format(
      "; the tuning seeds leave open whether another {} of {} is better by up to {}, so the difference "
      "may be one of choice",
      chosen_key(first ? result.point_a : result.point_b), first ? result.contrast.a : result.contrast.b,
      measure.with_unit(measure.number(result.regret)));
}

std::string claim_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  const Interval& interval = result.difference.interval;
  const Measure& measure = verdict.measure;
  const bool small = -measure.target < interval.low && interval.high < measure.target;
  return fmt::format(
      "{} has a {} {} than {}, by {} +/- {} {}{}{}", first_of(result), result.outcome == Outcome::lower ? "lower" : "higher",
      measure.name, second_of(result), measure.number(std::abs(result.difference.value)),
      measure.with_unit(measure.number(half_width(result))), tests_text(results, verdict, result),
      small ? fmt::format("; that is within {}, practically equal", measure.target_text()) : "", regret_text(measure, result));
}

std::string open_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  return fmt::format("no difference between {} and {} is detectable: {}; {}", first_of(result), second_of(result),
                     signed_text(results, verdict, result), seeds_needed_text(verdict.measure, result));
}

std::string undecided_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  return fmt::format("{} against {} is not decided: {}: extend it. Where they are, {} - {} is {}", result.contrast.a,
                     result.contrast.b, fmt::join(result.edges, " and "), first_of(result), second_of(result),
                     signed_text(results, verdict, result));
}

bool without_decay(const Overrides& point) {
  return std::ranges::any_of(point, [](const auto& entry) {
    return entry.first.ends_with("weight_decay") && base::parsed<double>(entry.second) == 0.0;
  });
}

std::string same_text(const ContrastResult& result) {
  if (without_decay(result.point_a) && without_decay(result.point_b)) {
    return fmt::format("nothing to compare between {} and {}: on the tuning seeds both were best without weight decay",
                       result.contrast.a, result.contrast.b);
  }
  return fmt::format("nothing to compare between {} and {}: they are the same in every seed", first_of(result),
                     second_of(result));
}

std::string missing_text(const Results& results, const Measure& measure, const ContrastResult& result) {
  const std::string both = fmt::format("{} against {}", result.contrast.a, result.contrast.b);
  if (result.paired.n == 1) {
    return fmt::format("{}: {} from one seed, which says nothing about chance; use more seeds", both,
                       measure.with_unit(measure.signed_number(result.paired.difference)));
  }
  for (const std::string& arm : {result.contrast.a, result.contrast.b}) {
    if (!chosen_point(results, arm).decided) return fmt::format("{}: the tuning runs of {} are not all done", both, arm);
  }
  return fmt::format("{}: no seed has both runs done", both);
}

// Whether decay itself matters.
std::string decay_text(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  const std::string difference =
      fmt::format("{} - {} is {}", first_of(result), second_of(result), signed_text(results, verdict, result));
  switch (result.outcome) {
    case Outcome::lower:
      return "Weight decay helps here: " + result.sentence;
    case Outcome::higher:
      return "Weight decay hurts here: " + result.sentence;
    case Outcome::equal:
      return fmt::format("Weight decay makes practically no difference here: {}, within {}", difference,
                         verdict.measure.target_text());
    case Outcome::same:
      if (!without_decay(result.point_a)) return "Whether weight decay matters here cannot be told: " + result.sentence;
      return fmt::format(
          "Weight decay did not help on the {}: {} was best without it, so there is nothing that a mask could improve",
          base::counted(results.plan.tune_seeds.size(), "tuning seed"), result.contrast.a);
    case Outcome::open:
    case Outcome::edge:
      return fmt::format("Whether weight decay matters here is open: {}; {}", difference,
                         seeds_needed_text(verdict.measure, result));
    case Outcome::missing:
      break;
  }
  return "Whether weight decay matters here is not known yet: " + result.sentence;
}

// "3", "3 and 5", "3, 5 and 8".
std::string list_text(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  }
  return text;
}

std::string looks_text(const Verdict& verdict) {
  if (verdict.looks.empty()) return "";
  std::vector<std::size_t> seeds;
  for (const Look& look : verdict.looks) {
    if (std::ranges::find(seeds, look.seeds) == seeds.end()) seeds.push_back(look.seeds);
  }
  return fmt::format("Seeds were added after looks at {} seeds; no p here accounts for that", list_text(seeds));
}

std::string diverged_text(const Results& results) {
  std::vector<std::string> parts;
  for (const Arm& arm : results.plan.arms) {
    for (const Overrides& point : points_of(results, arm.name)) {
      std::size_t diverged = 0, ended = 0;
      for (const FinishedRun& run : results.runs) {
        if (run.run.arm != arm.name || run.run.point != point) continue;
        diverged += run.status == RunStatus::diverged;
        ended += run.status == RunStatus::diverged || run.status == RunStatus::done;
      }
      if (diverged > 0) parts.push_back(fmt::format("{} ({} of {} runs)", cell_text(arm.name, point), diverged, ended));
    }
  }
  return parts.empty() ? "" : fmt::format("Training diverges at {}; these runs are in no difference", fmt::join(parts, ", "));
}

bool chose(const Results& results) {
  return std::ranges::any_of(results.plan.arms, [&](const Arm& arm) { return points_of(results, arm.name).size() > 1; });
}

std::string choice_text(const Results& results, const Measure& measure) {
  const std::size_t count = results.plan.tune_seeds.size();
  if (count == 0 || !chose(results)) return "";
  return fmt::format("Each arm is judged at the point with the lowest mean {} on {}, on which nothing is judged",
                     measure.head(), base::counted(count, "tuning seed"));
}

std::string words_of(const Results& results, const Verdict& verdict, const ContrastResult& result) {
  switch (result.outcome) {
    case Outcome::lower:
    case Outcome::higher:
      return claim_text(results, verdict, result);
    case Outcome::equal:
      return fmt::format("{} and {} are practically equal, within {}: {}", first_of(result), second_of(result),
                         verdict.measure.target_text(), signed_text(results, verdict, result));
    case Outcome::open:
      return open_text(results, verdict, result);
    case Outcome::edge:
      return undecided_text(results, verdict, result);
    case Outcome::same:
      return same_text(result);
    case Outcome::missing:
      break;
  }
  return missing_text(results, verdict.measure, result);
}

// With capital and full stop, if there is any.
void add_sentence(std::vector<std::string>& all, std::string sentence) {
  if (sentence.empty()) return;
  if (sentence.starts_with("no")) sentence[0] = 'N';  // others may begin with the name of an arm
  all.push_back(sentence + ".");
}

}  // namespace

std::string cell_text(const std::string& arm, const Overrides& point) {
  return point.empty() ? arm : fmt::format("{} ({})", arm, point_text(point));
}

void put_in_words(const Results& results, Verdict& verdict) {
  for (auto* const part : {&verdict.decay, &verdict.contrasts}) {
    for (ContrastResult& result : *part) result.sentence = words_of(results, verdict, result);
  }
  for (const ContrastResult& result : verdict.decay) add_sentence(verdict.answers, decay_text(results, verdict, result));
  const std::size_t before = verdict.answers.size();
  for (const ContrastResult& result : verdict.contrasts) {
    if (result.primary) add_sentence(verdict.answers, result.sentence);
  }
  if (verdict.answers.size() == before) {
    add_sentence(verdict.answers, fmt::format("no {}contrast was prespecified: everything {}here is exploratory",
                                              before == 0 ? "" : "other ", before == 0 ? "" : "else "));
  }
  for (const EqualAmounts& found : verdict.amounts) add_sentence(verdict.notes, found.sentence);
  add_sentence(verdict.notes, choice_text(results, verdict.measure));
  add_sentence(verdict.notes, diverged_text(results));
  add_sentence(verdict.notes, looks_text(verdict));
  add_sentence(verdict.notes, "Nothing here speaks about other models, data or lengths of training");
  verdict.sentence = fmt::format("{}\n{}", fmt::join(verdict.answers, "\n"), fmt::join(verdict.notes, " "));
}

}  // namespace cautious::study
