// Confusion matrices: every count that is not 0 is a cell, and names and numbers are there as far as they fit.
#include "report/matrix_chart.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "svg_reading.h"

namespace cautious::report {
namespace matrix_chart_test {

// Class i of n is right in 90 + i cases and the next class in i; the others are 0.
MatrixChart chart_of(std::size_t n) {
  MatrixChart chart;
  chart.title = "Title <of it>";
  chart.description = "What it shows";
  for (std::size_t i = 0; i < n; ++i) {
    chart.classes.push_back("class " + std::to_string(i));
    std::vector<std::int64_t>& row = chart.counts.emplace_back(n, 0);
    row[(i + 1) % n] = static_cast<std::int64_t>(i);
    row[i] = static_cast<std::int64_t>(90 + i);
  }
  return chart;
}

// Subpaths of all cells.
std::size_t cells_in(const std::string& svg) {
  std::size_t cells = 0;
  for (std::size_t at = 0; (at = svg.find("<path class=\"cell s", at)) != std::string::npos; ++at) {
    cells += count(svg.substr(at, svg.find("/>", at) - at), "M");
  }
  return cells;
}

TEST(MatrixChart, DrawsEveryCountThatIsNotZero) {
  for (const std::size_t n : {2u, 3u, 10u, 40u, 100u}) {
    const std::string svg = to_svg(chart_of(n));
    expect_well_formed(svg);
    EXPECT_EQ(cells_in(svg), 2 * n - 1) << n;
    EXPECT_EQ(count(svg, "<desc id=\"description\">What it shows</desc>"), 1u);
    EXPECT_EQ(count(svg, ">Title &lt;of it&gt;</text>"), 1u);
  }
}

TEST(MatrixChart, WritesWhatFits) {
  const std::string ten = to_svg(chart_of(10)), many = to_svg(chart_of(100));
  EXPECT_EQ(count(ten, ">class 7</text>"), 2u);  // of the row and of the column
  EXPECT_EQ(count(ten, "class=\"count"), 19u);
  EXPECT_EQ(count(ten, ">97</text>"), 1u);
  EXPECT_EQ(count(ten, ">93.3%</text>"), 1u);  // 97 of 104
  EXPECT_EQ(count(many, "class=\"count"), 0u);
  EXPECT_GE(count(many, ">class "), 40u);
  EXPECT_LT(count(many, ">class "), 100u);
  EXPECT_LT(many.size(), 60'000u);
}

TEST(MatrixChart, NamesStayOnThePage) {
  MatrixChart chart = chart_of(2);
  chart.classes = {"", "<" + std::string(500, 'w') + "\xc3\xa9"};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, std::string(20, 'w')), 0u);
  EXPECT_EQ(count(svg, "w…</text>"), 2u);
}

TEST(MatrixChart, WithoutImages) {
  MatrixChart chart = chart_of(3);
  chart.counts[1] = {0, 0, 0};
  expect_well_formed(to_svg(chart));
  EXPECT_EQ(cells_in(to_svg(chart)), 3u);
  expect_well_formed(to_svg(chart_of(1)));
  expect_well_formed(to_svg(MatrixChart{}));
}

}  // namespace matrix_chart_test
}  // namespace cautious::report
