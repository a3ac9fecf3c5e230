#include "report/svg.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cautious::report {
namespace {

constexpr std::size_t kMostPathPoints = 20000, kPathSpan = 500;  // the time of the simplification grows with their product

// Distance of p to the segment from a to b.
double off_segment(SvgPoint p, SvgPoint a, SvgPoint b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double along = length2 > 0 ? std::fmin(1, std::fmax(0, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2)) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// Of at least three points at most kMostPathPoints, none nearer than `least` to the one before but for the last.
std::vector<SvgPoint> spaced(const std::vector<SvgPoint>& path, double least) {
  const std::size_t stride = path.size() / kMostPathPoints + 1;
  std::vector<SvgPoint> kept;
  for (std::size_t i = 0; i < path.size(); i += stride) {
    if (kept.empty() || std::hypot(path[i].x - kept.back().x, path[i].y - kept.back().y) >= least) kept.push_back(path[i]);
  }
  kept.push_back(path.back());
  return kept;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title, std::string_view description, std::string_view style) {
  open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
               {"viewBox", fmt::format("0 0 {} {}", svg_number(width), svg_number(height))},
               {"width", svg_number(width)},
               {"height", svg_number(height)},
               {"role", "img"},
               {"aria-labelledby", "title description"}});
  out_ += fmt::format("<title id=\"title\">{}</title>\n", svg_escape(title));
  out_ += fmt::format("<desc id=\"description\">{}</desc>\n", svg_escape(description));
  out_ += fmt::format("<style>{}</style>\n", svg_escape(style));
}

void Svg::begin(std::string_view tag, Attributes attributes) {
  assert(!out_.empty() || open_.empty());
  out_ += fmt::format("<{}", tag);
  for (const auto& [name, value] : attributes) out_ += fmt::format(" {}=\"{}\"", name, svg_escape(value));
}

void Svg::open(std::string_view tag, Attributes attributes) {
  begin(tag, attributes);
  out_ += ">\n";
  open_.emplace_back(tag);
}

void Svg::close() {
  assert(!open_.empty());
  out_ += fmt::format("</{}>\n", open_.back());
  open_.pop_back();
}

void Svg::element(std::string_view tag, Attributes attributes) {
  begin(tag, attributes);
  out_ += "/>\n";
}

void Svg::text(SvgPoint at, std::string_view style_class, std::string_view content) {
  begin("text", {{"x", svg_number(at.x)}, {"y", svg_number(at.y)}, {"class", std::string(style_class)}});
  out_ += fmt::format(">{}</text>\n", svg_escape(content));
}

std::string Svg::finish() {
  while (!open_.empty()) close();
  return std::move(out_);
}

std::string svg_escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool allowed = static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t';
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += allowed ? c : '?';
    }
  }
  return result;
}

std::string script_string(std::string_view text) {
  const std::string json = nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string result;
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_path(const std::vector<SvgPoint>& points, Ends ends) {
  std::string data;
  double x = 0, y = 0;  // where the rounded path is, so that rounding does not add up
  for (const SvgPoint& point : points) {
    const double dx = std::round((point.x - x) * 100) / 100;
    const double dy = std::round((point.y - y) * 100) / 100;
    data += fmt::format("{}{} {}", data.empty() ? "M" : "l", svg_number(dx), svg_number(dy));
    x += dx;
    y += dy;
  }
  if (ends == Ends::closed && !data.empty()) data += "z";
  return data;
}

void draw_line(Svg& svg, std::string_view classes, SvgPoint from, SvgPoint to) {
  svg.element("line", {{"class", std::string(classes)},
                       {"x1", svg_number(from.x)},
                       {"y1", svg_number(from.y)},
                       {"x2", svg_number(to.x)},
                       {"y2", svg_number(to.y)}});
}

std::vector<SvgPoint> simplified(const std::vector<SvgPoint>& all, double tolerance) {
  if (all.size() < 3) return all;
  const std::vector<SvgPoint> path = spaced(all, tolerance / 4);
  std::vector<bool> stays(path.size(), false);
  stays.front() = stays.back() = true;
  std::vector<std::pair<std::size_t, std::size_t>> spans;
  for (std::size_t from = 0; from + 1 < path.size(); from += kPathSpan) {
    const std::size_t to = std::min(from + kPathSpan, path.size() - 1);
    stays[to] = true;
    spans.emplace_back(from, to);
  }
  while (!spans.empty()) {
    const auto [from, to] = spans.back();
    spans.pop_back();
    std::size_t farthest = from;
    double most = tolerance;
    for (std::size_t i = from + 1; i < to; ++i) {
      const double off = off_segment(path[i], path[from], path[to]);
      if (off > most) {
        most = off;
        farthest = i;
      }
    }
    if (farthest == from) continue;
    stays[farthest] = true;
    spans.insert(spans.end(), {{from, farthest}, {farthest, to}});
  }
  std::vector<SvgPoint> kept;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (stays[i]) kept.push_back(path[i]);
  }
  return kept;
}

}  // namespace cautious::report
