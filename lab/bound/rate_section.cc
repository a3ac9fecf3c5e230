// The section on the rate: eta = 1 / sqrt(T).
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound.h"

namespace cautious::lab {
namespace {

struct RateVariant {
  std::string name;
  BoundSetting setting;
  bool batch_is_steps;
};

std::string in_words(const Estimate& slope) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", slope.mean, slope.low, slope.high);
}

// A strong decay: the plain one would be seen.
constexpr BoundSetting kRateSetting{.eps = 1, .weight_decay = 1};

// A finite range of T bends the slope by some hundredths.
constexpr double kFast = -0.45;

// Plain decay does not lead to stationary points of f: the left side has a floor.
Mutation plain_decay(const std::vector<std::size_t>& steps, const BoundOptions& options) {
  BoundSetting setting = kRateSetting;
  setting.masked = false;
  bool fast = true;
  std::string slopes;
  for (const BoundProblem& problem : bound_problems()) {
    const Estimate slope = slope_of(along_rate(usual_case(problem, setting, options.seeds, options.seed), steps, true));
    fast = fast && slope.mean <= kFast;
    slopes += fmt::format("{}{} {}", slopes.empty() ? "slopes: " : ", ", problem.name, in_words(slope));
  }
  return {"decay without its mask", slopes, !fast};
}

// Where noise decides the sign of u, the mask is on half the time and the decay continues at the minimiser.
Claim bias_claim(std::uint64_t seed) {
  constexpr std::size_t kSteps = 40'000;
  const auto part = [&](double weight_decay, std::size_t batch) {
    const BoundSetting setting{.eta = 0.005, .eps = 0.01, .weight_decay = weight_decay, .batch = batch};
    return part_of_minimiser(bound_problems().front(), setting, kSteps, seed);
  };
  const double without = part(0, 1), with = part(0.1, 1), large = part(0.1, 1024);
  return {.text = fmt::format("With a batch of 1, where noise sets the mask, the iterates settle at {:.3f} of the minimiser "
                              "with cautious decay, at {:.3f} without decay",
                              with, without),
          .source = "",
          .outcome = Outcome::noted,
          .evidence =
              fmt::format("bowl with momentum, λ = 0.1, mean of x over {} steps; with n = 1024: {:.3f}", kSteps / 2, large)};
}

}  // namespace

double part_of_minimiser(const BoundProblem& problem, const BoundSetting& setting, std::size_t steps, std::uint64_t seed) {
  BoundRun run(problem, problem.noise, setting, problem.start, seed);
  const auto c = as_vector(PointView(problem.minimiser));
  double sum = 0;
  for (std::size_t t = 1; t <= steps; ++t) {
    run.step();
    if (t > steps / 2) sum += as_vector(run.point()).dot(c);
  }
  return sum / static_cast<double>(steps - steps / 2) / c.squaredNorm();
}

