// Tables in four formats: what is escaped, what is aligned, and that nothing is lost.
#include "report/table.h"

#include <gtest/gtest.h>

namespace cautious::report {
namespace table_test {

report::Table sample() {
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
  const report::Table table{.name = "t", .title = "*t*", .head = {"`h`"}, .rows = {{"a\\b"}}, .note = "see *"};
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
  const report::Table table{.name = "t", .title = "\\~^", .head = {"#{$}"}, .rows = {}, .note = "n_1"};
  const std::string text = to_latex(table);
  EXPECT_NE(text.find("\\caption{\\textbackslash{}\\textasciitilde{}\\textasciicircum{}}"), text.npos) << text;
  EXPECT_NE(text.find("\n\\#\\{\\$\\} \\\\\n"), text.npos) << text;
  EXPECT_NE(text.find("{\\footnotesize n\\_1}"), text.npos) << text;
}

TEST(Table, Html) {
  EXPECT_EQ(to_html({.name = "t", .title = "a < b", .head = {"k", "n"}, .rows = {{"\"x\" & y", "1e-05"}}, .note = "<n>"}),
            "<div class=\"scroll\"><table id=\"table-t\">\n<caption>a &lt; b</caption>\n"
            "<thead><tr><th scope=\"col\">k</th><th scope=\"col\" class=\"number\">n</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>&quot;x&quot; &amp; y</td><td class=\"number\">1e-05</td></tr>\n"
            "</tbody>\n</table></div>\n<p class=\"note\">&lt;n&gt;</p>\n");
}

TEST(Table, WhatIsANumber) {
  const auto aligned = [](const std::string& cell) {
    const report::Table table{.name = "t", .title = "", .head = {"h"}, .rows = {{cell}}, .note = ""};
    return to_markdown(table).find("---:") != std::string::npos;
  };
  for (const char* number : {"0", "-1.5", "+0.02", "1e-5", "5%", "> 1000", "2 +/- 1", "nan", "inf", "-inf"}) {
    EXPECT_TRUE(aligned(number)) << number;
  }
  for (const char* word : {"", "-", "+/-", "adamw", "1 of 2", "weight_decay=0.1", "e5", "x1"})
    EXPECT_FALSE(aligned(word)) << word;
}

TEST(Table, NoRows) {
  const report::Table table{.name = "t", .title = "T", .head = {"a", "b"}, .rows = {}, .note = ""};
  EXPECT_EQ(to_csv(table), "a,b\n");
  EXPECT_EQ(to_markdown(table), "**T**\n\n| a | b |\n| :--- | :--- |\n");
}

}  // namespace table_test
}  // namespace cautious::report
