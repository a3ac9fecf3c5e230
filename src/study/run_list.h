// The runs below a folder, whether they belong to a study or not: where each of them is, and in which keys they differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "report/page.h"
#include "report/table.h"
#include "run/config.h"
#include "run/metrics.h"

namespace cautious::study {

struct ListedRun {
  std::string name;  // its path below the folder
  std::filesystem::path path;
  std::string status;        // "running", "done", "stopped", "diverged", "failed", "interrupted", "not begun", "damaged"
  std::string trouble = {};  // why it is called damaged
  run::TaskKind task = run::TaskKind::text;
  std::int64_t steps = 0;  // of its whole length
  std::vector<run::MetricsRow> rows = {};
  std::vector<std::pair<std::string, std::string>> settings = {};  // keys in which the runs differ, with this one's values

  std::int64_t step() const { return rows.empty() ? 0 : rows.back().step; }
  double last(const std::string& column) const;  // NaN: never measured
};

// Of the run in that directory, as of a ListedRun; `begun`: it has metrics.
std::string status_of_run(const std::filesystem::path& run, bool begun);

// The directories below it that are runs, sorted; what is inside a run is not looked through. A folder that cannot be read is
// an Error.
std::vector<std::filesystem::path> run_folders(const std::filesystem::path& folder);
// Of a folder that is a run itself, that one.
std::vector<ListedRun> runs_below(const std::filesystem::path& folder);

report::Table run_list_table(const std::vector<ListedRun>& runs);
std::string run_list_json(const std::vector<ListedRun>& runs);

// One page of them all; the charts show those that changed last.
struct RunListReport {
  std::string page;
  std::vector<report::Figure> figures;
  report::Table table;
};
RunListReport run_list_report(const std::filesystem::path& folder, const std::vector<ListedRun>& runs);

}  // namespace cautious::study