Section rate_section(const BoundOptions& options, const Progress& progress, BoundTally& tally) {
  const std::vector<RateVariant> variants{{"momentum, n = T", kRateSetting, true},
                                          {"momentum, n = 1", kUsualSetting, false},
                                          {"no momentum, n = 1", kSignSetting, false}};
  const std::vector<std::size_t> steps = powers(32, 1 << 12, 2);
  Section section{.title = "The rate",
                  .text =
                      "η = 1 / √T, another run for every T. The slope is that of a line through the logarithms of T and of the "
                      "left side, with its 95 % interval.",
                  .command = {},
                  .claims = {},
                  .figures = {},
                  .tables = {},
                  .files = {}};
  report::Table table{.name = "bound_rates",
                      .title = "Slope of the left side over T, both on a log scale",
                      .head = {"problem"},
                      .rows = {},
                      .note = "-0.5 is the rate of the second remark after Theorem 1. No momentum: β₁ = β₂ = 0, ε = 0.01."};
  for (const RateVariant& variant : variants) table.head.push_back(variant.name);
  bool fast = true;
  std::string slopes;
  std::vector<NamedCurve> bowl;
  std::vector<Estimate> bowl_slopes;
  for (const BoundProblem& problem : bound_problems()) {
    std::vector<std::string> row{problem.name};
    for (const RateVariant& variant : variants) {
      progress(0.4 + 0.05 * static_cast<double>(table.rows.size() * variants.size() + row.size() - 1),
               fmt::format("rate, {}", problem.name));
      const BoundCurve curve =
          along_rate(usual_case(problem, variant.setting, options.seeds, options.seed), steps, variant.batch_is_steps);
      tally.add(curve, fmt::format("{}, {}, η = T^(-1/2)", problem.name, variant.name));
      const Estimate slope = slope_of(curve);
      row.push_back(in_words(slope));
      if (variant.batch_is_steps) {
        fast = fast && slope.mean <= kFast;
        slopes += fmt::format("{}{} {}", slopes.empty() ? "" : ", ", problem.name, in_words(slope));
      }
      if (table.rows.empty()) {
        bowl.push_back({variant.name, curve});
        bowl_slopes.push_back(slope);
      }
    }
    table.rows.push_back(row);
  }
  section.tables.push_back(table);
  section.claims.push_back({.text = "With η = T^(-1/2) and n = T the left side falls like T^(-1/2) or faster",
                            .source = "second remark after Theorem 1",
                            .outcome = outcome_of(fast),
                            .evidence = "slopes: " + slopes,
                            .mutations = {plain_decay(steps, options)}});
  const BoundCurve& floor = bowl[2].curve;
  section.claims.push_back(
      {.text = fmt::format("With η = T^(-1/2), a batch of 1 and no momentum the left side falls like T^({:.2f}): {}",
                           bowl_slopes[2].mean,
                           bowl_slopes[2].low > -0.25 ? "the bound's term σ / √n is needed there"
                                                      : "no floor like the bound's term σ / √n is seen"),
       .source = "",
       .outcome = Outcome::noted,
       .evidence = fmt::format("bowl: {:.2g} at T = {:g}, {:.2g} at T = {:g}, slope {}", floor.front().left.mean,
                               floor.front().at, floor.back().left.mean, floor.back().at, in_words(bowl_slopes[2]))});
  section.claims.push_back(
      {.text = fmt::format(
           "With momentum and symmetric noise the left side falls like T^({:.2f}) at n = 1, where the bound has its floor K4 σ",
           bowl_slopes[1].mean),
       .source = "",
       .outcome = Outcome::noted,
       .evidence =
           fmt::format("bowl: slope {}; at T = {:g} the left side is {:.2g} and the bound {:.2g}", in_words(bowl_slopes[1]),
                       bowl[1].curve.back().at, bowl[1].curve.back().left.mean, bowl[1].curve.back().paper)});
  section.claims.push_back(bias_claim(options.seed));
  report::LineChart chart = bound_chart("Left side and bound with η = T^(-1/2)", "steps T",
                                        "Left sides and bounds for three settings over T, with a line of slope minus one half");
  add_curves(chart, bowl);
  report::ChartSeries guide;
  guide.name = "slope -1/2";
  guide.colour = 7;
  for (const BoundPoint& point : bowl[0].curve) {
    guide.x.push_back(point.at);
    guide.y.push_back(bowl[0].curve.back().left.mean / 2 * std::sqrt(bowl[0].curve.back().at / point.at));
  }
  chart.series.push_back(guide);
  section.figures.push_back({"bound_rate", chart,
                             fmt::format("The bowl. Slopes of the left side: {} with n = T, {} with n = 1, {} with n = 1 and "
                                         "no momentum, where a sign of noise can hide the gradient. The bound is at least K4 σ "
                                         "/ √n, which falls like T^(-1/2) with n = T and is constant with n = 1.",
                                         in_words(bowl_slopes[0]), in_words(bowl_slopes[1]), in_words(bowl_slopes[2]))});
  return section;
}

}  // namespace cautious::lab
