// The figures of a study.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/drawing/figures.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr std::size_t kLinePoints = 500;

std::string in_words(const ToyStudy& study) {
  std::string words;
  for (const Claim& claim : toy_claims(study)) words += fmt::format("{}: {}. ", claim.text, claim.evidence);
  return words;
}

// The parts of the minimisers that belong, as curves of that style; the longest has the label.
template <class Belongs>
void add_parts(std::vector<drawing::PlaneCurve>& curves, const FrontTrace& trace, drawing::CurveStyle style,
               const std::string& label, const Belongs& belongs) {
  const std::size_t first = curves.size();
  for (const auto& curve : trace.curves) {
    std::vector<drawing::PlanePoint> part;
    const auto finish = [&] {
      if (part.size() > 1 || (curve.size() == 1 && !part.empty())) curves.push_back({style, "", std::exchange(part, {})});
      part.clear();
    };
    for (const FrontPoint& point : curve) {
      if (belongs(point)) {
        part.push_back(point.at);
      } else {
        finish();
      }
    }
    finish();
  }
  const auto longest = std::max_element(curves.begin() + static_cast<std::ptrdiff_t>(first), curves.end(),
                                        [](const auto& a, const auto& b) { return a.points.size() < b.points.size(); });
  if (longest != curves.end()) longest->label = label;
}

std::vector<drawing::PlaneCurve> curves_of(const FrontTrace& trace) {
  std::vector<drawing::PlaneCurve> curves;
  add_parts(curves, trace, drawing::CurveStyle::dotted, "only locally Pareto",
            [](const FrontPoint& p) { return p.local == Pareto::optimal && !p.global; });
  add_parts(curves, trace, drawing::CurveStyle::band, "Pareto front", [](const FrontPoint& p) { return p.global; });
  add_parts(curves, trace, drawing::CurveStyle::thin, "", [](const FrontPoint&) { return true; });
  return curves;
}

std::string number_or_dash(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? drawing::pretty(*value) : "-";
}

// A longer one would run into the end point; then the column of end points makes room for names up to kLongestName.
bool has_long_name(const ToyStudy& study) {
  return std::any_of(study.runs.begin(), study.runs.end(), [](const ToyRun& run) { return run.arm.name.size() > 14; });
}

constexpr std::size_t kLongestName = 28;

std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : name.substr(0, kLongestName - 1) + "…";
}

std::vector<drawing::PlanePath> paths_of(const ToyStudy& study) {
  std::vector<drawing::PlanePath> paths;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const ToyRun& run = study.runs[i];
    drawing::PlanePath path{i, shortened(run.arm.name), {}, {}};
    for (const Point& p : run.path) path.points.push_back({p[0], p[1]});
    path.cells = {fmt::format("({:.2f}, {:.2f})", run.end()[0], run.end()[1]), drawing::pretty(run.f),
                  number_or_dash(run.to_minimisers), number_or_dash(run.to_front), run.to_box <= kOn ? "yes" : "no"};
    if (has_long_name(study)) path.cells.erase(path.cells.begin());
    paths.push_back(std::move(path));
  }
  return paths;
}

std::optional<drawing::PlaneBox> box_of(const ToyStudy& study) {
  return drawing::PlaneBox{study.box, fmt::format("|x| ≤ 1/λ = {:.3g}", study.box)};
}

double seen_height(const Problem& problem, double lowest, drawing::PlanePoint p) {
  const double x[2]{p.x, p.y};
  return std::log1p(std::max(0.0, problem.value(x) - lowest));
}

