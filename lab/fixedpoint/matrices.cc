// Matrices: Muon and the spectral-norm ball, with exact orthogonal factors and with Newton-Schulz steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "lab/fixedpoint/fixedpoint.h"
#include "lab/linear.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr double kBallFrom = 0.02;  // singular values of the direction above this part of its norm count for the band

struct MatrixEnd {
  Arm arm;
  std::string problem;
  Point of_targets;                 // residuals: f, ridge, box, spectral
  double own = 0, least_other = 0;  // of its own problem, and the least of the others
  std::optional<double> distance;   // from its solution where that is known
  Point values;                     // singular values
  double extent = 0;                // |y|_inf
};

Point singular_values(PointView y, Eigen::Index rows) {
  const Eigen::Map<const Matrix> matrix(y.data(), rows, static_cast<Eigen::Index>(y.size()) / rows);
  const Eigen::VectorXd values = lab::singular_values(Eigen::MatrixXd(matrix));
  return {values.begin(), values.end()};
}

Point entries_of(const Eigen::MatrixXd& matrix) {
  const Matrix by_rows = matrix;
  return {by_rows.data(), by_rows.data() + by_rows.size()};
}

double apart(PointView a, PointView b) { return (as_vector(a) - as_vector(b)).lpNorm<Eigen::Infinity>(); }

std::vector<Surrogate> targets(Eigen::Index rows) {
  return {{.target = Target::original},
          {.target = Target::ridge},
          {.target = Target::box},
          {.target = Target::spectral, .rows = rows}};
}

MatrixEnd measure(const Arm& arm, const Posed& problem, PointView y, std::optional<double> distance) {
  const auto rows = static_cast<Eigen::Index>(problem.shape.front());
  MatrixEnd end{
      .arm = arm, .problem = problem.title, .of_targets = {}, .distance = distance, .values = singular_values(y, rows)};
  end.least_other = std::numeric_limits<double>::infinity();
  for (const Surrogate& target : targets(rows)) {
    end.of_targets.push_back(residual_at(target, problem, y));
    if (target.target == arm.surrogate.target) end.own = end.of_targets.back();
    if (target.target != arm.surrogate.target) end.least_other = std::min(end.least_other, end.of_targets.back());
  }
  end.extent = largest(y);
  return end;
}

// |X - C|^2 / 2 has the proximal point of C as its solution, whatever the surrogate.
std::vector<MatrixEnd> run_near(Random& random, const FixedpointOptions& options) {
  constexpr Eigen::Index rows = 6;
  const Eigen::MatrixXd c = with_singular_values(random, rows, kColumns, {3, 1.6, 0.7, 0.3});
  const Posed problem =
      pose("nearest matrix |X - C|²/2", MatrixLeastSquares{Eigen::MatrixXd::Identity(rows, rows), c}, kWeightDecay);
  std::vector<MatrixEnd> ends;
  for (const Arm& arm : matrix_arms(kWeightDecay, rows)) {
    const Point y = rest(arm, problem, pace_of(options));
    ends.push_back(measure(arm, problem, y, apart(y, nearest(arm.surrogate, entries_of(c)))));
  }
  return ends;
}

struct CoupledRuns {
  std::vector<MatrixEnd> ends;
  std::vector<MatrixEnd> schedules;  // Muon with Newton-Schulz steps
  double identity = 0;               // of the paper's steps: |λX + polar(G)| at rest
  Band band{};
};

Arm muon_of(Eigen::Index rows, NewtonSchulz schedule, std::string name) {
  Arm arm = muon(kWeightDecay, rows, schedule);
  arm.name = std::move(name);
  return arm;
}

