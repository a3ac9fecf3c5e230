// The experiment, and what its figures share.
#include "lab/bound/bound.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace cautious::lab {
namespace {

report::ChartSeries left_series(const NamedCurve& named, std::size_t colour) {
  report::ChartSeries series;
  series.name = named.name;
  series.colour = colour;
  series.markers = true;
  for (const BoundPoint& point : named.curve) {
    series.x.push_back(point.at);
    series.y.push_back(point.left.mean);
    series.low.push_back(point.left.low);
    series.high.push_back(point.left.high);
  }
  return series;
}

report::ChartSeries bound_series(const NamedCurve& named, double BoundPoint::*bound, std::string_view what,
                                 std::size_t colour) {
  report::ChartSeries series;
  series.name = fmt::format("{}, {}", named.name, what);
  series.colour = colour;
  for (const BoundPoint& point : named.curve) {
    series.x.push_back(point.at);
    series.y.push_back(point.*bound);
  }
  return series;
}

}  // namespace

report::LineChart bound_chart(std::string title, std::string x_label, std::string description) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(x_label);
  chart.y_label = "mean stationarity measure";
  chart.description = std::move(description);
  chart.x_scale = chart.y_scale = report::Scale::log;
  return chart;
}

void add_curves(report::LineChart& chart, const std::vector<NamedCurve>& curves) {
  for (std::size_t k = 0; k < curves.size(); ++k) chart.series.push_back(left_series(curves[k], k));
  for (std::size_t k = 0; k < curves.size(); ++k) {
    chart.series.push_back(bound_series(curves[k], &BoundPoint::paper, "bound", curves.size() + k));
  }
  chart.series.push_back(bound_series(curves[0], &BoundPoint::sharper, "sharper bound", 2 * curves.size()));
}

std::vector<std::size_t> powers(std::size_t first, std::size_t last, std::size_t factor) {
  std::vector<std::size_t> values;
  for (std::size_t value = first; value <= last; value *= factor) values.push_back(value);
  return values;
}

Experiment run_bound(const BoundOptions& options, const Progress& progress) {
  base::check_range("seeds", static_cast<double>(options.seeds), kBoundSeeds);
  constexpr std::size_t kLemmaRuns = 128, kLemmaSteps = 128;  // enough for a mean whatever the seeds asked for
  constexpr std::size_t kRandomSettings = 400, kRandomRuns = 8;
  const Progress tell = progress ? progress : [](double, std::string_view) {};
  BoundTally tally;
  Section sweeps = sweep_section(options, tell, tally);
  Section rate = rate_section(options, tell, tally);
  tell(0.85, "settings drawn at random");
  tally.add(random_settings(kRandomSettings, kRandomRuns, options.seed));
  add_tight_cases(options, tally);
  tell(0.9, "lemmas");
  const std::vector<LemmaCheck> checks = check_lemmas(kLemmaRuns, kLemmaSteps, options.seed);
  Experiment experiment{
      .name = "bound", .title = "Theorem 1: the convergence bound of Adam with cautious weight decay", .sections = {}};
  Section proof = proof_section(tally, checks);
  proof.claims.insert(proof.claims.begin(), theorem_claim(tally));
  experiment.sections = {std::move(proof), std::move(sweeps), std::move(rate), lemma_section(checks), remarks_section(tell)};
  const BoundOptions usual;
  const std::string command = command_of("bound", {{"seeds", options.seeds, usual.seeds}, {"seed", options.seed, usual.seed}});
  for (Section& section : experiment.sections) section.command = command;
  tell(1, "done");
  return experiment;
}

}  // namespace cautious::lab
