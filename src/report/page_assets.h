// Text files that the build puts into the program: our scripts and style sheet, and uPlot's.
#pragma once

#include <string_view>

namespace cautious::report {

// uPlot's are empty where the build could not fetch it; figures are then static.
extern const std::string_view kReportScript, kSliderScript, kReportStyle, kUplotScript, kUplotStyle, kUplotLicence;

}  // namespace cautious::report
