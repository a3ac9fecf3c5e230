// The experiment, and its first section. Every arm on every problem of a vector: is the residual of its own problem 0, and are
// those of the others not?
#include "lab/fixedpoint/fixedpoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr std::size_t kCoupled = 1, kQuadratics = 2;
constexpr std::int64_t kPointsPerLine = 200;

struct VectorProblems {
  std::vector<Quadratic> quadratics;
  std::vector<Posed> problems;
};

VectorProblems vector_problems(const FixedpointOptions& options) {
  Random random(options.seed);
  VectorProblems result;
  result.quadratics = {separable(random), coupled(random)};
  const auto size = static_cast<std::size_t>(result.quadratics.front().c.size());
  result.problems = {pose("separable quadratic", result.quadratics[0], kWeightDecay, random_start(random, size, kWeightDecay)),
                     pose("coupled quadratic", result.quadratics[1], kWeightDecay, random_start(random, size, kWeightDecay)),
                     pose_underdetermined(random, kWeightDecay, random_start(random, size, kWeightDecay)),
                     pose_circle(kWeightDecay, {0.7 / kWeightDecay, 2.6 / kWeightDecay})};
  return result;
}

std::vector<Surrogate> targets() {
  return {{.target = Target::original},
          {.target = Target::ridge},
          {.target = Target::box},
          {.target = Target::ball},
          {.target = Target::huber, .e = kHuber},
          {.target = Target::lasso_box, .e = kThreshold},
          {.target = Target::lasso, .e = kThreshold}};
}

End run(const Arm& arm, const VectorProblems& where, const Pace& pace) {
  End end{.arm = arm, .ends = {}, .residuals = {}, .distances = {}, .of_targets = {}};
  for (const Posed& problem : where.problems) {
    end.ends.push_back(rest(arm, problem, pace));
    end.residuals.push_back(residual_at(arm.surrogate, problem, end.ends.back()));
  }
  for (std::size_t i = 0; i < kQuadratics; ++i) {
    const Eigen::VectorXd off = as_vector(PointView(end.ends[i])) - solve(where.quadratics[i], arm.surrogate);
    end.distances.push_back(off.lpNorm<Eigen::Infinity>());
  }
  end.least_other = std::numeric_limits<double>::infinity();
  for (const Surrogate& target : targets()) {
    end.of_targets.push_back(residual_at(target, where.problems[kCoupled], end.ends[kCoupled]));
    if (target.target != arm.surrogate.target) end.least_other = std::min(end.least_other, end.of_targets.back());
  }
  return end;
}

// The arm with the mask of CWD, and with the mask reversed: at its own solution u = -λx, so u x < 0 wherever x is not 0, and
// the decay that CWD switches off is all there is.
std::vector<Mutation> mutations_of(const Ends& ends, const End& end) {
  const auto at = std::ranges::find(ends.targets, end.arm.surrogate.target, &Surrogate::target) - ends.targets.begin();
  const double masked = end_of(ends.cautious, with_cwd(end.arm).name).of_targets[static_cast<std::size_t>(at)];
  return {{"with the mask of CWD", fmt::format("residual {:.2f} on the coupled quadratic", masked), masked > kSolved},
          {"with the mask reversed, decay only where u x < 0",
           fmt::format("residual {:.1e} on the coupled quadratic{}", end.reversed,
                       end.reversed > kSolved ? "" : ": the same solution, made by the very decay that CWD switches off"),
           end.reversed > kSolved}};
}

Claim claim_of(const Ends& ends, std::string_view arm, std::string text, std::string source) {
  const End& end = end_of(ends.plain, arm);
  const bool holds = solves_its_own(end) && end.least_other >= kApart;
  const std::string evidence = fmt::format(
      "residual of this problem at most {:.1e} on four problems, of any other at least {:.2f}; at most {:.1e} from the known "
      "solution",
      worst_residual(end), end.least_other, worst_distance(end));
  if (source.empty()) return observed(holds, text, evidence);
  return {std::move(text), std::move(source), outcome_of(holds), evidence, "", mutations_of(ends, end)};
}

