// The report of a single run: its curves and its summary, in the form of a study's report.
#pragma once

#include <filesystem>
#include <string>

namespace cautious::study {

// Of a run directory; one without metrics yet gives a page that says so.
std::string run_report_html(const std::filesystem::path& run);

// Writes report.html, figures/ and tables/ into the run directory and returns the path of report.html.
std::filesystem::path write_run_report(const std::filesystem::path& run);

}  // namespace cautious::study
