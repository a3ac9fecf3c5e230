// The skin of the block and its scales.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "lab/drawing/surface_block.h"
#include "report/axis.h"

namespace cautious::lab::drawing {
namespace {

constexpr double kAhead = 1.1, kLightUp = 0.9;

struct Rgb {
  double red, green, blue;
};

Rgb mixed(Rgb a, Rgb b, double part) {
  return {std::lerp(a.red, b.red, part), std::lerp(a.green, b.green, part), std::lerp(a.blue, b.blue, part)};
}

std::string hex(Rgb c) {
  const auto byte = [](double value) { return static_cast<int>(std::clamp(std::round(value), 0.0, 255.0)); };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(c.red), byte(c.green), byte(c.blue));
}

// From the deepest to the highest point; in the shade a tone goes toward `shade`, in the light toward `light`.
struct Ramp {
  std::array<Rgb, 4> tones;
  Rgb shade, light;

  Rgb at(double height, double shine) const {
    const double place = height * (static_cast<double>(tones.size()) - 1);
    const auto below = std::min(static_cast<std::size_t>(place), tones.size() - 2);
    const Rgb tone = mixed(tones[below], tones[below + 1], place - static_cast<double>(below));
    return shine < 0.5 ? mixed(tone, shade, (0.5 - shine) * 0.7) : mixed(tone, light, (shine - 0.5) * 0.9);
  }
};

constexpr Ramp kGround{{{{253, 244, 226}, {226, 230, 238}, {184, 203, 232}, {142, 172, 219}}}, {84, 104, 150}, {255, 255, 255}};
constexpr Ramp kBox{{{{214, 240, 205}, {180, 224, 180}, {143, 205, 158}, {112, 187, 141}}}, {38, 110, 80}, {245, 255, 240}};
constexpr Ramp kDarkGround{{{{62, 58, 84}, {50, 62, 100}, {52, 80, 136}, {70, 110, 178}}}, {10, 14, 26}, {140, 165, 220}};
constexpr Ramp kDarkBox{{{{44, 98, 72}, {42, 102, 78}, {46, 118, 90}, {56, 138, 104}}}, {8, 26, 22}, {140, 215, 175}};

int tone_step(double part, int steps) { return std::clamp(static_cast<int>(part * steps), 0, steps - 1); }

// What a strip of quadrilaterals must have in common to be one shape.
struct Tone {
  bool hole = true, in_box = false, faces_reader = true;
  int level = 0, shade = 0;
  bool operator==(const Tone&) const = default;

  std::string name() const { return fmt::format("{}{}", in_box ? 'b' : 'g', level * kMeshShades + shade); }
  std::string rule(const Ramp& ground, const Ramp& box) const {
    const Rgb colour = (in_box ? box : ground).at((level + 0.5) / kMeshLevels, (shade + 0.5) / kMeshShades);
    return fmt::format(".{}{{color:{}}}", name(), hex(colour));
  }
};

class Mesh {
 public:
  Mesh(const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) : grid_(grid), view_(view) {
    if (figure.box) {
      const double side = figure.high - figure.low;
      low_ = (-figure.box->half_side - figure.low) / side;
      high_ = (figure.box->half_side - figure.low) / side;
    }
    // From the reader's left, above.
    const BlockPoint to = view.toward();
    light_ = {to.u * 0.35 + to.v * kAhead, to.v * 0.35 - to.u * kAhead, kLightUp};
    const double length = std::hypot(light_.u, light_.v, light_.w);
    light_ = {light_.u / length, light_.v / length, light_.w / length};
  }

