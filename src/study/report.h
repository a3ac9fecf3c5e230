// The report of a study: report.html, and every figure as .svg and every table as .csv, .md and .tex beside it. A function of
// the study's directory alone.
#pragma once

#include <filesystem>
#include <string>

#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

// The one page, self-contained: no network, light and dark, works from file://, readable without JavaScript.
std::string report_html(const Results& results, const Verdict& verdict);

// Writes report.html, figures/ and tables/ into the study's directory; each file appears complete or not at all. Returns the
// path of report.html.
std::filesystem::path write_report(const Results& results);

}  // namespace cautious::study