std::vector<std::string> row_of(const End& end, double extent) {
  std::vector<std::string> row{end.arm.name, std::string(name_of(end.arm.surrogate.target))};
  for (const double residual : end.of_targets) row.push_back(fmt::format("{:.1e}", residual));
  row.push_back(fmt::format("{:.1e}", end.distances[kCoupled]));
  row.push_back(fmt::format("{:.3f}", extent));
  return row;
}

report::Table residuals_table(const Ends& ends) {
  report::Table table;
  table.name = "fixedpoint_residuals";
  table.title = "Coupled quadratic: KKT residuals at rest, for every problem that could be the one solved";
  table.head = {"optimizer", "claimed problem"};
  for (const Surrogate& target : ends.targets) table.head.emplace_back(name_of(target.target));
  table.head.insert(table.head.end(), {"distance", "λ|x|∞"});
  for (const auto* group : {&ends.plain, &ends.cautious}) {
    for (const End& end : *group) table.rows.push_back(row_of(end, largest(end.ends[kCoupled])));
  }
  table.note = fmt::format(
      "Residual: |y - prox(y - g)| with y = λx, the largest entry; 0 at a KKT point. Distance: from the solution of the "
      "claimed problem, found by enumeration, closed form or descent. The box is |x|∞ ≤ 1/λ, the ball |x|₂ ≤ 1/λ; e = {} for "
      "huber, {} for threshold.",
      kHuber, kThreshold);
  return table;
}

report::Table problems_table(const Ends& ends) {
  report::Table table;
  table.name = "fixedpoint_problems";
  table.title = "Residual of the claimed problem at rest, by problem";
  table.head = {"optimizer", "claimed problem"};
  for (const Posed& problem : ends.problems) table.head.push_back(problem.title);
  for (const auto* group : {&ends.plain, &ends.cautious}) {
    for (const End& end : *group) {
      std::vector<std::string> row{end.arm.name, std::string(name_of(end.arm.surrogate.target))};
      for (const double residual : end.residuals) row.push_back(fmt::format("{:.1e}", residual));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

report::ChartSeries approach(const Arm& arm, const Posed& problem, const Pace& pace, std::size_t colour) {
  report::ChartSeries series;
  series.name = arm.name;
  series.colour = colour;
  const std::int64_t stride = std::max<std::int64_t>(1, pace.steps / kPointsPerLine);
  rest(arm, problem, pace, [&](std::int64_t step, PointView y) {
    if (step % stride != 0) return;
    series.x.push_back(static_cast<double>(step));
    series.y.push_back(residual_at(arm.surrogate, problem, y));
  });
  return series;
}

report::Figure approach_figure(const FixedpointOptions& options, const Posed& problem) {
  report::LineChart chart;
  chart.title = "Residual of the claimed problem on the coupled quadratic";
  chart.x_label = "step";
  chart.y_label = "KKT residual, in units of the box";
  chart.description = "Residual of each optimizer's claimed problem against the step, on a logarithmic scale.";
  chart.y_scale = report::Scale::log;
  const auto plain = plain_arms(kWeightDecay);
  Arm slow = adamw(kWeightDecay, 0.999);
  slow.name = "AdamW, β₂ = 0.999";
  const std::vector<Arm> arms{plain[0], plain[2], slow, plain[3], plain[4], with_cwd(plain[2]), with_cwd(plain[0])};
  std::string last;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    chart.series.push_back(approach(arms[i], problem, pace_of(options), i));
    last += fmt::format("{}{} {:.1e}", i == 0 ? "" : ", ", arms[i].name, chart.series.back().y.back());
  }
  return {"fixedpoint_approach", std::move(chart),
          fmt::format("The learning rate falls to 0 (cosine); the updates of SGD and Lion-K l2 are continuous, those of the "
                      "others jump. At the last step: {}.",
                      last)};
}

}  // namespace

const End& end_of(const std::vector<End>& ends, std::string_view name) {
  return *std::ranges::find(ends, name, [](const End& end) { return std::string_view(end.arm.name); });
}

double worst_residual(const End& end) { return largest(end.residuals); }
double worst_distance(const End& end) { return largest(end.distances); }
bool solves_its_own(const End& end) { return worst_residual(end) <= kSolved && worst_distance(end) <= kSolved; }

Ends run_vectors(const FixedpointOptions& options) {
  const VectorProblems where = vector_problems(options);
  Ends ends{.problems = where.problems, .targets = targets(), .plain = {}, .cautious = {}};
  std::vector<Arm> arms = plain_arms(kWeightDecay);
  arms.push_back(threshold(kWeightDecay));
  for (const Arm& arm : arms) {
    ends.plain.push_back(run(arm, where, pace_of(options)));
    const Posed& coupled = where.problems[kCoupled];
    ends.plain.back().reversed = residual_at(arm.surrogate, coupled, rest(opposed(arm), coupled, pace_of(options)));
    ends.cautious.push_back(run(with_cwd(arm), where, pace_of(options)));
  }
  return ends;
}

Section vectors_section(const FixedpointOptions& options, const Ends& ends) {
  Section section;
  section.title = "Vectors: the box, the ball, the regularised objective";
  section.text = fmt::format(
      "Deterministic gradients, λ = {:g}, {} steps, learning rate from {:g} down to 0. Problems are posed in units of the box "
      "1/λ. Solved: residual and distance at most {:g}; not solved: residual at least {:g}.",
      kWeightDecay, options.steps, Pace{}.lr / kWeightDecay, kSolved, kApart);
  section.claims = {
      claim_of(ends, "SGD", "SGD with weight decay minimises f + λ|x|²/2", "section 2.2"),
      claim_of(ends, "Lion", "Lion minimises f in the box |x|∞ ≤ 1/λ", "section 2.2"),
      claim_of(ends, "AdamW", "AdamW minimises f in the box |x|∞ ≤ 1/λ", "section 2.2, appendix C"),
      claim_of(ends, "Lion-K l2", "Lion-K minimises f + K*(λx)/λ: with K = |z|₂, f in the ball |x|₂ ≤ 1/λ", "section 2.2"),
      claim_of(ends, "Lion-K huber", "Lion-K minimises f + K*(λx)/λ: with huber, f + eλ|x|²/2 in the box", "section 2.2"),
      claim_of(ends, "Lion-K threshold", "Lion-K minimises f + K*(λx)/λ: with threshold, f + e|x|₁ in the box", "section 2.2"),
      claim_of(ends, "SGDM", "SGD with momentum and weight decay minimises f + λ|x|²/2 as SGD does", "")};
  section.tables = {residuals_table(ends), problems_table(ends)};
  section.figures = {approach_figure(options, ends.problems[kCoupled])};
  return section;
}

}  // namespace cautious::lab::fixedpoint

