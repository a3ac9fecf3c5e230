// The tables of a study's report.
#include <algorithm>
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

constexpr std::size_t kManySeeds = 1000;

report::Table table_of(const char* name, const char* title, std::vector<std::string> head, const char* note = "") {
  return {.name = name, .title = title, .head = std::move(head), .rows = {}, .note = note};
}

// "0.0123"; "-" for what is not known.
std::string number_text(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string point_cell(const Overrides& point) { return point.empty() ? "-" : point_text(point); }

std::string interval_text(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "-";
  return fmt::format("[{:.4f}, {:.4f}]", interval.low, interval.high);
}

std::string p_cell(double p) {
  if (std::isnan(p)) return "-";
  return p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", p);
}

std::string needed_text(std::size_t needed) {
  if (needed == 0) return "-";
  return needed > kManySeeds ? fmt::format("> {}", kManySeeds) : std::to_string(needed);
}

std::vector<std::string> contrast_row(const ContrastResult& result) {
  const Paired& paired = result.paired;
  if (paired.n == 0) return {result.name, "-", "-", "-", "-", "0", "-", "-"};
  const bool several = paired.n > 1;
  return {result.name,
          fmt::format("{:+.4f}", paired.difference),
          interval_text(paired.interval),
          p_cell(paired.t_p),
          several ? p_cell(paired.permutation_p) : "-",
          std::to_string(paired.n),
          needed_text(result.needed),
          several ? number_text(result.detectable, 4) : "-"};
}

// Of the runs of an arm at a point.
struct Group {
  std::vector<double> losses, bits, accuracies, budgets;
};

Group group_of(const Results& results, const std::string& arm, const Overrides& point) {
  Group group;
  for (const FinishedRun& run : results.runs) {
    if (run.run.tuning || run.run.arm != arm || run.run.point != point || run.status != RunStatus::done) continue;
    group.losses.push_back(run.loss);
    group.bits.push_back(run.bits_per_byte);
    group.accuracies.push_back(run.accuracy);
    group.budgets.push_back(run.decay_budget);
  }
  return group;
}

std::string mean_text(const std::vector<double>& values, int decimals) {
  return values.empty() ? "-" : number_text(spread_of(values).mean, decimals);
}

std::vector<std::string> group_row(const Results& results, const std::string& arm, const Overrides& point) {
  const Group group = group_of(results, arm, point);
  const bool some = !group.losses.empty();
  const Spread spread = spread_of(group.losses);
  return {arm,
          point_cell(point),
          std::to_string(group.losses.size()),
          mean_text(group.losses, 4),
          some ? number_text(spread.sd, 4) : "-",
          some ? interval_text(spread.interval) : "-",
          mean_text(group.bits, 4),
          mean_text(group.accuracies, 4),
          mean_text(group.budgets, 2)};
}

std::string status_text(const FinishedRun& run) {
  const std::string name(word_of(run.status));
  return run.failure.empty() ? name : fmt::format("{}: {}", name, run.failure);
}

using Settings = std::map<std::string, std::string>;

// Of the arm's first run at its best point; the seed is not a difference.
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

report::Table contrasts_table(const Verdict& verdict, bool primary) {
  report::Table table = table_of(
      primary ? "contrasts" : "contrasts_exploratory",
      primary ? "Prespecified differences of validation loss (nats per token)"
              : "Exploratory differences of validation loss (nats per token)",
      {"contrast", "difference", "95% interval", "p (t)", "p (flips)", "seeds", "seeds for 80% power", "detectable"},
      "Paired by seed: runs of one seed share initial weights and order of data. Negative: the first has the lower loss. Seeds "
      "for 80% power: how many would find a true difference as large as the one measured; detectable: the smallest difference "
      "that these seeds find with 80% power. p (t): paired t-test; p (flips): test by flipping signs, which with n seeds is "
      "never below 2/2^n.");
  for (const ContrastResult& result : verdict.contrasts) {
    if (result.primary == primary) table.rows.push_back(contrast_row(result));
  }
  return table;
}

report::Table arms_table(const Results& results) {
  report::Table table =
      table_of("arms", "Every arm at every point: means over the seeds that are done",
               {"arm", "point", "seeds", "loss", "sd", "95% interval", "bits per byte", "accuracy", "decay budget"});
  for (const Arm& arm : results.plan.arms) {
    for (const Overrides& point : points_of(results, arm.name)) table.rows.push_back(group_row(results, arm.name, point));
  }
  return table;
}

report::Table best_table(const Results& results, const std::vector<Overrides>& best) {
  report::Table table = table_of("best", "Here, each arm at its best point", {"arm", "point", "validation loss", "sd"});
  for (std::size_t i = 0; i < best.size(); ++i) {
    const std::vector<std::string> row = group_row(results, results.plan.arms[i].name, best[i]);
    table.rows.push_back({row[0], row[1], row[3], row[4]});
  }
  return table;
}

report::Table runs_table(const Results& results) {
  report::Table table = table_of(
      "runs", "Every run", {"arm", "point", "seed", "loss", "bits per byte", "accuracy", "decay budget", "seconds", "status"},
      "Loss, bits per byte and accuracy on the validation text, at the end.");
  for (const FinishedRun& run : results.runs) {
    const bool ended = run.status == RunStatus::done || run.status == RunStatus::diverged;
    table.rows.push_back({run.run.arm, point_cell(run.run.point), std::to_string(run.run.seed), number_text(run.loss, 4),
                          number_text(run.bits_per_byte, 4), number_text(run.accuracy, 4),
                          ended ? number_text(run.decay_budget, 2) : "-", ended ? number_text(run.seconds, 1) : "-",
                          status_text(run)});
  }
  return table;
}

report::Table differences_table(const Results& results, const std::vector<Overrides>& best) {
  report::Table table = table_of("settings", "Settings in which the arms differ, each at its best point", {"key"},
                                 "All other keys are the same; configs/ and runs/*/config.toml have every one. -: the arm has "
                                 "no such key, or it has no effect.");
  std::vector<std::string> order;
  std::vector<Settings> arms;
  for (std::size_t i = 0; i < best.size(); ++i) {
    table.head.push_back(results.plan.arms[i].name);
    arms.push_back(settings_of(results, results.plan.arms[i], best[i], order));
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
      const auto is_key = [&](const std::vector<std::string>& row) { return row.front() == key; };
      auto row = std::ranges::find_if(table.rows, is_key);
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
