#include "study/run_report.h"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/page.h"
#include "study/curves.h"
#include "study/report_curves.h"
#include "study/report_files.h"

namespace cautious::study {
namespace {

struct RunReport {
  std::vector<report::Figure> losses, inside;
  std::vector<report::Table> tables;
  std::size_t rows = 0;
};

// Every entry of the summary, in its order.
report::Table summary_table(const std::filesystem::path& run) {
  report::Table table{.name = "summary", .title = "Summary", .head = {"what", "value"}, .rows = {}, .note = ""};
  std::ifstream in(run / "summary.json");
  const auto summary = nlohmann::ordered_json::parse(in, nullptr, false);
  if (!summary.is_object()) return table;
  for (const auto& [key, value] : summary.items()) {
    table.rows.push_back({key, value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : value.dump()});
  }
  return table;
}

report::Figure figure_of(const CurveFigure& what, const std::vector<run::MetricsRow>& rows) {
  Curve curve = curve_of(rows, what.column);
  if (what.sum) curve = summed(curve);
  report::ChartSeries series = mean_series({curve});
  series.name = "run";
  return curve_figure(what, {std::move(series)}, "");
}

// Training and validation in one chart.
report::Figure losses_of(const CurveFigure& what, const std::vector<run::MetricsRow>& rows) {
  report::ChartSeries training = mean_series({curve_of(rows, "loss")}), validation = mean_series({curve_of(rows, "val_loss")});
  training.name = "training";
  validation.name = "validation";
  validation.colour = 1;
  return curve_figure(what, {std::move(training), std::move(validation)}, "");
}

RunReport make_report(const std::filesystem::path& run) {
  std::error_code error;
  const auto file = run / "metrics.jsonl";
  const std::vector<run::MetricsRow> rows = std::filesystem::exists(file, error) ? run::read_metrics(file) : std::vector<run::MetricsRow>{};
  RunReport report{.losses = {}, .inside = {}, .tables = {summary_table(run)}, .rows = rows.size()};
  const CurveFigure loss{.name = "loss", .title = "Loss", .y_label = "nats per token"};
  const CurveFigure end{
      .name = "loss_end", .title = "Loss, the last 40% of the steps", .y_label = "nats per token", .from = 0.6};
  report.losses = {losses_of(loss, rows), losses_of(end, rows)};
  for (const CurveFigure& what : inside_figures()) report.inside.push_back(figure_of(what, rows));
  return report;
}

std::string page_of(const std::filesystem::path& run, const RunReport& report) {
  const std::filesystem::path whole = std::filesystem::absolute(run).lexically_normal();
  const std::string name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  report::HtmlPage page("Run " + name);
  const bool ended = !report.tables.front().rows.empty();
  page.paragraph(report.rows == 0 ? "There are no metrics yet."
                 : ended          ? "One run."
                                  : "One run, which has not ended.",
                 "status");
  page.section("Loss");
  for (const report::Figure& figure : report.losses) page.figure(figure);
  page.section("Inside the optimizer");
  for (const report::Figure& figure : report.inside) page.figure(figure);
  if (ended) {
    page.section("Summary");
    page.table(report.tables.front());
  }
  page.section("Run it again");
  page.paragraph("In the directory of this run:");
  page.commands({"cautious train --config config.toml --out again"});
  return page.finish();
}

}  // namespace

std::string run_report_html(const std::filesystem::path& run) { return page_of(run, make_report(run)); }

std::filesystem::path write_run_report(const std::filesystem::path& run) {
  const RunReport report = make_report(run);
  std::vector<report::Figure> figures = report.losses;
  figures.insert(figures.end(), report.inside.begin(), report.inside.end());
  return write_files(run, page_of(run, report), figures, report.tables);
}

}  // namespace cautious::study
