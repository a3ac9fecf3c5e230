// A directory that can be reported: a study's or a run's.
#pragma once

#include <filesystem>
#include <string>

namespace cautious::study {

// Writes the report into the directory and returns the path of report.html. A directory that is neither is an
// Error(Fault::usage).
std::filesystem::path write_report_of(const std::filesystem::path& directory);

// The page alone; nothing is written.
std::string html_of(const std::filesystem::path& directory);

// Changes when a file changes that the page is made of.
std::string stamp_of(const std::filesystem::path& directory);

}  // namespace cautious::study
