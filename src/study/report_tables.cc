// The tables of a study's report.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "run/config.h"
#include "study/progress.h"
#include "study/report_parts.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

report::Table table_of(const char* name, const char* title, std::vector<std::string> head, std::string note = "") {
  return {.name = name, .title = title, .head = std::move(head), .rows = {}, .note = std::move(note)};
}

// Tables show a few decimals; their CSV has every digit.
enum class Digits { few, all };

// "0.0123"; "-" for what is not known.
std::string number_text(double value, int decimals, Digits digits) {
  if (!std::isfinite(value)) return "-";
  return digits == Digits::all ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, decimals);
}

std::string point_cell(const Overrides& point) { return point.empty() ? "-" : point_text(point); }

std::string interval_text(const Interval& interval, int decimals, Digits digits) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "-";
  return fmt::format("[{}, {}]", number_text(interval.low, decimals, digits), number_text(interval.high, decimals, digits));
}

using TableRow = std::vector<std::string>;

void append(TableRow& row, const TableRow& more) { row.insert(row.end(), more.begin(), more.end()); }

// Of what the measure has beside it.
TableRow heads_beside(const Measure& measure) {
  TableRow heads;
  for (std::size_t i = 1; i < measure.columns.size(); ++i) heads.push_back(measure.columns[i].head);
  return heads;
}

// Of the runs of an arm at a point.
struct Group {
  std::vector<double> losses, budgets;
  std::array<std::vector<double>, 2> beside;
};

Group group_of(const Results& results, const std::string& arm, const Overrides& point) {
  Group group;
  for (const FinishedRun& run : results.runs) {
    if (run.run.tuning || run.run.arm != arm || run.run.point != point || run.status != RunStatus::done) continue;
    group.losses.push_back(run.loss);
    for (std::size_t i = 0; i < run.beside.size(); ++i) group.beside[i].push_back(run.beside[i]);
    if (std::isfinite(run.decay_budget)) group.budgets.push_back(run.decay_budget);
  }
  return group;
}

std::string mean_text(const std::vector<double>& values, int decimals, Digits digits) {
  return values.empty() ? "-" : number_text(spread_of(values).mean, decimals, digits);
}

TableRow group_row(const Results& results, const std::string& arm, const Overrides& point, Digits digits) {
  const Measure measure = measure_of(results.runs);
  const Group group = group_of(results, arm, point);
  const bool some = !group.losses.empty();
  const Spread spread = spread_of(group.losses);
  TableRow row{arm,
               point_cell(point),
               std::to_string(group.losses.size()),
               mean_text(group.losses, measure.decimals(), digits),
               some ? number_text(spread.sd, measure.decimals(), digits) : "-",
               some ? interval_text(spread.interval, measure.decimals(), digits) : "-"};
  for (std::size_t i = 1; i < measure.columns.size(); ++i) {
    row.push_back(mean_text(group.beside[i - 1], measure.columns[i].decimals, digits));
  }
  row.push_back(mean_text(group.budgets, 2, digits));
  return row;
}

std::string status_text(const FinishedRun& run) {
  const std::string name(word_of(run.status));
  return run.failure.empty() ? name : fmt::format("{}: {}", name, run.failure);
}

TableRow run_row(const FinishedRun& run, const Measure& measure, Digits digits) {
  const bool ended = run.status == RunStatus::done || run.status == RunStatus::diverged;
  TableRow row{run.run.arm, point_cell(run.run.point), std::to_string(run.run.seed), run.run.tuning ? "tuning" : "judged",
               number_text(run.loss, measure.decimals(), digits)};
  for (std::size_t i = 1; i < measure.columns.size(); ++i) {
    row.push_back(number_text(run.beside[i - 1], measure.columns[i].decimals, digits));
  }
  append(row, {ended ? number_text(run.decay_budget, 2, digits) : "-", ended ? number_text(run.seconds, 1, digits) : "-",
               status_text(run)});
  return row;
}

// Whether the plan has judged runs of the arm there that were not left out.
bool is_judged(const Results& results, const std::string& arm, const Overrides& point) {
  return std::ranges::any_of(results.runs, [&](const FinishedRun& run) {
    return !run.run.tuning && run.run.arm == arm && run.run.point == point && run.status != RunStatus::left_out;
  });
}

using Settings = std::map<std::string, std::string>;

// Of the arm's first run at its point; the seed is not a difference.
Settings settings_of(const Results& results, const Arm& arm, const Overrides& point, std::vector<std::string>& order) {
  const auto run = std::ranges::find_if(
      results.runs, [&](const FinishedRun& r) { return !r.run.tuning && r.run.arm == arm.name && r.run.point == point; });
  Settings settings;
  if (run == results.runs.end()) return settings;
  for (const run::ConfigKey& key : run::config_keys(run->run.config)) {
    if (key.name.starts_with("log.")) continue;
    settings[key.name] = key.value;
    if (std::ranges::find(order, key.name) == order.end()) order.push_back(key.name);
  }
  if (!arm.density_of.empty()) settings["optimizer.density"] = "that of " + arm.density_of;
  if (!arm.budget_of.empty()) settings["optimizer.weight_decay"] = "budget of " + arm.budget_of;
  if (settings["optimizer.decay"] == "\"none\"") settings["optimizer.weight_decay"] = "";
  return settings;
}

}  // namespace

