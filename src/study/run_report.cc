// The report of a single run, in the form of a study's; whether a directory is one or the other; the files of both.
#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/matrix_chart.h"
#include "study/report.h"
#include "study/report_parts.h"
#include "study/run_list.h"

namespace cautious::study {
namespace {

struct RunReport {
  std::string status, result;                                   // a line each; the result is empty before there is one
  std::vector<report::Figure> losses, pace, confusion, inside;  // no confusion of too many classes
  report::Table summary, samples;
  bool images = false;    // it is one of an image classifier
  bool external = false;  // a program of the user's made it: it has nothing but its summary
  std::optional<Evaluation> evaluation = {};
};

// Every entry of the summary, in its order.
report::Table summary_table(const std::filesystem::path& run) {
  report::Table table{.name = "summary", .title = "Summary", .head = {"what", "value"}, .rows = {}, .note = ""};
  const auto file = run / "summary.json";
  const auto text = base::read_file_if_any(file, base::kRecord);
  if (!text) return table;
  outcome_of(*text, file);  // refuses what no run has written
  const auto summary = base::parse_json<nlohmann::ordered_json>(*text);
  for (const auto& [key, value] : summary.items()) {
    table.rows.push_back({key, value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : value.dump()});
  }
  return table;
}

// What the model wrote after its last evaluations, the newest first.
report::Table samples_table(const std::vector<run::MetricsRow>& rows) {
  constexpr std::size_t kShown = 10;
  report::Table table{.name = "samples", .title = "Samples", .head = {"step", "text"}, .rows = {}, .note = ""};
  for (auto row = rows.rbegin(); row != rows.rend() && table.rows.size() < kShown; ++row) {
    if (!row->sample.empty()) table.rows.push_back({std::to_string(row->step), row->sample});
  }
  return table;
}

void add_figure(std::vector<report::Figure>& figures, const CurveFigure& what, const std::vector<run::MetricsRow>& rows) {
  Curve curve = curve_of(rows, what.column);
  if (what.sum) curve = summed(curve);
  report::ChartSeries series = mean_series({curve});
  series.name = "run";
  add_curve_figure(figures, what, {std::move(series)}, "");
}

// A column of the metrics and its name in a chart.
using NamedColumn = std::pair<const char*, const char*>;
constexpr std::array<NamedColumn, 2> kLossColumns{{{"loss", "training"}, {"val_loss", "validation"}}},
    kErrorColumns{{{"val_error", "top-1"}, {"val_top5_error", "top-5"}}};

void add_columns_figure(std::vector<report::Figure>& figures, const CurveFigure& what, std::span<const NamedColumn> columns,
                        const std::vector<run::MetricsRow>& rows) {
  std::vector<report::ChartSeries> all;
  for (const auto& [column, name] : columns) {
    all.push_back(mean_series({curve_of(rows, column)}));
    all.back().name = name;
    all.back().colour = all.size() - 1;
  }
  add_curve_figure(figures, what, std::move(all), "");
}

// The last that was measured, in words; those that never were are left out.
std::string last_of(const std::vector<run::MetricsRow>& rows, std::span<const NamedColumn> columns) {
  std::string text;
  for (const auto& [column, words] : columns) {
    const std::vector<double> values = curve_of(rows, column).values;
    if (!values.empty()) text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(words), values.back());
  }
  return text.empty() ? "" : text + ".";
}

std::string result_of(const std::vector<run::MetricsRow>& rows, bool images) {
  constexpr std::array<NamedColumn, 2> kText{
      {{"val_loss", "Validation loss {:.4f} nats per token"}, {"val_bpb", "{:.4f} bits per byte"}}},
      kImages{{{"val_error", "Top-1 error {:.2f}%"}, {"val_loss", "validation loss {:.4f} nats per image"}}};
  constexpr std::array<NamedColumn, 1> kTraining{{{"loss", "Training loss {:.4f}"}}};
  const std::string measured = last_of(rows, images ? kImages : kText);
  return measured.empty() ? last_of(rows, kTraining) : measured;
}

// "Done at step 2000; 28.6 thousand tokens per second."
std::string status_of(const std::filesystem::path& run, const std::vector<run::MetricsRow>& rows, std::string_view unit) {
  if (rows.empty()) return "There are no metrics yet.";
  std::string text = fmt::format("{} at step {}", with_capital(status_of_run(run, true)), rows.back().step);
  std::vector<double> speeds = curve_of(rows, fmt::format("{}_per_s", unit)).values;
  if (speeds.empty()) return text + ".";
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::ranges::nth_element(speeds, middle);
  return fmt::format("{}; {} {} per second (median).", text, count_words(*middle), unit);
}

// Learning rate and speed, of what has been logged.
void add_pace(std::vector<report::Figure>& figures, const std::vector<run::MetricsRow>& rows, const std::string& unit) {
  const CurveFigure rate{
      .name = "learning_rate", .title = "Learning rate", .y_label = "learning rate of the step", .column = "lr"},
      speed{.name = "speed", .title = "Speed", .y_label = unit + " per second", .column = unit + "_per_s"};
  for (const CurveFigure& what : {rate, speed}) {
    if (!curve_of(rows, what.column).steps.empty()) add_figure(figures, what, rows);
  }
}

// What an external run reported.
std::string reported_in(const report::Table& summary) {
  const auto found = std::ranges::find(summary.rows, "objective", [](const auto& row) { return row.front(); });
  return found == summary.rows.end() ? "" : fmt::format("Objective {}.", found->back());
}

CurveFigure end_of(CurveFigure what) {
  what.name += "_end";
  what.title += ", the last 40% of the steps";
  what.from = 0.6;
  return what;
}

RunReport make_run_report(const std::filesystem::path& run) {
  const std::vector<run::MetricsRow> rows = metrics_in(run);
  RunReport report{.status = "Made by a program of which this page knows what it reported.",
                   .result = {},
                   .losses = {},
                   .pace = {},
                   .confusion = {},
                   .inside = {},
                   .summary = summary_table(run),
                   .samples = samples_table(rows)};
  report.external = std::ranges::count(report.summary.rows, std::vector<std::string>{"task", "external"}) > 0;
  if (report.external) {
    report.result = reported_in(report.summary);
    return report;
  }
  report.images = !curve_of(rows, "images").steps.empty();
  const std::string unit(run::unit_of(report.images ? run::TaskKind::image : run::TaskKind::text));
  report.status = status_of(run, rows, unit);
  report.result = result_of(rows, report.images);
  add_pace(report.pace, rows, unit);
  report.evaluation = evaluation_in(run);
  if (report.evaluation && report.evaluation->classes.size() <= report::MatrixChart::kMostClasses) {
    report.confusion.push_back(confusion_figure(*report.evaluation));
  }
  if (report.images) {
    const CurveFigure error{.name = "error", .title = "Validation error", .y_label = "% of the images"};
    add_columns_figure(report.losses, error, kErrorColumns, rows);
    add_columns_figure(report.losses, end_of(error), std::span(kErrorColumns).first(1), rows);
  }
  const CurveFigure loss{.name = "loss", .title = "Loss", .y_label = report.images ? "nats per image" : "nats per token"};
  add_columns_figure(report.losses, loss, kLossColumns, rows);
  add_columns_figure(report.losses, end_of(loss), kLossColumns, rows);
  for (const CurveFigure& what : inside_figures()) add_figure(report.inside, what, rows);
  return report;
}

void add_evaluation(report::HtmlPage& page, const RunReport& report) {
  const Evaluation& evaluation = *report.evaluation;
  page.section("Classes");
  for (const report::Figure& figure : report.confusion) page.figure(figure);
  if (report.confusion.empty()) {
    page.paragraph(
        fmt::format("Which of {} classes is taken for which is in tables/confusion.csv.", evaluation.classes.size()));
  }
  page.open_details(fmt::format("Table of {} classes", evaluation.classes.size()));
  page.table(classes_table(evaluation));
  page.close_details();
  if (evaluation.mistakes.empty()) return;
  page.section("Worst mistakes");
  page.paragraph(
      "The validation images whose own class was given the least probability; in brackets, that of the class which they were "
      "taken for. Some may be labelled wrong.");
  page.pictures(mistake_pictures(evaluation));
}

std::string page_of(const std::filesystem::path& run, const RunReport& report) {
  report::HtmlPage page("Run " + directory_name(run));
  page.paragraph(report.status, "status");
  if (!report.result.empty()) page.paragraph(report.result, "verdict");
  if (report.external) {
    page.section("Summary");
    page.table(report.summary);
    return page.finish();
  }
  page.section(measure_of(report.images ? run::TaskKind::image : run::TaskKind::text).section);
  for (const report::Figure& figure : report.losses) page.figure(figure);
  if (!report.samples.rows.empty()) {
    page.section("What the model writes");
    page.table(report.samples);
  }
  if (!report.pace.empty()) page.section("Learning rate and speed");
  for (const report::Figure& figure : report.pace) page.figure(figure);
  if (report.evaluation) add_evaluation(page, report);
  page.section("Inside the optimizer");
  for (const report::Figure& figure : report.inside) page.figure(figure);
  if (!report.summary.rows.empty()) {
    page.section("Summary");
    page.table(report.summary);
  }
  page.section("Run it again");
  page.paragraph("In the directory of this run:");
  page.commands({"cautious train --config config.toml --out again"});
  return page.finish();
}

std::filesystem::path folder_in(const std::filesystem::path& directory, const char* name) {
  std::filesystem::path folder = directory / name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Fault::failure, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  return folder;
}

std::filesystem::path write_run_report(const std::filesystem::path& run) {
  const RunReport report = make_run_report(run);
  std::vector<report::Figure> figures = report.losses;
  for (const auto* more : {&report.pace, &report.confusion, &report.inside})
    figures.insert(figures.end(), more->begin(), more->end());
  std::vector<report::Table> tables{report.summary};
  if (report.evaluation) {
    tables.push_back(classes_table(*report.evaluation));
    base::write_atomically(folder_in(run, "tables") / "confusion.csv", to_csv(confusion_table(*report.evaluation)));
  }
  return write_files(run, page_of(run, report), figures, tables);
}

constexpr std::array kRead{"plan.toml",       "looks.jsonl",  "config.toml", "metrics.jsonl",
                           "evaluation.json", "summary.json", "failure.txt"};

enum class DirectoryKind { study, run, runs };

DirectoryKind kind_of(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw Error(Fault::usage, fmt::format("{} is not a directory; give that of a study, of a run, or one with runs in it",
                                          base::in_quotes(directory.string())));
  }
  if (std::filesystem::exists(directory / "plan.toml", error)) return DirectoryKind::study;
  if (std::filesystem::exists(directory / "config.toml", error)) return DirectoryKind::run;
  if (!run_folders(directory).empty()) return DirectoryKind::runs;
  throw Error(Fault::usage, fmt::format("{} is neither a study (it has no plan.toml) nor a run (no config.toml), and there are "
                                        "no runs in it",
                                        base::in_quotes(directory.string())));
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

}  // namespace

