#include "report/svg.h"

#include <cassert>
#include <cmath>

#include <fmt/format.h>

namespace cautious::report {

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

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_path(const std::vector<SvgPoint>& points, Ends ends) {
  std::string data;
  double x = 0, y = 0;  // where the rounded path stands, so that rounding does not add up
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

}  // namespace cautious::report