report::Table arms_table(const Results& results) {
  const Measure measure = measure_of(results.runs);
  report::Table table = table_of("arms", "Every arm at every point that is judged: means over the seeds that are done",
                                 {"arm", "point", "seeds", measure.head(), "sd", "95% interval"});
  append(table.head, heads_beside(measure));
  table.head.emplace_back("decay budget");
  table.csv = {table.head};
  for (const Arm& arm : results.plan.arms) {
    for (const Overrides& point : points_of(results, arm.name)) {
      if (!is_judged(results, arm.name, point)) continue;
      table.rows.push_back(group_row(results, arm.name, point, Digits::few));
      table.csv.push_back(group_row(results, arm.name, point, Digits::all));
    }
  }
  return table;
}

report::Table chosen_table(const Results& results, const std::vector<Overrides>& chosen) {
  report::Table table =
      table_of("chosen", "Here, each arm at its point", {"arm", "point", measure_of(results.runs).name, "sd"});
  table.csv = {table.head};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (const Digits digits : {Digits::few, Digits::all}) {
      const std::vector<std::string> row = group_row(results, results.plan.arms[i].name, chosen[i], digits);
      (digits == Digits::few ? table.rows : table.csv).push_back({row[0], row[1], row[3], row[4]});
    }
  }
  return table;
}

report::Table benchmarks_table(const Results& results, const std::vector<Overrides>& chosen) {
  report::Table table = table_of("benchmarks", "Benchmarks, each arm at its point", {"arm", "point", "seeds"},
                                 "Fractions of the items that are answered right: mean over the seeds and its standard error.");
  using Scores = std::map<std::string, std::vector<double>>;
  std::vector<Scores> arms;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Scores& scores = arms.emplace_back();
    for (const FinishedRun& run : results.runs) {
      if (run.run.tuning || run.run.arm != results.plan.arms[i].name || run.run.point != chosen[i]) continue;
      for (const auto& [name, value] : run.scores) {
        scores[name].push_back(value);
        if (std::ranges::find(table.head, name) == table.head.end()) table.head.push_back(name);
      }
    }
  }
  table.csv = {table.head};
  for (std::size_t i = 0; i < chosen.size() && table.head.size() > 3; ++i) {
    for (const Digits digits : {Digits::few, Digits::all}) {
      const std::size_t seeds = arms[i].empty() ? 0 : arms[i].begin()->second.size();
      std::vector<std::string> row{results.plan.arms[i].name, point_cell(chosen[i]), std::to_string(seeds)};
      for (std::size_t column = row.size(); column < table.head.size(); ++column) {
        const std::vector<double>& values = arms[i][table.head[column]];
        row.push_back(mean_text(values, 4, digits));
        if (values.size() < 2 || digits == Digits::all) continue;
        row.back() += " +/- " + number_text(spread_of(values).sd / std::sqrt(static_cast<double>(values.size())), 4, digits);
      }
      (digits == Digits::few ? table.rows : table.csv).push_back(std::move(row));
    }
  }
  return table;
}

report::Table runs_table(const Results& results) {
  const Measure measure = measure_of(results.runs);
  report::Table table =
      table_of("runs", "Every run", {"arm", "point", "seed", "use", measure.head()},
               fmt::format("{} Points that were not chosen are not run on the judged seeds.", measure.described));
  append(table.head, heads_beside(measure));
  append(table.head, {"decay budget", "seconds", "status"});
  table.csv = {table.head};
  for (const FinishedRun& run : results.runs) {
    if (run.status == RunStatus::left_out) continue;
    table.rows.push_back(run_row(run, measure, Digits::few));
    table.csv.push_back(run_row(run, measure, Digits::all));
  }
  return table;
}

report::Table differences_table(const Results& results, const std::vector<Overrides>& chosen) {
  const bool external = measure_of(results.runs).task == run::TaskKind::external;
  report::Table table = table_of("settings", "Settings in which the arms differ, each at its point", {"key"},
                                 fmt::format("{} -: the arm has no such key, or it has no effect.",
                                             external ? "All other keys of the optimizer are the same."
                                                      : "All other keys are the same; configs/ and runs/*/config.toml have "
                                                        "every one."));
  std::vector<std::string> order;
  std::vector<Settings> arms;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    table.head.push_back(results.plan.arms[i].name);
    arms.push_back(settings_of(results, results.plan.arms[i], chosen[i], order));
  }
  for (const std::string& key : order) {
    std::vector<std::string> row{key};
    std::set<std::string> values;
    for (const Settings& settings : arms) {
      const auto found = settings.find(key);
      const std::string value = found == settings.end() || found->second.empty() ? "-" : found->second;
      values.insert(value);
      row.push_back(value);
    }
    if (values.size() > 1) table.rows.push_back(std::move(row));
  }
  return table;
}

report::Table paper_table(const Plan& plan) {
  report::Table table = table_of("paper", "In the paper", {"what", "number"});
  for (const PaperNumber& number : plan.paper) table.rows.push_back({number.what, number.number});
  return table;
}

report::Table provenance_table(const Results& results) {
  report::Table table = table_of("provenance", "What the runs were made with", {"what", "value"});
  for (const FinishedRun& run : results.runs) {
    for (const auto& [key, value] : run.provenance) {
      auto row = std::find_if(table.rows.begin(), table.rows.end(),
                              [&name = key](const std::vector<std::string>& cells) { return cells.front() == name; });
      if (row == table.rows.end()) row = table.rows.insert(row, {key});
      if (std::ranges::find(row->begin() + 1, row->end(), value) == row->end()) row->push_back(value);
    }
  }
  for (std::vector<std::string>& row : table.rows) {
    row = {row.front(), fmt::format("{}", fmt::join(row.begin() + 1, row.end(), "; "))};
  }
  return table;
}

}  // namespace cautious::study