report::Figure plane(const ToyStudy& study) {
  drawing::PlaneFigure figure;
  figure.title = study.problem.title + ": where weight decay leads";
  figure.subtitle = settings(study.options);
  figure.note = fmt::format(
      "{} Shaded: the box |x| ≤ 1/λ. Contours: equal steps of log(1 + f - least f).",
      study.trace->curves.empty() ? "No minimisers were found in view." : "Dashed: the minimisers. Band: their Pareto front.");
  figure.description = in_words(study);
  figure.columns = {{"end point", 0.425}, {"f", 0.565}, {"to minimisers", 0.775}, {"to front", 0.9}, {"in box", 1}};
  if (has_long_name(study)) figure.columns.erase(figure.columns.begin());
  drawing::PlanePanel panel;
  panel.id = "plane";
  panel.title = study.problem.title;
  panel.formula = "f = " + study.problem.formula;
  panel.low = study.view_low;
  panel.high = study.view_high;
  panel.height = [problem = study.problem, lowest = study.lowest](drawing::PlanePoint p) {
    return seen_height(problem, lowest, p);
  };
  panel.box = box_of(study);
  panel.curves = curves_of(*study.trace);
  panel.paths = paths_of(study);
  figure.panels.push_back(std::move(panel));
  return {file_stem(study.problem), figure, "Drag the slider to follow the arms."};
}

report::Figure surface(const ToyStudy& study) {
  drawing::SurfaceFigure figure;
  figure.title = study.problem.title + ": a valley of minimisers";
  figure.subtitle = settings(study.options);
  figure.formula = "f = " + study.problem.formula;
  figure.description = in_words(study);
  figure.note = "Dashed: the minimisers. Green: the box |x| ≤ 1/λ.";
  figure.low = study.view_low;
  figure.high = study.view_high;
  figure.height = [problem = study.problem, lowest = study.lowest](drawing::PlanePoint p) {
    return seen_height(problem, lowest, p);
  };
  figure.azimuth = 72;  // along the valley, from the side of the start: the hill inside it does not hide the slide
  figure.elevation = 58;
  figure.height_label = "log(1 + f)";
  figure.box = box_of(study);
  figure.curves = curves_of(*study.trace);
  figure.paths = paths_of(study);
  return {file_stem(study.problem) + "_3d", figure, "As Figure 2 of the paper, whose function is not given: this one is ours."};
}

template <class Value>
report::Figure over_steps(const ToyStudy& study, std::string_view name, const std::string& title, const std::string& y_label,
                          report::Scale scale, const Value& value) {
  report::LineChart chart;
  chart.title = title;
  chart.x_label = "step";
  chart.y_label = y_label;
  chart.y_scale = scale;
  chart.description = in_words(study);
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const ToyRun& run = study.runs[i];
    report::ChartSeries series;
    series.name = run.arm.name;
    series.colour = i;
    const std::size_t last = run.path.size() - 1, stride = std::max<std::size_t>(1, last / kLinePoints);
    for (std::size_t t = 0; t <= last; t += stride) {
      series.x.push_back(static_cast<double>(t));
      series.y.push_back(value(run.path[t]));
    }
    chart.series.push_back(std::move(series));
  }
  return {fmt::format("{}_{}", file_stem(study.problem), name), chart, settings(study.options)};
}

}  // namespace

std::string file_stem(const Problem& problem) {
  std::string name = "toy_" + problem.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string settings(const ToyOptions& options) {
  const auto shared = fmt::format("{} steps, lr {} ({}), λ {}", options.steps, options.lr, cautious::name_of(options.schedule),
                                  options.weight_decay);
  if (!options.arms.empty()) return fmt::format("{} unless an arm says otherwise", shared);
  return fmt::format("{}, β₁ {}, β₂ {}, ε {}", shared, options.beta1, options.beta2, options.eps);
}

std::vector<report::Figure> toy_figures(const ToyStudy& study) {
  if (study.trace) {
    std::vector<report::Figure> figures{plane(study)};
    if (study.problem.name == "surface" && study.problem.file.empty()) figures.insert(figures.begin(), surface(study));
    return figures;
  }
  const Problem& problem = study.problem;
  // Below 1e-30 there is only rounding.
  const auto excess = [&](const Point& x) { return std::max(1e-30, problem.value(x) - study.lowest); };
  const auto size = [](const Point& x) { return as_vector(PointView(x)).lpNorm<1>(); };
  return {
      over_steps(study, "f", problem.title + ": f over the steps", "f", report::Scale::log, excess),
      over_steps(study, "size", problem.title + ": the size of x over the steps", "sum of |x|", report::Scale::linear, size)};
}

}  // namespace cautious::lab
