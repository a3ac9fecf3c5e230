#include "cli/toy_picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/toy_text.h"

namespace cautious {
namespace {

constexpr int kCurvePoints = 400;

PlanePoint seen(ToyPoint p) { return {p.x, p.y}; }

PlaneCurve curve(const ToyStudy& study, const PlanePanel& panel, ToyArc arc, CurveStyle style, std::string label) {
  const double from = std::isfinite(arc.from) ? arc.from : panel.low, to = std::isfinite(arc.to) ? arc.to : panel.high;
  PlaneCurve drawn{style, std::move(label), {}};
  for (int i = 0; i <= kCurvePoints; ++i) {
    drawn.points.push_back(seen(study.objective->minimiser(from + (to - from) * i / kCurvePoints)));
  }
  return drawn;
}

PlanePath path_of(const ToyStudy& study, const ToyRun& run) {
  PlanePath path{static_cast<Series>(run.arm), std::string(name_of(run.arm)), {}, {}};
  for (const ToyPoint& p : run.path) path.points.push_back(seen(p));
  path.cells = {fmt::format("({:.2f}, {:.2f})", run.end.x, run.end.y), pretty(run.f), pretty(run.to_manifold),
                pretty(run.to_front), std::string(in_box(study, run))};
  return path;
}

// The axes, both curves and the corner of AdamW's box are in sight; paths that go farther widen the view.
void set_view(PlanePanel& panel, const ToyStudy& study) {
  double low = 0, high = 5.7;
  for (const ToyRun& run : study.runs) {
    for (const ToyPoint& p : run.path) {
      low = std::min({low, p.x, p.y});
      high = std::max({high, p.x, p.y});
    }
  }
  const double margin = 0.05 * (high - low);
  panel.low = low < 0 ? low - margin : low;
  panel.high = high + margin;
}

PlanePanel panel_of(const ToyStudy& study) {
  const ToyObjective& objective = *study.objective;
  PlanePanel panel;
  panel.id = objective.name;
  panel.title = objective.title;
  panel.formula = fmt::format("f = {}", objective.formula);
  set_view(panel, study);
  panel.height = [&objective](PlanePoint p) { return std::log1p(objective.value({p.x, p.y})); };
  if (std::isfinite(study.box)) panel.box = PlaneBox{study.box, fmt::format("|x|, |y| ≤ {:.3g}", study.box)};
  if (objective.local_front) {
    panel.curves.push_back(curve(study, panel, *objective.local_front, CurveStyle::dotted, "only locally Pareto"));
  }
  panel.curves.push_back(curve(study, panel, objective.front, CurveStyle::band, "Pareto front"));
  panel.curves.push_back(curve(study, panel, objective.manifold, CurveStyle::thin, ""));
  for (const ToyRun& run : study.runs) panel.paths.push_back(path_of(study, run));
  return panel;
}

}  // namespace

PlaneFigure toy_picture(std::span<const ToyStudy> studies) {
  PlaneFigure figure;
  figure.title = "Where weight decay leads";
  figure.subtitle = settings(studies.front().options);
  figure.note =
      "Dashed: the minimisers. Band: their Pareto front. Shaded: the box |x|, |y| ≤ 1/λ of AdamW. Contours: equal steps of "
      "log(1 + f).";
  figure.columns = {{"end point", 0.425}, {"f", 0.565}, {"to minimisers", 0.775}, {"to front", 0.9}, {"in box", 1}};
  for (const ToyStudy& study : studies) {
    figure.description += in_words(study) + " ";
    figure.panels.push_back(panel_of(study));
  }
  return figure;
}

}  // namespace cautious