namespace cautious::lab {

std::string command_of(const FixedpointOptions& options) {
  const FixedpointOptions usual;
  const auto steps = [](const FixedpointOptions& one) { return static_cast<std::uint64_t>(one.steps); };
  return command_of("fixedpoint", {{"steps", steps(options), steps(usual)}, {"seed", options.seed, usual.seed}});
}

void check(const FixedpointOptions& options) {
  base::check_range("steps", static_cast<double>(options.steps), kFixedpointSteps);
}

Experiment run_fixedpoint(const FixedpointOptions& options, const Progress& progress) {
  check(options);
  Experiment experiment{.name = "fixedpoint", .title = "Which problem does an optimizer solve?", .sections = {}};
  progress(0, "fixedpoint: vectors");
  const fixedpoint::Ends ends = fixedpoint::run_vectors(options);
  experiment.sections.push_back(fixedpoint::vectors_section(options, ends));
  progress(0.3, "fixedpoint: one coordinate");
  experiment.sections.push_back(fixedpoint::curves_section(options));
  progress(0.4, "fixedpoint: matrices");
  experiment.sections.push_back(fixedpoint::matrices_section(options));
  progress(0.5, "fixedpoint: Muon and its mask");
  experiment.sections.push_back(fixedpoint::bias_section(options));
  progress(0.85, "fixedpoint: convergence");
  experiment.sections.push_back(fixedpoint::motion_section(options));
  experiment.sections.push_back(fixedpoint::cautious_section(ends));
  for (Section& section : experiment.sections) section.command = command_of(options);
  progress(1, "fixedpoint");
  return experiment;
}

}  // namespace cautious::lab
