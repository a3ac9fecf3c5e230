// Several studies on one page: every prespecified difference that their reports have, and means of those that several have.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cautious::study {

// Writes report.html, figures/ and tables/ into `out`, from the tables that `cautious report` left in each study; returns the
// path of report.html. Studies that are judged by different measures, or without these tables, are an Error(Fault::usage). With
// a column of the tables of runs, as "accuracy", the arms are compared in that.
std::filesystem::path write_overview(const std::vector<std::filesystem::path>& studies, const std::filesystem::path& out,
                                     const std::string& column = {});

}  // namespace cautious::study
