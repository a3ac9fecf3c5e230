// A report as one HTML page that needs nothing beside it: figures are images inside it, and where JavaScript runs its line
// charts can be zoomed and its paths followed with a slider. Texts are plain and are escaped here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/chart.h"
#include "report/plane_figure.h"
#include "report/surface_figure.h"
#include "report/table.h"

namespace cautious::report {

struct Figure {
  std::string name;  // of its file: letters, digits, '_'
  std::variant<LineChart, IntervalChart, PlaneFigure, SurfaceFigure> chart;
  std::string caption;  // below it; may be empty
};

std::string to_svg(const Figure& figure);

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  // A heading that the list of contents names.
  void section(std::string_view heading);
  // `kind`: a class of the style sheet, "verdict", "status", "note", "caution"; empty for plain text.
  void paragraph(std::string_view text, std::string_view kind = {});
  void figure(const Figure& figure);
  // What was claimed, by whom (may be empty), and what decides it. `outcome`: "holds", "fails", "undecided" or "noted".
  void claim(std::string_view text, std::string_view source, std::string_view outcome, std::string_view evidence);
  void table(const Table& table);
  void tables_side_by_side(const std::vector<Table>& tables);
  void commands(const std::vector<std::string>& lines);
  // What stands between the two is folded away until the reader opens it.
  void open_details(std::string_view summary);
  void close_details();

  // The document. The list of contents stands before the first section.
  std::string finish() const;

 private:
  std::string title_, front_, body_;
  std::vector<std::string> sections_;
};

// The data of a chart for the page's script, at most 600 points per series, safe inside <script>.
std::string chart_json(const LineChart& chart);

}  // namespace cautious::report