std::string count_words(double count) {
  if (count >= 1e9) return fmt::format("{:.3g} billion", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.3g} million", count / 1e6);
  return count >= 1e4 ? fmt::format("{:.3g} thousand", count / 1e3) : fmt::format("{:.0f}", count);
}

std::string directory_name(const std::filesystem::path& directory) {
  const std::filesystem::path whole = std::filesystem::absolute(directory).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

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
  switch (kind_of(directory)) {
    case DirectoryKind::run:
      return write_run_report(directory);
    case DirectoryKind::runs: {
      const RunListReport report = run_list_report(directory, runs_below(directory));
      return write_files(directory, report.page, report.figures, {report.table});
    }
    case DirectoryKind::study:
      break;
  }
  const Results results = read_results(directory);
  return write_report(results, verdict_of(results));
}

std::string html_of(const std::filesystem::path& directory) {
  switch (kind_of(directory)) {
    case DirectoryKind::run:
      return page_of(directory, make_run_report(directory));
    case DirectoryKind::runs:
      return run_list_report(directory, runs_below(directory)).page;
    case DirectoryKind::study:
      break;
  }
  const Results results = read_results(directory);
  return report_html(results, verdict_of(results));
}

std::string stamp_of(const std::filesystem::path& directory) {
  std::string stamp;
  append_stamp(stamp, directory);
  if (std::error_code error; !std::filesystem::is_directory(directory, error)) return stamp;
  for (const std::filesystem::path& run : run_folders(directory)) append_stamp(stamp, run);
  return stamp;
}

}  // namespace cautious::study
