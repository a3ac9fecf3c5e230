// What a report shows of the verdict: the differences, how they were tested, and how the points were chosen.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "study/report_parts.h"

namespace cautious::study {
namespace {

constexpr std::size_t kManySeeds = 1000;
std::string rounded(const Measure& measure, double value) { return std::isfinite(value) ? measure.number(value) : "-"; }

std::string range_text(const Measure& measure, const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "-";
  return fmt::format("[{}, {}]", measure.number(interval.low), measure.number(interval.high));
}

std::string count_cell(std::size_t needed) {
  return needed > kManySeeds ? fmt::format("> {}", kManySeeds) : std::to_string(needed);
}

std::string needed_cell(const Power& power) {
  if (power.needed == 0) return "-";
  return fmt::format("{} [{}, {}]", count_cell(power.needed), count_cell(power.needed_low), count_cell(power.needed_high));
}

std::string detectable_cell(const Measure& measure, const Power& power) {
  if (!std::isfinite(power.detectable)) return "-";
  return fmt::format("{} {}", measure.number(power.detectable), range_text(measure, power.detectable_interval));
}

std::vector<std::string> difference_row(const Measure& measure, const ContrastResult& result) {
  const Difference& difference = result.difference;
  return {result.name,
          result.paired.n > 0 ? measure.signed_number(difference.value) : "-",
          range_text(measure, difference.interval),
          p_cell(difference.p),
          p_cell(result.holm_p),
          outcome_text(result.outcome),
          std::to_string(result.paired.n)};
}

std::vector<std::string> test_row(const Measure& measure, const ContrastResult& result) {
  const bool several = result.paired.n > 1;
  return {result.name,
          std::to_string(result.layout.arms),
          std::to_string(result.layout.freedom()),
          rounded(measure, result.layout.sd),
          several ? p_cell(result.paired.t_p) : "-",
          several ? p_cell(result.paired.permutation_p) : "-",
          detectable_cell(measure, result.power),
          needed_cell(result.power)};
}

const std::vector<std::string> kExactHead{"contrast",
                                          "a",
                                          "point of a",
                                          "b",
                                          "point of b",
                                          "outcome",
                                          "seeds",
                                          "planned seeds",
                                          "difference",
                                          "low",
                                          "high",
                                          "p",
                                          "p (Holm)",
                                          "pooled arms",
                                          "df",
                                          "sd",
                                          "paired sd",
                                          "p (paired)",
                                          "p (flips)",
                                          "detectable",
                                          "detectable low",
                                          "detectable high",
                                          "seeds for target",
                                          "seeds low",
                                          "seeds high",
                                          "choice may cost",
                                          "measure",
                                          "unit"};

std::vector<std::string> exact_row(const Measure& measure, const ContrastResult& result) {
  const Difference& difference = result.difference;
  const Power& power = result.power;
  return {result.name,
          result.contrast.a,
          point_text(result.point_a),
          result.contrast.b,
          point_text(result.point_b),
          outcome_text(result.outcome),
          std::to_string(result.paired.n),
          std::to_string(result.planned),
          exact_text(difference.value),
          exact_text(difference.interval.low),
          exact_text(difference.interval.high),
          exact_text(difference.p),
          exact_text(result.holm_p),
          std::to_string(result.layout.arms),
          std::to_string(result.layout.freedom()),
          exact_text(result.layout.sd),
          exact_text(result.paired.sd),
          exact_text(result.paired.t_p),
          exact_text(result.paired.permutation_p),
          exact_text(power.detectable),
          exact_text(power.detectable_interval.low),
          exact_text(power.detectable_interval.high),
          std::to_string(power.needed),
          std::to_string(power.needed_low),
          std::to_string(power.needed_high),
          exact_text(result.regret),
          measure.name,
          measure.unit};
}

std::vector<const ContrastResult*> shown(const Verdict& verdict, bool primary) {
  std::vector<const ContrastResult*> all;
  if (primary) {
    for (const ContrastResult& result : verdict.decay) all.push_back(&result);
  }
  for (const ContrastResult& result : verdict.contrasts) {
    if (result.primary == primary) all.push_back(&result);
  }
  return all;
}

}  // namespace

report::Figure contrasts_figure(const Verdict& verdict, bool primary) {
  report::IntervalChart chart;
  chart.title = primary ? "Prespecified differences" : "Exploratory differences";
  chart.x_label = fmt::format("difference of {}{}, with 95% interval; left of 0: the first is better", verdict.measure.name,
                              in_brackets(verdict.measure.difference));
  chart.reference = 0;
  for (const ContrastResult* const result : shown(verdict, primary)) {
    chart.entries.push_back({.name = result->name,
                             .value = result->difference.value,
                             .low = result->difference.interval.low,
                             .high = result->difference.interval.high,
                             .points = {}});
    chart.description += result->sentence + ". ";
  }
  return {primary ? "contrasts" : "contrasts_exploratory", std::move(chart), ""};
}

report::Table contrasts_table(const Verdict& verdict, bool primary) {
  const Measure& measure = verdict.measure;
  report::Table table{
      .name = primary ? "contrasts" : "contrasts_exploratory",
      .title = fmt::format("{} differences of {}{}", primary ? "Prespecified" : "Exploratory", measure.name,
                           in_brackets(measure.difference)),
      .head = {"contrast", "difference", "95% interval", "p", "p (Holm)", "outcome", "seeds"},
      .rows = {},
      .note = fmt::format("{} Negative: the first has the lower {}. p: t-test with the residuals of all arms; p (Holm): "
                          "corrected for the number of "
                          "prespecified differences, and the one that decides about them.",
                          measure.task == run::TaskKind::external ? "Runs of one seed were given the same seed, and are paired."
                                                                  : "Runs of one seed share initial weights and order of data.",
                          measure.head()),
      .csv = {kExactHead}};
  for (const ContrastResult* const result : shown(verdict, primary)) {
    table.rows.push_back(difference_row(measure, *result));
    table.csv.push_back(exact_row(measure, *result));
  }
  return table;
}

report::Table tests_table(const Verdict& verdict) {
  const Measure& measure = verdict.measure;
  report::Table table{
      .name = "tests",
      .title = "How the differences were tested, and what would be found",
      .head = {"contrast", "arms", "df", "sd", "p (paired)", "p (flips)", "detectable",
               fmt::format("seeds for {}", measure.target)},
      .rows = {},
      .note = fmt::format(
          "arms, df, sd: whose residuals the test pools, their degrees of freedom and standard deviation; 2 arms are the "
          "paired t-test of the two. p (paired), p (flips): that t-test, and the test by flipping signs, which with n seeds "
          "is never below 2/2^n; for comparison. detectable: the smallest true difference that these seeds find with 80% "
          "power; seeds for {}: how many find {}, {}. In brackets, what the "
          "95% interval of the sd makes of them.",
          measure.target, measure.target_text(), measure.beside)};
  for (const bool primary : {true, false}) {
    for (const ContrastResult* const result : shown(verdict, primary)) table.rows.push_back(test_row(measure, *result));
  }
  return table;
}

report::Table amounts_table(const Verdict& verdict) {
  const Measure& measure = verdict.measure;
  report::Table table{
      .name = "equal_amounts",
      .title = fmt::format("Differences at equal amounts of decay{}, exploratory", in_brackets(measure.difference)),
      .head = {"contrast", "difference", "95% interval", "p", "seeds", "ratio of the best weight_decay", "95% interval"},
      .rows = {},
      .note = fmt::format("From every point of both grids: one smooth curve of the {} over the logarithm of the decay "
                          "budget for both arms, and a constant between them, fitted to each seed; t-test over the seeds. "
                          "Ratio: where parabolas over the logarithm of weight_decay are lowest, the first arm's over the "
                          "second's, with an interval by jackknife over the seeds.",
                          measure.head()),
      .csv = {{"contrast", "difference", "low", "high", "p", "seeds", "ratio", "ratio low", "ratio high"}}};
  for (const EqualAmounts& found : verdict.amounts) {
    const std::string name = fmt::format("{} - {}", found.contrast.a, found.contrast.b), n = std::to_string(found.difference.n);
    const Interval &units = found.difference.interval, &times = found.ratio_interval;
    const bool known = std::isfinite(found.ratio);
    table.rows.push_back({name, measure.signed_number(found.difference.mean), range_text(measure, units), p_cell(found.p), n,
                          known ? fmt::format("{:.3g}", found.ratio) : "-",
                          known ? fmt::format("[{:.3g}, {:.3g}]", times.low, times.high) : "-"});
    table.csv.push_back({name, exact_text(found.difference.mean), exact_text(units.low), exact_text(units.high),
                         exact_text(found.p), n, exact_text(found.ratio), exact_text(times.low), exact_text(times.high)});
  }
  return table;
}

report::Table tuning_table(const Results& results) {
  const Measure measure = measure_of(results.runs);
  report::Table table{.name = "tuning",
                      .title = fmt::format("Choice of the points: {} on the tuning seeds", measure.name),
                      .head = {"arm", "point", "mean"},
                      .rows = {},
                      .note =
                          "Every arm is judged, on other seeds, at the point with the lowest mean of those where all runs "
                          "are done. A choice at the edge of the grid may not be the best there is."};
  for (const std::uint64_t seed : results.plan.tune_seeds) table.head.push_back(fmt::format("seed {}", seed));
  table.head.push_back("choice");
  table.csv = {table.head};
  for (const Arm& arm : results.plan.arms) {
    const std::vector<Overrides> points = points_of(results, arm.name);
    if (points.size() < 2 || arm.chooser() != arm.name || results.plan.tune_seeds.empty()) continue;
    const Choice choice = chosen_point(results, arm.name);
    for (const Overrides& point : points) {
      const std::vector<double> losses = tuning_losses_of(results, arm.name, point);
      const double mean = standing_of(losses).mean;
      std::vector<std::string> row{arm.name, point_text(point), rounded(measure, mean)},
          exact{arm.name, point_text(point), exact_text(mean)};
      for (const double loss : losses) {
        row.push_back(rounded(measure, loss));
        exact.push_back(exact_text(loss));
      }
      const bool chosen = choice.decided && choice.point == point;
      row.emplace_back(!chosen ? "-" : choice.edges.empty() ? "chosen" : "chosen, at the edge");
      exact.push_back(row.back());
      table.rows.push_back(std::move(row));
      table.csv.push_back(std::move(exact));
    }
  }
  return table;
}

}  // namespace cautious::study
