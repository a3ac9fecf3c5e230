#include "study/run_list.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "report/style.h"
#include "study/plan.h"
#include "study/report_parts.h"
#include "study/results.h"

namespace cautious::study {
namespace {

constexpr std::size_t kMostDrawn = report::kSeriesStyles;

// The key that says where the run's model starts: the preset, unless it has the weights of another model.
std::string_view start_key(const ListedRun& run) {
  const auto from = std::ranges::find(run.settings, "model.from", &std::pair<std::string, std::string>::first);
  return from == run.settings.end() || from->second == "\"\"" ? "model.preset" : "model.from";
}

// Models that start in different places are told apart by that, those that start in the same one by their keys.
void keep_differences(std::vector<ListedRun>& runs) {
  std::map<std::string, std::set<std::string>> values;
  std::vector<std::string> starts;
  for (const ListedRun& run : runs) {
    std::string& start = starts.emplace_back();
    for (const auto& [key, value] : run.settings) {
      if (key == start_key(run)) start = value;
    }
  }
  const auto is_start = [](const std::string& key) { return key == "model.preset" || key == "model.from"; };
  const auto values_of = [&](const std::string& key, std::size_t run) -> std::set<std::string>& {
    return values[is_start(key) ? "start" : key.starts_with("model.") ? key + " " + starts[run] : key];
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [key, value] : runs[i].settings) values_of(key, i).insert(is_start(key) ? starts[i] : value);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string start(start_key(runs[i]));
    std::erase_if(runs[i].settings, [&](const auto& setting) {
      const auto& [key, value] = setting;
      return value.empty() || values_of(key, i).size() == 1 || (is_start(key) && key != start);
    });
  }
}

std::string differences_text(const ListedRun& run) {
  std::string text;
  for (const auto& [key, value] : run.settings) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

const char* judged_by(const ListedRun& run) { return run.task == run::TaskKind::image ? "val_error" : "val_loss"; }

// Of a value as TOML writes it: numbers, texts and lists are the same in both, but for inf, nan and an undecided value.
nlohmann::ordered_json json_of(const std::string& toml) {
  nlohmann::ordered_json value = nlohmann::ordered_json::parse(toml, nullptr, false);
  return value.is_discarded() ? nlohmann::ordered_json(toml) : value;
}

std::string number_text(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

}  // namespace

std::string status_of_run(const std::filesystem::path& run, bool begun) {
  if (base::DirectoryLock::is_held(run)) return "running";
  const auto summary = run / "summary.json";
  const auto text = base::read_file_if_any(summary, base::kRecord);
  std::string outcome = text ? outcome_of(*text, summary) : begun ? "interrupted" : "not begun";
  const bool ended = outcome == "done" || outcome == "diverged";
  return !ended && std::filesystem::exists(run / "failure.txt") ? "failed" : outcome;
}

namespace {

// Folders that cannot be read, or are gone meanwhile, have no runs for this user.
void add_runs_of(const std::filesystem::directory_entry& entry, std::vector<std::filesystem::path>& found) {
  std::error_code error;
  if (!entry.is_directory(error)) return;
  const bool hidden = entry.path().filename().string().starts_with('.');
  if (std::filesystem::exists(entry.path() / "config.toml", error)) {
    found.push_back(entry.path());
  } else if (!hidden && !entry.is_symlink(error)) {
    for (const auto& below : base::entries_of(entry.path(), error)) add_runs_of(below, found);
  }
}

}  // namespace

std::vector<std::filesystem::path> run_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  const base::Entries entries = base::entries_of(folder, error);
  if (error) throw Error(Fault::usage, fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  for (const auto& entry : entries) add_runs_of(entry, found);
  return found;
}

double ListedRun::last(const std::string& column) const {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto found = std::ranges::find(row->values, column, &std::pair<std::string, double>::first);
    if (found != row->values.end()) return found->second;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<ListedRun> runs_below(const std::filesystem::path& folder) {
  std::vector<ListedRun> runs;
  const bool is_run = std::filesystem::exists(folder / "config.toml");
  for (const std::filesystem::path& path : is_run ? std::vector{folder} : run_folders(folder)) {
    const std::string name = is_run ? directory_name(folder) : path.lexically_relative(folder).string();
    ListedRun run{.name = name, .path = path, .status = "damaged"};
    try {
      run.rows = metrics_in(path);
      const run::RunConfig config = run::read_config({.files = {path / "config.toml"}, .preset = {}, .overrides = {}});
      run.task = config.task;
      run.steps = config.task == run::TaskKind::external ? 0 : steps_of(config);
      for (const run::ConfigKey& key : run::config_keys(config)) {
        if (changes_numbers(key.name)) run.settings.emplace_back(key.name, key.value);
      }
      run.status = status_of_run(path, !run.rows.empty());
    } catch (const Error& error) {
      run.trouble = error.what();
    }
    runs.push_back(std::move(run));
  }
  keep_differences(runs);
  return runs;
}

report::Table run_list_table(const std::vector<ListedRun>& runs) {
  report::Table table{.name = "runs",
                      .title = "Runs",
                      .head = {"run", "status", "step", "of", "loss", "validation", "differs in"},
                      .rows = {},
                      .note = "validation: the loss, or the top-1 error in percent of image classifiers."};
  for (const ListedRun& run : runs) {
    table.rows.push_back({run.name, run.status, std::to_string(run.step()), run.steps > 0 ? std::to_string(run.steps) : "-",
                          number_text(run.last("loss")), number_text(run.last(judged_by(run))),
                          run.trouble.empty() ? differences_text(run) : run.trouble});
  }
  return table;
}

std::string run_list_json(const std::vector<ListedRun>& runs) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ListedRun& run : runs) {
    nlohmann::ordered_json entry{{"run", run.name}, {"status", run.status}, {"step", run.step()}, {"steps", run.steps}};
    const auto add = [&](const char* key) {
      if (const double value = run.last(key); std::isfinite(value)) entry[key] = value;
    };
    add("loss");
    add(judged_by(run));
    if (!run.trouble.empty()) entry["trouble"] = run.trouble;
    for (const auto& [key, value] : run.settings) entry["differs"][key] = json_of(value);
    all.push_back(std::move(entry));
  }
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

RunListReport run_list_report(const std::filesystem::path& folder, const std::vector<ListedRun>& runs) {
  std::vector<const ListedRun*> drawn;
  for (const ListedRun& run : runs) {
    if (!run.rows.empty()) drawn.push_back(&run);
  }
  std::ranges::stable_sort(drawn, std::greater{}, [](const ListedRun* run) { return run->last("time"); });
  const std::size_t begun = drawn.size();
  drawn.resize(std::min(begun, kMostDrawn));
  std::ranges::sort(drawn, {}, [](const ListedRun* run) { return run->name; });
  const std::string caption =
      begun > kMostDrawn ? fmt::format("The {} of {} runs whose metrics changed last.", kMostDrawn, begun) : "";

  RunListReport report{.page = {}, .figures = {}, .table = run_list_table(runs)};
  std::set<std::string> names;
  for (const ListedRun* first : drawn) {
    for (const CurveFigure& what : loss_figures(first->task)) {
      if (!names.insert(what.name).second) continue;
      std::vector<report::ChartSeries> all;
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        if (drawn[i]->task != first->task) continue;
        all.push_back(mean_series({curve_of(drawn[i]->rows, what.column)}));
        all.back().name = drawn[i]->name;
        all.back().colour = i;
      }
      add_curve_figure(report.figures, what, std::move(all), caption);
    }
  }

  std::map<std::string, int> counts;
  for (const ListedRun& run : runs) ++counts[run.status];
  std::string status = fmt::format("{} run{}", runs.size(), runs.size() == 1 ? "" : "s");
  for (const auto& [what, count] : counts)
    status += fmt::format("{} {} {}", &what == &counts.begin()->first ? ":" : ",", count, what);
  report::HtmlPage page("Runs in " + directory_name(folder));
  page.paragraph(status + ".", "status");
  page.section("Losses");
  for (const report::Figure& figure : report.figures) page.figure(figure);
  page.section("Every run");
  page.table(report.table);
  report.page = page.finish();
  return report;
}

}  // namespace cautious::study
