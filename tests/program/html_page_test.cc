// The page of a report: claims and figures of every kind. How it looks and moves is browser_test.py's and slider_test.py's.
#include "report/html_page.h"

#include <cautious/error.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "svg_reading.h"

namespace cautious::report {
namespace html_page_test {

TEST(HtmlPage, ClaimsAreEscapedAndSayTheirOutcome) {
  report::HtmlPage page("T");
  page.claim("a < b", "Table <1>", "fails", "1 & 2");
  page.claim("c", "", "holds", "");
  const std::string text = page.finish();
  for (const char* part :
       {"<div class=\"claim fails\">", "does not hold", "a &lt; b <span class=\"source\">Table &lt;1&gt;</span>",
        "<p class=\"evidence\">1 &amp; 2</p>", "<div class=\"claim holds\">"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count(text, "class=\"source\""), 1u);
  EXPECT_EQ(count(text, "class=\"evidence\""), 1u);
  EXPECT_THROW(page.claim("d", "", "true", ""), Error);
}

TEST(HtmlPage, FiguresWithPathsBringThemAsJson) {
  report::SurfaceFigure surface;
  surface.title = "S";
  surface.height = [](report::PlanePoint p) { return p.x; };
  surface.paths = {{10, "</script>", {{0, 0}, {0.5, 0.5}, {1, 1}}, {}}};
  report::HtmlPage page("T");
  page.figure({"s", surface, ""});
  page.figure({"lines", report::LineChart{}, ""});
  page.figure({"intervals", report::IntervalChart{}, ""});
  const std::string text = page.finish(), start = "<script type=\"application/json\" class=\"paths\">";
  ASSERT_EQ(count(text, start), 1u);
  EXPECT_EQ(count(text, "<script type=\"application/json\" class=\"chart\">"), 1u);
  const std::size_t at = text.find(start) + start.size();
  const auto data = nlohmann::json::parse(text.substr(at, text.find("</script>", at) - at));
  const report::SvgPoint size = report::page_size(surface);
  EXPECT_NEAR(data["width"].get<double>(), size.x, 0.01);
  EXPECT_NEAR(data["height"].get<double>(), size.y, 0.01);
  ASSERT_EQ(data["paths"].size(), 1u);
  const auto& path = data["paths"][0];
  EXPECT_EQ(path["name"], "</script>");
  EXPECT_EQ(path["series"], 2);
  EXPECT_EQ(path["steps"], 2);
  const std::vector<report::MovingPath> moving = report::moving_paths(surface);
  ASSERT_EQ(path["points"].size(), 6u);
  EXPECT_NEAR(path["points"][4].get<double>(), moving[0].points[2].x, 0.01);
  EXPECT_NEAR(path["points"][5].get<double>(), moving[0].points[2].y, 0.01);
}

}  // namespace html_page_test
}  // namespace cautious::report
