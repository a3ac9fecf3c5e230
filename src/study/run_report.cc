// The report of a single run, in the form of a study's; whether a directory is one or the other; the files of both.
#include <array>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "study/report.h"
#include "study/report_parts.h"

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
report::Figure losses_figure(const CurveFigure& what, const std::vector<run::MetricsRow>& rows) {
  report::ChartSeries training = mean_series({curve_of(rows, "loss")}), validation = mean_series({curve_of(rows, "val_loss")});
  training.name = "training";
  validation.name = "validation";
  validation.colour = 1;
  return curve_figure(what, {std::move(training), std::move(validation)}, "");
}

RunReport make_run_report(const std::filesystem::path& run) {
  const std::vector<run::MetricsRow> rows = metrics_in(run);
  RunReport report{.losses = {}, .inside = {}, .tables = {summary_table(run)}, .rows = rows.size()};
  const CurveFigure loss{.name = "loss", .title = "Loss", .y_label = "nats per token"};
  const CurveFigure end{
      .name = "loss_end", .title = "Loss, the last 40% of the steps", .y_label = "nats per token", .from = 0.6};
  report.losses = {losses_figure(loss, rows), losses_figure(end, rows)};
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

std::filesystem::path write_run_report(const std::filesystem::path& run) {
  const RunReport report = make_run_report(run);
  std::vector<report::Figure> figures = report.losses;
  figures.insert(figures.end(), report.inside.begin(), report.inside.end());
  return write_files(run, page_of(run, report), figures, report.tables);
}

constexpr std::array kRead{"plan.toml", "looks.jsonl", "config.toml", "metrics.jsonl", "summary.json", "failure.txt"};

// Otherwise it is a run.
bool is_study(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw Error(Fault::usage,
                fmt::format("{} is not a directory; give that of a study or of a run", base::in_quotes(directory.string())));
  }
  if (std::filesystem::exists(directory / "plan.toml", error)) return true;
  if (!std::filesystem::exists(directory / "config.toml", error)) {
    throw Error(Fault::usage, fmt::format("{} is neither a study (it has no plan.toml) nor a run (no config.toml)",
                                          base::in_quotes(directory.string())));
  }
  return false;
}

// Size and time of the files in one directory.
void append_stamp(std::string& stamp, const std::filesystem::path& directory) {
  for (const char* name : kRead) {
    std::error_code error;
    const auto size = std::filesystem::file_size(directory / name, error);
    if (error) continue;
    const auto time = std::filesystem::last_write_time(directory / name, error);
    stamp += fmt::format("{}/{} {} {}\n", directory.filename().string(), name, size, time.time_since_epoch().count());
  }
}

std::filesystem::path folder_in(const std::filesystem::path& directory, const char* name) {
  std::filesystem::path folder = directory / name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Fault::failure, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  return folder;
}

}  // namespace

std::filesystem::path write_files(const std::filesystem::path& directory, const std::string& page,
                                  const std::vector<report::Figure>& figures, const std::vector<report::Table>& tables) {
  const std::filesystem::path drawn = folder_in(directory, "figures"), written = folder_in(directory, "tables");
  for (const report::Figure& figure : figures) base::write_atomically(drawn / (figure.name + ".svg"), figure.svg);
  for (const report::Table& table : tables) {
    base::write_atomically(written / (table.name + ".csv"), to_csv(table));
    base::write_atomically(written / (table.name + ".md"), to_markdown(table));
    base::write_atomically(written / (table.name + ".tex"), to_latex(table));
  }
  base::write_atomically(directory / "report.html", page);
  return directory / "report.html";
}

std::filesystem::path write_report_of(const std::filesystem::path& directory) {
  if (!is_study(directory)) return write_run_report(directory);
  const Results results = read_results(directory);
  return write_report(results, verdict_of(results));
}

std::string html_of(const std::filesystem::path& directory) {
  if (!is_study(directory)) return page_of(directory, make_run_report(directory));
  const Results results = read_results(directory);
  return report_html(results, verdict_of(results));
}

std::string stamp_of(const std::filesystem::path& directory) {
  std::string stamp;
  append_stamp(stamp, directory);
  std::error_code error;
  std::set<std::filesystem::path> runs;  // in an order that does not change
  for (std::filesystem::directory_iterator entry(directory / "runs", error), end; !error && entry != end;
       entry.increment(error)) {
    runs.insert(entry->path());
  }
  for (const std::filesystem::path& run : runs) append_stamp(stamp, run);
  return stamp;
}

}  // namespace cautious::study
