// The page of a report and its tables: claims, figures, four formats of a table, what is escaped and aligned. How a page looks
// and moves is browser_test.py's and slider_test.py's.
#include "report/page.h"

#include <cautious/error.h>
#include <gtest/gtest.h>

#include "report/chart.h"
#include "svg_reading.h"
#include "usage_message.h"

namespace cautious::report {
namespace page_test {

TEST(HtmlPage, ClaimsAreEscapedAndSayTheirOutcome) {
  HtmlPage page("T");
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

TEST(HtmlPage, RemarksStandBelowTheirClaim) {
  HtmlPage page("T");
  page.claim("a", "", "holds", "b", {{"noticed", "without c:", "1 < 2"}});
  const std::string text = page.finish();
  EXPECT_EQ(count(text, "<p class=\"evidence\">b</p>\n<p class=\"remark noticed\"><b>without c:</b> 1 &lt; 2</p>\n"), 1u);
}

TEST(HtmlPage, PartsGroupTheContents) {
  HtmlPage plain("T"), grouped("T");
  plain.section("a");
  EXPECT_EQ(count(plain.finish(), "<nav aria-label=\"Contents\">\n<a href=\"#section-1\">a</a>\n</nav>\n<h2"), 1u);
  grouped.part("a");
  grouped.section("b");
  grouped.part("c");
  const std::string text = grouped.finish();
  EXPECT_EQ(count(text,
                  "<div>\n<a class=\"part\" href=\"#section-1\">a</a>\n<a href=\"#section-2\">b</a>\n</div>\n"
                  "<div>\n<a class=\"part\" href=\"#section-3\">c</a>\n</div>\n</nav>"),
            1u);
  EXPECT_EQ(count(text, "<h3 id=\"section-2\">b</h3>"), 1u);
}

TEST(HtmlPage, FiguresBringWhatTheirScriptNeeds) {
  HtmlPage page("T");
  LineChart lines;
  lines.title = "a < b";
  lines.description = "what is seen";
  const Figure figure("lines", lines, "below");
  EXPECT_EQ(figure.svg, to_svg(lines));
  EXPECT_EQ(figure.data_json, page_json(lines));
  page.figure(figure);
  page.figure({"intervals", IntervalChart{}, ""});
  const std::string text = page.finish();
  EXPECT_EQ(count(text, "<script type=\"application/json\""), 1u);
  EXPECT_EQ(count(text, "<script type=\"application/json\" class=\"chart\">" + figure.data_json + "</script>"), 1u);
  EXPECT_EQ(count(text, "alt=\"a &lt; b. what is seen\""), 1u);
  EXPECT_EQ(count(text, "<figcaption>"), 1u);
}

Table sample() {
  return {.name = "losses",
          .title = "Loss & 5% of it",
          .head = {"arm_name", "loss", "interval", "word"},
          .rows = {{"a|b", "-0.5", "[-1, 2]", "x"}, {"c,\"d\"", "-", "-", "1"}, {"<e>\nf", "< 0.001", "", "y"}},
          .note = ""};
}

TEST(Table, Csv) {
  EXPECT_EQ(to_csv(sample()),
            "arm_name,loss,interval,word\n"
            "a|b,-0.5,\"[-1, 2]\",x\n"
            "\"c,\"\"d\"\"\",-,-,1\n"
            "\"<e>\nf\",< 0.001,,y\n");
}

// What was written is read: quotes, commas and ends of lines in cells, empty cells, rows of different lengths.
TEST(Table, RowsOfCsv) {
  std::vector<std::vector<std::string>> rows = sample().rows;
  rows.insert(rows.begin(), sample().head);
  EXPECT_EQ(rows_of_csv(to_csv(sample())), rows);
  rows.push_back({"", ""});
  rows.push_back({""});
  EXPECT_EQ(rows_of_csv(to_csv(sample()) + ",\n\n"), rows);
  EXPECT_EQ(rows_of_csv("a,b"), (std::vector<std::vector<std::string>>{{"a", "b"}}));
  EXPECT_TRUE(rows_of_csv("").empty());
  EXPECT_EQ(line_of(Fault::data, [] { rows_of_csv("a\n\"b\nc"); }), "a quoted cell in row 2 has no end");
}

TEST(Table, MarkdownAlignsNumbersToTheRight) {
  EXPECT_EQ(to_markdown(sample()),
            "**Loss & 5% of it**\n\n"
            "| arm_name | loss | interval | word |\n"
            "| :--- | ---: | ---: | :--- |\n"
            "| a\\|b | -0.5 | [-1, 2] | x |\n"
            "| c,\"d\" | - | - | 1 |\n"
            "| \\<e> f | \\< 0.001 |  | y |\n");
}

TEST(Table, MarkdownTextIsNoMarkup) {
  const Table table{.name = "t", .title = "*t*", .head = {"`h`"}, .rows = {{"a\\b"}}, .note = "see *"};
  EXPECT_EQ(to_markdown(table), "**\\*t\\***\n\n| \\`h\\` |\n| :--- |\n| a\\\\b |\n\nsee \\*\n");
}

TEST(Table, Latex) {
  EXPECT_EQ(to_latex(sample()),
            "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\caption{Loss \\& 5\\% of it}\n\\label{tab:losses}\n"
            "\\begin{tabular}{lrrl}\n\\toprule\n"
            "arm\\_name & loss & interval & word \\\\\n\\midrule\n"
            "a|b & $-$0.5 & [$-$1, 2] & x \\\\\n"
            "c,\"d\" & - & - & 1 \\\\\n"
            "$<$e$>$ f & $<$ 0.001 &  & y \\\\\n"
            "\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}

TEST(Table, LatexTextIsNoCommand) {
  const Table table{.name = "t", .title = "\\~^", .head = {"#{$}"}, .rows = {}, .note = "n_1"};
  const std::string text = to_latex(table);
  EXPECT_NE(text.find("\\caption{\\textbackslash{}\\textasciitilde{}\\textasciicircum{}}"), text.npos) << text;
  EXPECT_NE(text.find("\n\\#\\{\\$\\} \\\\\n"), text.npos) << text;
  EXPECT_NE(text.find("{\\footnotesize n\\_1}"), text.npos) << text;
}

TEST(Table, Html) {
  EXPECT_EQ(to_html({.name = "t", .title = "a < b", .head = {"k", "n"}, .rows = {{"\"x\" & y", "1e-05"}}, .note = "<n>"}),
            "<div class=\"scroll\"><table id=\"table-t\">\n<caption><span>a &lt; b</span></caption>\n"
            "<thead><tr><th scope=\"col\">k</th><th scope=\"col\" class=\"number\">n</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>&quot;x&quot; &amp; y</td><td class=\"number\">1e-05</td></tr>\n"
            "</tbody>\n</table></div>\n<p class=\"note\">&lt;n&gt;</p>\n");
}

TEST(Table, WhatIsANumber) {
  const auto aligned = [](const std::string& cell) {
    const Table table{.name = "t", .title = "", .head = {"h"}, .rows = {{cell}}, .note = ""};
    return to_markdown(table).find("---:") != std::string::npos;
  };
  for (const char* number : {"0", "-1.5", "+0.02", "1e-5", "5%", "> 1000", "2 +/- 1", "nan", "inf", "-inf"}) {
    EXPECT_TRUE(aligned(number)) << number;
  }
  for (const char* word : {"", "-", "+/-", "adamw", "1 of 2", "weight_decay=0.1", "e5", "x1"})
    EXPECT_FALSE(aligned(word)) << word;
}

TEST(Table, NoRows) {
  const Table table{.name = "t", .title = "T", .head = {"a", "b"}, .rows = {}, .note = ""};
  EXPECT_EQ(to_csv(table), "a,b\n");
  EXPECT_EQ(to_markdown(table), "**T**\n\n| a | b |\n| :--- | :--- |\n");
}

}  // namespace page_test
}  // namespace cautious::report