CoupledRuns run_coupled(Random& random, const FixedpointOptions& options) {
  const MatrixLeastSquares least_squares = random_least_squares(random);
  const Eigen::Index rows = least_squares.a.cols();
  const Posed problem = pose("least squares |AX - B|²/2", least_squares, kWeightDecay);
  const Point solution = entries_of(solve_spectral(least_squares.a, least_squares.b));
  CoupledRuns runs;
  const auto end_at = [&](const Arm& arm) {
    const Point y = rest(arm, problem, pace_of(options));
    const bool known = arm.surrogate.target == Target::spectral;
    if (arm.name == "Muon, paper's steps") {
      Point g = slope_at(problem, y);
      polar(std::span<double>(g), rows, kColumns, {}, 1);
      for (double& entry : g) entry = -entry;
      runs.identity = apart(y, g);
    }
    return measure(arm, problem, y, known ? std::optional(apart(y, solution)) : std::nullopt);
  };
  for (const Arm& arm : matrix_arms(kWeightDecay, rows)) runs.ends.push_back(end_at(arm));
  runs.schedules = {end_at(muon_of(rows, NewtonSchulz::paper, "Muon, paper's steps")),
                    end_at(muon_of(rows, NewtonSchulz::polar_express, "Muon, polar-express")),
                    end_at(muon_of(rows, NewtonSchulz::polar_express_8, "Muon, polar-express-8"))};
  runs.band = band({}, kBallFrom);
  return runs;
}

report::Table table_of(const std::vector<MatrixEnd>& near, const CoupledRuns& coupled) {
  report::Table table;
  table.name = "fixedpoint_matrices";
  table.title = "Matrices: KKT residuals at rest, for every problem that could be the one solved";
  table.head = {"optimizer", "problem", "claimed problem"};
  for (const Surrogate& target : targets(1)) table.head.emplace_back(name_of(target.target));
  table.head.insert(table.head.end(), {"distance", "λ‖X‖", "λ|X|∞", "λ times singular values"});
  for (const auto* group : {&near, &coupled.ends, &coupled.schedules}) {
    for (const MatrixEnd& end : *group) {
      std::vector<std::string> row{end.arm.name, end.problem, std::string(name_of(end.arm.surrogate.target))};
      for (const double residual : end.of_targets) row.push_back(fmt::format("{:.1e}", residual));
      row.push_back(end.distance ? fmt::format("{:.1e}", *end.distance) : "-");
      row.push_back(fmt::format("{:.3f}", end.values.front()));
      row.push_back(fmt::format("{:.3f}", end.extent));
      row.push_back(fmt::format("{:.3f}", fmt::join(end.values, " ")));
      table.rows.push_back(std::move(row));
    }
  }
  table.note =
      "The spectral ball is ‖X‖ ≤ 1/λ, the box |X|∞ ≤ 1/λ entry by entry. Distance: from the clipped singular values; for "
      "least squares, from the solution by projected gradient. Factors are exact unless the name says otherwise.";
  return table;
}

// One matrix whose target has eight singular values from 0.25 to 2.
struct Clipped {
  double exact = 0, steps = 0;  // largest distance from the clipped values; with the paper's steps
};

report::Figure singular_value_figure(Random& random, const FixedpointOptions& options, Clipped& off) {
  constexpr Eigen::Index rows = 10, columns = 8;
  Point values;
  for (Eigen::Index i = columns; i > 0; --i) values.push_back(0.25 * static_cast<double>(i));
  const Eigen::MatrixXd c = with_singular_values(random, rows, columns, values);
  const Posed problem = pose("values", MatrixLeastSquares{Eigen::MatrixXd::Identity(rows, rows), c}, kWeightDecay);
  const std::vector<Arm> arms{muon_of(rows, NewtonSchulz::exact, "Muon, exact factors"),
                              muon_of(rows, NewtonSchulz::paper, "Muon, paper's steps"), matrix_arms(kWeightDecay, rows)[3],
                              with_cwd(muon_of(rows, NewtonSchulz::exact, "Muon"))};
  report::LineChart chart;
  chart.title = "Singular values at rest";
  chart.x_label = "singular value of the target C, in units of 1/λ";
  chart.y_label = "singular value of X at rest, in units of 1/λ";
  chart.description = "Singular values of X at rest against those of the target, sorted by size, one line per optimizer.";
  for (const Arm& arm : arms) {
    report::ChartSeries series;
    series.name = arm.name;
    series.colour = chart.series.size();
    series.x = values;
    series.y = singular_values(rest(arm, problem, pace_of(options)), rows);
    series.markers = true;
    chart.series.push_back(std::move(series));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    off.exact = std::max(off.exact, std::abs(chart.series[0].y[i] - std::min(1.0, values[i])));
    off.steps = std::max(off.steps, std::abs(chart.series[1].y[i] - std::min(1.0, values[i])));
  }
  return {"fixedpoint_singular_values", std::move(chart),
          fmt::format("f = λ|X - C|²/2. Muon with exact factors is at most {:.1e} from the values clipped at 1. With the "
                      "paper's five steps the factors are inexact, and the face of the ball is a band.",
                      off.exact)};
}

