// The page of a study, and the files beside it.
#include "study/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "report/page.h"
#include "study/claims.h"
#include "study/progress.h"
#include "study/report_parts.h"

namespace cautious::study {
namespace {

// Everything that a report shows, once for the page and for the files beside it.
struct Report {
  report::Figure contrasts, exploratory, arms;
  std::vector<report::Figure> amounts, sweeps, losses, inside;  // external runs have no curves, and may not know their amounts
  report::Table contrast_table, exploratory_table, tests, equal_amounts, tuning, arm_table, chosen, benchmarks, runs, settings,
      paper, provenance;
};

bool is_external(const Results& results) { return measure_of(results.runs).task == run::TaskKind::external; }

bool knows_amounts(const Results& results) {
  return !is_external(results) || std::ranges::any_of(results.runs, [](const FinishedRun& run) {
    return run.status == RunStatus::done && std::isfinite(run.decay_budget);
  });
}

Report make_report(const Results& results, const Verdict& verdict) {
  StudyMetrics metrics(results);
  const std::vector<Overrides> chosen = best_points(results);
  Report report{.contrasts = contrasts_figure(verdict, true),
                .exploratory = contrasts_figure(verdict, false),
                .arms = arms_figure(results, chosen),
                .amounts = {},
                .sweeps = sweep_figures(results),
                .losses = {},
                .inside = {},
                .contrast_table = contrasts_table(verdict, true),
                .exploratory_table = contrasts_table(verdict, false),
                .tests = tests_table(verdict),
                .equal_amounts = amounts_table(verdict),
                .tuning = tuning_table(results),
                .arm_table = arms_table(results),
                .chosen = chosen_table(results, chosen),
                .benchmarks = benchmarks_table(results, chosen),
                .runs = runs_table(results),
                .settings = differences_table(results, chosen),
                .paper = paper_table(results.plan),
                .provenance = provenance_table(results)};
  if (knows_amounts(results)) report.amounts.push_back(amounts_figure(results));
  if (is_external(results)) return report;
  for (const CurveFigure& what : loss_figures(measure_of(results.runs).task))
    add_arms_curve_figure(report.losses, what, results, chosen, metrics);
  for (const CurveFigure& what : inside_figures()) add_arms_curve_figure(report.inside, what, results, chosen, metrics);
  return report;
}

// All but those of differences.
std::vector<const report::Figure*> figures_of(const Report& report) {
  std::vector<const report::Figure*> all{&report.arms};
  for (const auto* more : {&report.amounts, &report.sweeps, &report.losses, &report.inside}) {
    for (const report::Figure& figure : *more) all.push_back(&figure);
  }
  return all;
}

std::string status_line(const Results& results) {
  std::map<RunStatus, std::size_t> counts;
  std::set<std::string> folders;  // runs that compute the same are one
  for (const FinishedRun& run : results.runs) {
    if (run.status != RunStatus::left_out && folders.insert(run.run.folder).second) ++counts[run.status];
  }
  std::string text = fmt::format("{} of {} done", counts[RunStatus::done], base::counted(folders.size(), "run"));
  for (const auto& [status, count] : counts) {
    if (status != RunStatus::done && count > 0) text += fmt::format(", {} {}", count, word_of(status));
  }
  text +=
      fmt::format("; {}, {}", base::counted(results.plan.arms.size(), "arm"), base::counted(results.plan.seeds.size(), "seed"));
  if (!results.plan.tune_seeds.empty()) text += " and " + base::counted(results.plan.tune_seeds.size(), "tuning seed");
  const bool ended = counts[RunStatus::waiting] + counts[RunStatus::running] == 0;
  return ended ? text + "." : text + ". The study has not ended: everything below is provisional.";
}

std::string size_words(const Results& results) {
  double parameters = 0, seen = 0;
  for (const FinishedRun& run : results.runs) {
    parameters = std::max(parameters, run.parameters);
    seen = std::max(seen, run.seen);
  }
  if (parameters <= 0) return "These runs are small.";
  return fmt::format("The largest of these runs trains {} parameters on {} {}.", count_words(parameters), count_words(seen),
                     run::unit_of(measure_of(results.runs).task));
}

std::string caution(const Results& results) {
  if (is_external(results)) {
    return fmt::format(
        "Scale. The runs were made by a program of which this page knows the optimizer, the seed and the {} that it reported. "
        "That runs of a seed begin alike and see the same data, so that they can be paired, is up to that program. What is "
        "found here may not hold for larger models, longer training or other data.",
        measure_of(results.runs).name);
  }
  return "Scale. " + size_words(results) +
         " Matched runs of that size can show how the rules differ here, from equal initial weights and on equal data, and "
         "whether a difference stands out from the chance of the seed. They cannot show that it holds, grows or vanishes for "
         "larger models, longer training or other data.";
}

void add_head(report::HtmlPage& page, const Results& results, const Verdict& verdict, const Report& report) {
  page.paragraph(status_line(results), "status");
  for (const report::Figure* figure : figures_of(report)) {
    if (figure->name == results.plan.figure) page.figure(*figure);
  }
  for (const std::string& answer : verdict.answers) page.paragraph(answer, "verdict");
  page.paragraph(fmt::format("{}", fmt::join(verdict.notes, " ")), "note");
  if (!report.contrast_table.rows.empty()) page.figure(report.contrasts);
  if (!results.plan.about.empty()) page.paragraph(results.plan.about);
  page.paragraph(caution(results), "caution");
}

void add_contrasts(report::HtmlPage& page, const Verdict& verdict, const Report& report) {
  if (report.tests.rows.empty()) return;
  page.section("Differences");
  if (!report.contrast_table.rows.empty()) page.table(report.contrast_table);
  page.open_details("How they were tested, and what would be found");
  page.table(report.tests);
  page.close_details();
  if (verdict.exploratory == 0) return;
  const bool one = verdict.exploratory == 1;
  page.open_details(base::counted(verdict.exploratory, "exploratory comparison"));
  const auto count = static_cast<double>(verdict.exploratory);
  page.paragraph(one ? "It was not prespecified: without any true difference, it has p < 0.05 once in 20 such reports."
                     : fmt::format("They were not prespecified. Among {} comparisons without any true difference, {:.2g} on "
                                   "average have p < 0.05; a correction for their number (Bonferroni) asks for p < {:.2g}.",
                                   verdict.exploratory, 0.05 * count, 0.05 / count));
  page.figure(report.exploratory);
  page.table(report.exploratory_table);
  page.close_details();
}

// But for the one that the page began with.
void add_figures(report::HtmlPage& page, const Results& results, const std::vector<report::Figure>& figures) {
  for (const report::Figure& figure : figures) {
    if (figure.name != results.plan.figure) page.figure(figure);
  }
}

void add_paper(report::HtmlPage& page, const Report& report) {
  if (report.paper.rows.empty()) return;
  page.section("Beside the paper");
  page.paragraph("The paper's models and data are not these, so only directions can be compared, not numbers.");
  page.tables_side_by_side({report.paper, report.chosen});
}

void add_commands(report::HtmlPage& page, const Results& results) {
  if (is_external(results)) {
    page.section("Make this report again");
    page.paragraph("The study is continued by the program that began it, in the same directory. From the runs that are here:");
    page.commands({"cautious report ."});
    return;
  }
  page.section("Run it again");
  page.paragraph("In the directory of this study:");
  std::vector<std::string> lines{"# the whole study, in a new directory", "cautious study plan.toml --out again",
                                 "# this report, from the runs that are here", "cautious report ."};
  if (!results.runs.empty()) {
    const PlannedRun& first = results.runs.front().run;
    lines.insert(lines.end(),
                 {"# one run of it", fmt::format("cautious train --config 'runs/{}/config.toml' --out one", first.folder)});
  }
  page.commands(lines);
}

std::string page_of(const Results& results, const Verdict& verdict, const Report& report) {
  report::HtmlPage page(results.plan.title.empty() ? "Study" : results.plan.title);
  add_head(page, results, verdict, report);
  add_contrasts(page, verdict, report);
  page.section("Arms");
  add_figures(page, results, report.amounts);
  if (!report.equal_amounts.rows.empty()) page.table(report.equal_amounts);
  add_figures(page, results, report.sweeps);
  add_figures(page, results, {report.arms});
  if (!report.tuning.rows.empty()) {
    page.open_details("Table of the choice of points");
    page.table(report.tuning);
    page.close_details();
  }
  page.open_details("Table of arms and points");
  page.table(report.arm_table);
  page.close_details();
  if (!report.benchmarks.rows.empty()) page.table(report.benchmarks);
  add_paper(page, report);
  if (!report.losses.empty()) {
    page.section(measure_of(results.runs).section);
    add_figures(page, results, report.losses);
    page.section("Inside the optimizer");
    add_figures(page, results, report.inside);
  }
  page.section("Settings");
  page.table(report.settings);
  page.section("Runs");
  page.open_details(fmt::format("Table of {} runs", report.runs.rows.size()));
  page.table(report.runs);
  page.close_details();
  add_commands(page, results);
  if (!report.provenance.rows.empty()) {
    page.section("Provenance");
    page.table(report.provenance);
  }
  return page.finish();
}

}  // namespace

std::string report_html(const Results& results, const Verdict& verdict) {
  return page_of(results, verdict, make_report(results, verdict));
}

std::filesystem::path write_report(const Results& results, const Verdict& verdict) {
  const Report report = make_report(results, verdict);
  std::vector<report::Figure> figures{report.contrasts};
  if (verdict.exploratory > 0) figures.push_back(report.exploratory);
  for (const report::Figure* figure : figures_of(report)) figures.push_back(*figure);
  std::vector<report::Table> tables{report.contrast_table, report.arm_table, report.chosen,
                                    report.runs,           report.settings,  report.provenance};
  if (verdict.exploratory > 0) tables.push_back(report.exploratory_table);
  if (!report.tests.rows.empty()) tables.push_back(report.tests);
  if (!report.equal_amounts.rows.empty()) tables.push_back(report.equal_amounts);
  if (!report.tuning.rows.empty()) tables.push_back(report.tuning);
  if (!report.benchmarks.rows.empty()) tables.push_back(report.benchmarks);
  if (!report.paper.rows.empty()) tables.push_back(report.paper);
  return write_files(results.directory, page_of(results, verdict, report), figures, tables);
}

Conclusion conclude(const Results& results) {
  constexpr const char* kReport = "report";  // a run's folder has a longer name
  const std::filesystem::path folder = results.directory / "claims";
  std::filesystem::create_directories(folder);
  Claims claims(folder);
  claims.wait_for(kReport);
  Conclusion conclusion{.text = {}, .verdict = verdict_of(results), .page = {}};
  conclusion.page = write_report(results, conclusion.verdict);
  record_look(results);
  conclusion.text =
      fmt::format("{}\n{}\nreport: {}\n", losses_table(results), conclusion.verdict.sentence, conclusion.page.string());
  return conclusion;
}

}  // namespace cautious::study
