#include "study/reported.h"

#include <array>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "study/report.h"
#include "study/run_report.h"

namespace cautious::study {
namespace {

constexpr std::array kRead{"plan.toml", "config.toml", "metrics.jsonl", "summary.json", "failure.txt"};

// Otherwise it is a run.
bool is_study(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw Error(Fault::usage,
                fmt::format("{} is no directory; give that of a study or of a run", base::in_quotes(directory.string())));
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

}  // namespace

std::filesystem::path write_report_of(const std::filesystem::path& directory) {
  return is_study(directory) ? write_report(read_results(directory)) : write_run_report(directory);
}

std::string html_of(const std::filesystem::path& directory) {
  if (!is_study(directory)) return run_report_html(directory);
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
