// What tests look up in an SVG that a figure wrote.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/svg.h"

namespace cautious {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Every tag closed in order, every attribute quoted, every & an entity, no number that is none.
inline void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = svg.find('<', at)) != std::string::npos;) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    ASSERT_EQ(count(tag, "\"") % 2, 0u) << tag;
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
  const std::size_t entities = count(svg, "&amp;") + count(svg, "&lt;") + count(svg, "&gt;") + count(svg, "&quot;");
  EXPECT_EQ(count(svg, "&"), entities);
  for (const char* part :
       {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf", " nan", "Mnan", "lnan", "M-nan", "l-nan", " inf", "-inf", "<script"}) {
    EXPECT_EQ(svg.find(part), std::string::npos) << part;
  }
}

struct SvgShape {
  std::string classes;
  std::vector<report::SvgPoint> points;
};

// All paths in the order in which they are drawn.
inline std::vector<SvgShape> shapes(const std::string& svg) {
  const std::string start = "<path class=\"", middle = "\" d=\"M";
  std::vector<SvgShape> result;
  for (std::size_t at = 0; (at = svg.find(start, at)) != std::string::npos;) {
    at += start.size();
    const std::size_t data = svg.find(middle, at), end = svg.find('"', data + middle.size());
    SvgShape shape{svg.substr(at, data - at), {}};
    std::string numbers = svg.substr(data + middle.size(), end - data - middle.size());
    for (char& c : numbers) c = c == 'l' || c == 'z' ? ' ' : c;
    std::istringstream words(numbers);
    report::SvgPoint p, by;
    while (words >> by.x >> by.y) {
      p = {p.x + by.x, p.y + by.y};
      shape.points.push_back(p);
    }
    result.push_back(std::move(shape));
    at = end;
  }
  return result;
}

inline std::vector<SvgShape> shapes(const std::string& svg, const std::string& classes) {
  std::vector<SvgShape> result;
  for (SvgShape& shape : shapes(svg)) {
    if (shape.classes == classes) result.push_back(std::move(shape));
  }
  return result;
}

inline report::SvgPoint middle(const SvgShape& shape) {
  report::SvgPoint sum;
  for (const report::SvgPoint& p : shape.points) sum = {sum.x + p.x, sum.y + p.y};
  const double n = static_cast<double>(shape.points.size());
  return {sum.x / n, sum.y / n};
}

}  // namespace cautious