  Tone tone(std::size_t column, std::size_t row) const {
    const BlockPoint a = grid_.corner(column, row), b = grid_.corner(column + 1, row);
    const BlockPoint c = grid_.corner(column + 1, row + 1), d = grid_.corner(column, row + 1);
    const double middle = (a.w + b.w + c.w + d.w) / 4;
    if (std::isnan(middle)) return {};
    const auto [u_slope, v_slope] = slope(column, column + 1, row, row + 1);
    const bool faces_reader = view_.toward().w - view_.toward().u * u_slope - view_.toward().v * v_slope > 0;
    // The light falls on a wider piece, which is smoother along valleys that run across the grid.
    auto [du, dv] = slope(column == 0 ? 0 : column - 1, std::min(column + 2, grid_.cells()), row == 0 ? 0 : row - 1,
                          std::min(row + 2, grid_.cells()));
    if (std::isnan(du + dv)) std::tie(du, dv) = std::tie(u_slope, v_slope);
    const double length = std::hypot(du, dv, 1), shine = (light_.w - light_.u * du - light_.v * dv) / length;
    const double u = (a.u + b.u) / 2, v = (a.v + d.v) / 2;
    const bool in_box = u > low_ && u < high_ && v > low_ && v < high_;
    return {false, in_box, faces_reader, tone_step(middle / kTall, kMeshLevels), tone_step((shine + 0.25) / 1.25, kMeshShades)};
  }

  // Quadrilaterals from `first` to before `last` of a column of the grid, as one shape.
  void draw(Svg& svg, std::size_t column, std::size_t first, std::size_t last) const {
    const Tone common = tone(column, first);
    if (common.hole) return;
    std::vector<SvgPoint> shape;
    for (std::size_t row = first; row <= last; ++row) shape.push_back(view_.page(grid_.corner(column, row)));
    for (std::size_t row = last + 1; row-- > first;) shape.push_back(view_.page(grid_.corner(column + 1, row)));
    svg.element("path", {{"class", common.name()}, {"d", svg_path(shape, Ends::closed)}});
  }

 private:
  // Mean rise along u and v of a rectangle of the grid.
  std::pair<double, double> slope(std::size_t left, std::size_t right, std::size_t low, std::size_t high) const {
    const BlockPoint a = grid_.corner(left, low), b = grid_.corner(right, low);
    const BlockPoint c = grid_.corner(right, high), d = grid_.corner(left, high);
    return {(b.w + c.w - a.w - d.w) / (2 * (b.u - a.u)), (c.w + d.w - a.w - b.w) / (2 * (d.v - a.v))};
  }

  const SurfaceGrid& grid_;
  const SurfaceView& view_;
  double low_ = 1, high_ = 0;
  BlockPoint light_;
};

// A cut side of the block below the surface; not under holes.
void draw_side(Svg& svg, const SurfaceGrid& grid, const SurfaceView& view, bool along_u, std::size_t line) {
  std::vector<SvgPoint> shape, foot;
  const auto finish = [&] {
    shape.insert(shape.end(), foot.rbegin(), foot.rend());
    if (foot.size() > 1)
      svg.element("path",
                  {{"class", along_u ? "side" : "side turned"}, {"d", svg_path(simplified(shape, 0.03), Ends::closed)}});
    shape.clear();
    foot.clear();
  };
  for (std::size_t i = 0; i <= grid.cells(); ++i) {
    BlockPoint p = along_u ? grid.corner(i, line) : grid.corner(line, i);
    if (std::isnan(p.w)) {
      finish();
      continue;
    }
    shape.push_back(view.page(p));
    p.w = 0;
    foot.push_back(view.page(p));
  }
  finish();
}

constexpr double kTick = 0.018, kLabel = 0.055, kName = 0.125;  // away from the edge, in sides of the block
constexpr double kTextMargin = 12;                              // of the page
constexpr double kDrop = 4;                                     // from the middle of small text to its baseline
constexpr double kNarrow = 25;                                  // a label nearer than this to straight below its tick

// A scale of the plane along the floor: where `part` of it lies, moved outward by `away`.
template <class Place>
void draw_scale(Svg& svg, const SurfaceFigure& figure, const SurfaceView& view, std::string_view name, const Place& place) {
  const SvgPoint middle = view.page(place(0.5, 0)), outward = view.page(place(0.5, kName));
  const double lean = outward.x - middle.x;
  const char* anchor = std::abs(lean) < kNarrow ? "axis middle" : lean < 0 ? "axis end" : "axis start";
  draw_line(svg, "frame", view.page(place(0, 0)), view.page(place(1, 0)));
  const std::vector<double> ticks = report::axis_ticks(figure.low, figure.high, report::Scale::linear, 7);
  const std::vector<std::string> labels = report::tick_labels(ticks, report::Scale::linear);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double part = (ticks[i] - figure.low) / (figure.high - figure.low);
    draw_line(svg, "tick", view.page(place(part, 0)), view.page(place(part, kTick)));
    const SvgPoint at = view.page(place(part, kLabel));
    svg.text({at.x, at.y + kDrop}, "axis middle", labels[i]);
  }
  svg.text({outward.x, outward.y + kDrop}, anchor, name);
}

