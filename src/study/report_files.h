// The files of a report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/table.h"

namespace cautious::study {

// figures/<name>.svg, tables/<name>.csv, .md and .tex, then report.html; each appears complete or not at all. Returns the path
// of report.html.
std::filesystem::path write_files(const std::filesystem::path& directory, const std::string& page,
                                  const std::vector<report::Figure>& figures, const std::vector<report::Table>& tables);

}  // namespace cautious::study
