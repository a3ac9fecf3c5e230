// A small SVG writer: well-formed by construction, text escaped, numbers short and the same in every locale. Colours and fonts
// belong in the style sheet, so that one file serves light and dark.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cautious::report {

struct SvgPoint {
  double x = 0, y = 0;
};

struct Rectangle {
  double left, top, right, bottom;
};

class Svg {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

  // Title and description are what a screen reader says.
  Svg(double width, double height, std::string_view title, std::string_view description, std::string_view style);

  void open(std::string_view tag, Attributes attributes = {});
  void close();
  void element(std::string_view tag, Attributes attributes);  // without content
  void text(SvgPoint at, std::string_view style_class, std::string_view content);

  // Closes what is open and returns the document.
  std::string finish();

 private:
  void begin(std::string_view tag, Attributes attributes);
  std::string out_;
  std::vector<std::string> open_;
};

// Text for an attribute value or an element's content. A character that XML forbids becomes '?'.
std::string svg_escape(std::string_view text);

// The text as a JSON string inside a script element of a page: in ASCII, and it cannot end the element.
std::string script_string(std::string_view text);

// Two decimals at most, no trailing zeros, never "-0".
std::string svg_number(double value);

enum class Ends { open, closed };

// Path data through the points, relative to the one before, which is half as long.
std::string svg_path(const std::vector<SvgPoint>& points, Ends ends);

void draw_line(Svg& svg, std::string_view classes, SvgPoint from, SvgPoint to);

// The path without the points that lie closer than `tolerance` to the line between those that stay (Douglas-Peucker). A path
// of more than 20000 points is first reduced to that many, equally spaced: more cannot be told apart.
std::vector<SvgPoint> simplified(const std::vector<SvgPoint>& path, double tolerance);

}  // namespace cautious::report