void draw_height(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  BlockPoint foot;
  for (const double u : {0.0, 1.0}) {
    for (const double v : {0.0, 1.0}) {
      if (view.page({u, v, 0}).x < view.page(foot).x) foot = {u, v, 0};
    }
  }
  const SvgPoint low = view.page(foot), high = view.page({foot.u, foot.v, kTall});
  draw_line(svg, "frame", low, high);
  const double width = report::text_width(figure.height_label, report::kAxisSize);
  svg.text({std::max(high.x + 6, width + kTextMargin), high.y - 12}, "axis end", figure.height_label);
  if (!(grid.bottom() < grid.top())) return;
  const std::vector<double> ticks = report::axis_ticks(grid.bottom(), grid.top(), report::Scale::linear, 5);
  const std::vector<std::string> labels = report::tick_labels(ticks, report::Scale::linear);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double y = std::lerp(low.y, high.y, (ticks[i] / 2 - grid.bottom() / 2) / (grid.top() / 2 - grid.bottom() / 2));
    draw_line(svg, "tick", {low.x - 5, y}, {low.x, y});
    svg.text({low.x - 9, y + kDrop}, "axis end", labels[i]);
  }
}

}  // namespace

std::string mesh_style(const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  const Mesh mesh(figure, grid, view);
  std::map<std::string, Tone> used;
  for (std::size_t i = 0; i < grid.cells() * grid.cells(); ++i) {
    const Tone tone = mesh.tone(i / grid.cells(), i % grid.cells());
    if (!tone.hole) used.try_emplace(tone.name(), tone);
  }
  std::string light, dark;
  for (const auto& [name, tone] : used) {
    light += tone.rule(kGround, kBox);
    dark += tone.rule(kDarkGround, kDarkBox);
  }
  return fmt::format(
      ".skin path{{fill:currentColor;stroke:currentColor;stroke-width:.5;stroke-linejoin:round}}{}\n"
      "@media (prefers-color-scheme:dark){{{}}}\n",
      light, dark);
}

void draw_mesh(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  const Mesh mesh(figure, grid, view);
  const std::size_t cells = grid.cells();
  svg.open("g", {{"class", "skin"}});
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t column = view.high_u_is_near() ? i : cells - 1 - i;
    // Strips of one tone, from the far end to the near one.
    std::vector<std::pair<std::size_t, std::size_t>> strips;
    for (std::size_t row = 0; row < cells; ++row) {
      if (row > 0 && mesh.tone(column, row) == mesh.tone(column, row - 1)) {
        ++strips.back().second;
      } else {
        strips.emplace_back(row, row + 1);
      }
    }
    if (!view.high_v_is_near()) std::reverse(strips.begin(), strips.end());
    for (const auto& [first, last] : strips) mesh.draw(svg, column, first, last);
  }
  svg.close();
  draw_side(svg, grid, view, true, view.high_v_is_near() ? cells : 0);
  draw_side(svg, grid, view, false, view.high_u_is_near() ? cells : 0);
}

void draw_surface_axes(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  const double near_u = view.high_u_is_near() ? 1 : 0, near_v = view.high_v_is_near() ? 1 : 0;
  const double out_u = 2 * near_u - 1, out_v = 2 * near_v - 1;
  draw_scale(svg, figure, view, "x", [=](double part, double away) { return BlockPoint{part, near_v + out_v * away, 0}; });
  draw_scale(svg, figure, view, "y", [=](double part, double away) { return BlockPoint{near_u + out_u * away, part, 0}; });
  draw_height(svg, figure, grid, view);
}

}  // namespace cautious::lab::drawing
