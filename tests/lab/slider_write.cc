// Writes a page with figures of paths for slider_test.py: FILE.
#include <cmath>
#include <cstdio>
#include <numbers>

#include "base/atomic_file.h"
#include "lab/drawing/figures.h"
#include "report/page.h"

namespace cautious::lab {
namespace {

constexpr int kSteps = 4000;

double circle(drawing::PlanePoint p) { return std::pow((p.x - 3) * (p.x - 3) + (p.y - 3) * (p.y - 3) - 1, 2); }

enum class Arm { adam, adamw, cautious };

// Adam with weight decay 0.5 on the circle, the learning rate going to zero.
std::vector<drawing::PlanePoint> path_of(Arm arm, int steps) {
  double x[2]{1.4, 5.2}, m[2]{}, v[2]{};
  std::vector<drawing::PlanePoint> path{{x[0], x[1]}};
  for (int t = 1; t <= steps; ++t) {
    const double off = (x[0] - 3) * (x[0] - 3) + (x[1] - 3) * (x[1] - 3) - 1;
    const double lr = 0.005 * (1 + std::cos(std::numbers::pi * t / steps));
    for (int k = 0; k < 2; ++k) {
      const double g = 4 * off * (x[k] - 3);
      m[k] = 0.9 * m[k] + 0.1 * g;
      v[k] = 0.95 * v[k] + 0.05 * g * g;
      const double u = m[k] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k] / (1 - std::pow(0.95, t))) + 1e-8);
      const bool decays = arm == Arm::adamw || (arm == Arm::cautious && u * x[k] >= 0);
      x[k] -= lr * (u + (decays ? 0.5 * x[k] : 0));
    }
    path.push_back({x[0], x[1]});
  }
  return path;
}

std::vector<drawing::PlanePoint> arc(double from, double to) {
  std::vector<drawing::PlanePoint> points;
  for (int i = 0; i <= 400; ++i) {
    const double angle = (from + (to - from) * i / 400) * std::numbers::pi;
    points.push_back({3 + std::cos(angle), 3 + std::sin(angle)});
  }
  return points;
}

drawing::SurfaceFigure surface() {
  drawing::SurfaceFigure figure;
  figure.title = "Where weight decay leads";
  figure.subtitle = "One start, the same learning rate, weight decay 0.5.";
  figure.description = "Three paths on a bowl with a ring of minimisers.";
  figure.note = "Adam halts at a minimiser, AdamW in the green region, Adam + CWD on the Pareto front of the minimisers.";
  figure.formula = "f = ((y − 3)² + (x − 3)² − 1)²";
  figure.high = 5.7;
  figure.height = [](drawing::PlanePoint p) { return std::log1p(circle(p)); };
  figure.height_label = "log(1 + f)";
  figure.box = drawing::PlaneBox{2, "|x|, |y| ≤ 1/λ"};
  figure.curves = {{drawing::CurveStyle::band, "Pareto front", arc(1, 1.5)},
                   {drawing::CurveStyle::thin, "minimisers", arc(0, 2)}};
  figure.paths = {{0, "Adam", path_of(Arm::adam, kSteps), {"(2.3, 3.7)"}},
                  {1, "AdamW", path_of(Arm::adamw, kSteps), {"(2.0, 2.0)"}},
                  {2, "Adam + </script>", path_of(Arm::cautious, kSteps / 4), {"(2.3, 2.3)"}}};
  return figure;
}

drawing::PlaneFigure plane(const drawing::SurfaceFigure& same) {
  drawing::PlaneFigure figure;
  figure.title = same.title;
  figure.description = same.description;
  figure.note = same.note;
  figure.columns = {{"end point", 1}};
  for (const char* id : {"one", "two"}) {
    figure.panels.push_back({id, "Circle", same.formula, 0, same.high, same.height, same.box, same.curves, same.paths});
  }
  return figure;
}

std::string page() {
  report::HtmlPage page("Paths that move");
  page.section("Claims");
  page.claim("Adam + CWD ends on the Pareto front of the minimisers", "Figure 2", "holds", "distance 2.1e-5 after 4000 steps");
  page.claim("AdamW minimises f inside the box", "section 2.2", "fails", "f = 1.00 where 0.47 can be had");
  page.claim("The trajectory of Adam + CWD goes on along the front", "", "noted", "0.31 between arrival and end");
  page.section("Figures");
  const drawing::SurfaceFigure on_surface = surface();
  page.figure({"surface", on_surface, "Drag the slider to follow the paths."});
  page.figure({"plane", plane(on_surface), "The same from above."});
  drawing::SurfaceFigure resting = on_surface;
  for (drawing::PlanePath& path : resting.paths) path.points.resize(1);
  page.figure({"resting", resting, "Nothing moves."});
  return page.finish();
}

}  // namespace
}  // namespace cautious::lab

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: slider_write FILE\n", stderr);
    return 2;
  }
  cautious::base::write_atomically(arguments[1], cautious::lab::page());
}
