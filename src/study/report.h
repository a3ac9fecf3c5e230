// The report of a study or of a run: report.html, and every figure as .svg and every table as .csv, .md and .tex beside it. A
// function of the directory alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

// The one page of a study, self-contained: no network, light and dark, works from file://, readable without JavaScript. The
// verdict is that of the results.
std::string report_html(const Results& results, const Verdict& verdict);

// Writes report.html, figures/ and tables/ into the study's directory; each file appears complete or not at all. Returns the
// path of report.html.
std::filesystem::path write_report(const Results& results, const Verdict& verdict);

// The figures that a plan may put first, by their names: not all that a report has, since some are there with enough data only.
std::vector<std::string> lead_figures(const Plan& plan, run::TaskKind task);

// The end of a study: its report is written, and the verdict noted as a look. Of several processes that come to it at the same
// time, one after another.
struct Conclusion {
  std::string text;  // a table of the losses, the verdict, and where the report is
  Verdict verdict;
  std::filesystem::path page;
};
Conclusion conclude(const Results& results);

// The first two of the directory of a study, of a run, or of one with runs below it; any other is an Error(Fault::usage). A run
// without metrics yet gives a page that says so.
std::string html_of(const std::filesystem::path& directory);
std::filesystem::path write_report_of(const std::filesystem::path& directory);

// Changes when a file changes that the page is made of.
std::string stamp_of(const std::filesystem::path& directory);

}  // namespace cautious::study