std::string numbers(const MatrixEnd& end) {
  return fmt::format("{} on {}: residual {:.1e}, of the others at least {:.2f}", end.arm.name, end.problem, end.own,
                     end.least_other);
}

bool solved(const MatrixEnd& end) {
  return end.own <= kSolved && end.least_other >= kApart && end.distance.value_or(0) <= kSolved;
}

// `other` is an arm whose end is not in the spectral ball's solution.
Claim pair_claim(std::string text, const MatrixEnd& a, const MatrixEnd& b, std::string change, const MatrixEnd& other) {
  const double residual = other.of_targets.back();
  return {std::move(text),
          "section 2.2",
          outcome_of(solved(a) && solved(b)),
          numbers(a) + "; " + numbers(b),
          "",
          {{std::move(change), fmt::format("residual {:.2f} on {}", residual, other.problem), residual > kSolved}}};
}

Claim band_claim(const CoupledRuns& runs, std::size_t active) {
  const MatrixEnd& paper = runs.schedules.front();
  std::string faces = "no singular value on the face";
  if (active > 0) {  // sorted, the largest first
    faces = fmt::format("singular values on the face {:.2f} to {:.2f} of 1/λ", paper.values[active - 1], paper.values.front());
  }
  return observed(runs.identity <= kSolved,
                  "With the paper's five Newton-Schulz steps Muon converges to λX = -polar(G) of those steps: the face of the "
                  "ball is a band around 1/λ",
                  fmt::format("{}, the steps map [{:g}, 1] to [{:.2f}, {:.2f}]; |λX + polar(G)| = {:.1e}; residual {:.2f}, "
                              "with polar-express {:.2f}, polar-express-8 {:.1e}",
                              faces, kBallFrom, runs.band.low, runs.band.high, runs.identity, paper.own, runs.schedules[1].own,
                              runs.schedules[2].own));
}

}  // namespace

Section matrices_section(const FixedpointOptions& options) {
  Random random(options.seed + 1);
  const std::vector<MatrixEnd> near = run_near(random, options);
  const CoupledRuns coupled = run_coupled(random, options);
  Clipped off;
  Section section;
  section.title = "Matrices: Muon and the spectral ball";
  section.text =
      "Muon with exact orthogonal factors, Lion-K with the nuclear norm, and others on the same matrices, from X = 0.";
  section.figures = {singular_value_figure(random, options, off)};
  section.tables = {table_of(near, coupled)};
  const auto on_face = static_cast<std::size_t>(
      std::ranges::count_if(coupled.ends.front().values, [](double value) { return value > 1 - kSolved; }));
  section.claims = {
      pair_claim("Muon minimises f in the spectral ball ‖X‖ ≤ 1/λ", near[0], coupled.ends[0], "with the mask of CWD", near[4]),
      pair_claim("Lion-K with the nuclear norm minimises f in the spectral ball ‖X‖ ≤ 1/λ", near[1], coupled.ends[1],
                 "signs of entries in place of the orthogonal factor (AdamW)", near[2]),
      {"With f = λ|X - C|²/2 Muon clips the singular values of C at 1/λ",
       "section 2.2",
       outcome_of(off.exact <= kSolved),
       fmt::format("eight singular values, at most {:.1e} off", off.exact),
       "",
       {{"the paper's five Newton-Schulz steps in place of exact factors", fmt::format("{:.2f} off", off.steps),
         off.steps > kSolved}}},
      band_claim(coupled, on_face)};
  return section;
}

}  // namespace cautious::lab::fixedpoint
