#include "study/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/terminal.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

constexpr std::array<std::string_view, 6> kWords{"waiting", "running", "done", "diverged", "failed", "left out"};

std::string label_of(const PlannedRun& run) {
  return fmt::format("{}{} seed={}", run.tuning ? "tuning " : "", name_of(run.arm, run.point), run.seed);
}

struct Row {
  std::string name;
  double total = 0;                           // runs, as far as they are expected
  std::array<double, kWords.size()> count{};  // by status
  double fraction = 0, loss = 0;              // sums

  double of(RunStatus status) const { return count[static_cast<std::size_t>(status)]; }
  void add(const FinishedRun& run, double weight, double progress) {
    const bool ended = run.status != RunStatus::waiting && run.status != RunStatus::running;
    total += weight;
    count[static_cast<std::size_t>(run.status)] += weight;
    fraction += weight * (ended ? 1 : progress);
    if (run.status == RunStatus::done) loss += weight * run.loss;
  }
};

// Arms of which it is known at which point they are judged: the others are left out.
std::set<std::string> decided_in(const std::vector<FinishedRun>& runs) {
  std::set<std::string> arms;
  for (const FinishedRun& run : runs) {
    if (run.status == RunStatus::left_out) arms.insert(run.run.arm);
  }
  return arms;
}

// What to expect of each run: 1, the chance of a candidate, or 0 for what is left out or made by another run.
std::vector<double> weights_of(const std::vector<FinishedRun>& runs) {
  const std::set<std::string> decided = decided_in(runs);
  std::set<std::string> folders;
  std::vector<double> weights;
  for (const FinishedRun& run : runs) {
    const bool open = run.run.candidate && run.status == RunStatus::waiting && !decided.contains(run.run.arm);
    const bool own = run.status != RunStatus::left_out && (open || folders.insert(run.run.folder).second);
    weights.push_back(!own ? 0 : open ? run.run.share : 1);
  }
  return weights;
}

std::vector<Row> rows_of(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  constexpr double kSmall = 16;
  const std::set<std::string> decided = decided_in(runs);
  const std::vector<double> weights = weights_of(runs);
  const bool small = std::accumulate(weights.begin(), weights.end(), 0.0) <= kSmall;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const FinishedRun& run = runs[i];
    if (weights[i] == 0) continue;
    const bool open = run.run.candidate && !decided.contains(run.run.arm);
    std::string name = open ? run.run.arm + " at its best point" : name_of(run.run.arm, run.run.point);
    if (run.run.tuning) name = "tuning " + name;
    if (small) name += fmt::format(" seed={}", run.run.seed);
    auto row = std::ranges::find(rows, name, &Row::name);
    if (row == rows.end()) row = rows.insert(row, Row{.name = std::move(name)});
    row->add(run, weights[i], progress[i]);
  }
  return rows;
}

std::string bar(double fraction, std::size_t length) {
  const auto full = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(length));
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(length - full, '.'));
}

// "2 running, 1 failed"; of a single run its state alone.
std::string note(const Row& row) {
  std::string text;
  for (std::size_t status = 0; status < kWords.size(); ++status) {
    if (row.count[status] == 0) continue;
    if (row.total <= 1) return std::string(kWords[status]);
    if (static_cast<RunStatus>(status) == RunStatus::done || static_cast<RunStatus>(status) == RunStatus::waiting) continue;
    text += fmt::format("{}{:.0f} {}", text.empty() ? "" : ", ", row.count[status], kWords[status]);
  }
  return text;
}

std::string line_of(const Row& row, const Measure& measure, std::size_t names, std::size_t bars) {
  const double done = row.of(RunStatus::done);
  const std::string loss = done == 0 ? "-" : measure.number(row.loss / done);
  std::string line = fmt::format("{:<{}}  {:>3.0f}/{:<3.0f} {} {:>8}  {}", row.name, names, done, row.total,
                                 bar(row.fraction / row.total, bars), loss, note(row));
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// Takes rows out from the end until `most` are left; those kept stay in order.
void leave_out(std::vector<Row>& rows, std::size_t most, RunStatus all) {
  for (std::size_t i = rows.size(); i-- > 0 && rows.size() > most;) {
    if (rows[i].of(all) != rows[i].total) continue;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<double> without_missing(std::vector<double> losses) {
  std::erase_if(losses, [](double loss) { return std::isnan(loss); });
  return losses;
}

struct Worked {
  double seconds = 0, steps = 0;
};

// The whole study's under "", which is not an arm's name.
std::map<std::string, Worked> worked_in(const std::vector<FinishedRun>& runs) {
  std::map<std::string, Worked> worked;
  for (const FinishedRun& run : runs) {
    if (run.status != RunStatus::done) continue;
    for (const std::string& of : {run.run.arm, std::string()}) {
      worked[of].seconds += run.seconds;
      worked[of].steps += static_cast<double>(steps_of(run.run.config));
    }
  }
  return worked;
}

}  // namespace

std::string_view word_of(RunStatus status) { return kWords.at(static_cast<std::size_t>(status)); }

std::vector<std::string> progress_rows(const std::vector<FinishedRun>& runs, const std::vector<double>& progress,
                                       std::size_t width, std::size_t height) {
  constexpr std::size_t kOther = 32;  // columns without name and bar
  constexpr std::size_t kShortest = 4, kLongest = 20;
  std::vector<Row> rows = rows_of(runs, progress);
  const std::size_t all = rows.size(), most = all > height ? std::max<std::size_t>(height, 1) - 1 : all;
  for (const RunStatus status : {RunStatus::done, RunStatus::waiting}) leave_out(rows, most, status);
  rows.resize(std::min(rows.size(), most));
  std::size_t names = 0;
  for (const Row& row : rows) names = std::max(names, row.name.size());
  const std::size_t bars = std::clamp(width > names + kOther ? width - names - kOther : 0, kShortest, kLongest);
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(line_of(row, measure_of(runs), names, bars));
  if (most < all) lines.push_back(fmt::format("... and {} more", all - most));
  return lines;
}

std::string overall(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  const std::vector<double> weights = weights_of(runs);
  Row sum;
  for (std::size_t i = 0; i < runs.size(); ++i) sum.add(runs[i], weights[i], progress[i]);
  std::string text = fmt::format("{:.0f}/{:.0f} runs done", sum.of(RunStatus::done), sum.total);
  for (const RunStatus status : {RunStatus::diverged, RunStatus::failed}) {
    if (sum.of(status) > 0) text += fmt::format(", {:.0f} {}", sum.of(status), word_of(status));
  }
  return fmt::format("{}  {:3.0f}%", text, std::floor(100 * sum.fraction / sum.total));
}

std::string elsewhere(const std::vector<FinishedRun>& runs) {
  constexpr std::size_t kNamed = 3;
  std::map<std::string, std::vector<std::string>> made;
  std::set<std::string> folders;
  for (const FinishedRun& run : runs) {
    const bool theirs = run.status == RunStatus::running && !run.worker.empty();
    if (theirs && folders.insert(run.run.folder).second) made[run.worker].push_back(label_of(run.run));
  }
  std::string text;
  for (auto& [worker, labels] : made) {
    const std::size_t more = labels.size() - std::min(labels.size(), kNamed);
    labels.resize(labels.size() - more);
    if (more > 0) labels.push_back(fmt::format("and {} more", more));
    text += fmt::format("{}{} makes {}", text.empty() ? "" : "; ", worker, fmt::join(labels, ", "));
  }
  return text;
}

std::string ending_of(const FinishedRun& run) {
  const Measure measure = measure_of(run.run);
  const std::string name = fmt::format("{}: {}", label_of(run.run), word_of(run.status));
  if (run.status == RunStatus::done)
    return fmt::format("{}, {} {}, {}", name, measure.name, measure.number(run.loss), base::clock_text(run.seconds));
  return run.status == RunStatus::failed ? fmt::format("{}: {}", name, run.failure) : name;
}

std::string losses_table(const Results& results) {
  std::size_t width = 3;
  for (const FinishedRun& run : results.runs) width = std::max(width, name_of(run.run.arm, run.run.point).size());
  const Measure measure = measure_of(results.runs);
  const auto mean_of = [&](const Spread& spread) { return spread.n > 0 ? measure.number(spread.mean) : "-"; };
  std::string text = fmt::format("{:<{}} {:>10} {:>4} {:>10} {:>10}\n", "arm", width, "tuning", "n", "mean", "sd");
  for (const Arm& arm : results.plan.arms) {
    for (const Overrides& point : points_of(results, arm.name)) {
      const Spread tuned = spread_of(without_missing(tuning_losses_of(results, arm.name, point)));
      const Spread spread = spread_of(without_missing(losses_of(results, arm.name, point)));
      if (!results.plan.tune_seeds.empty() && tuned.n == 0 && point != best_point(results, arm.name)) continue;
      text += fmt::format("{:<{}} {:>10} {:>4} {:>10} {:>10}\n", name_of(arm.name, point), width, mean_of(tuned), spread.n,
                          mean_of(spread), spread.n > 1 ? measure.number(spread.sd) : "-");
    }
  }
  return text;
}

double seconds_left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, int jobs,
                    double seconds_per_step) {
  const std::map<std::string, Worked> worked = worked_in(runs);
  const auto pace_of = [&](const std::string& arm) {
    for (const std::string& of : {arm, std::string()}) {
      if (const auto found = worked.find(of); found != worked.end()) return found->second.seconds / found->second.steps;
    }
    return seconds_per_step;
  };
  const std::vector<double> weights = weights_of(runs);
  double sum = 0, longest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::waiting && runs[i].status != RunStatus::running) continue;
    const double left = (1 - progress[i]) * static_cast<double>(steps_of(runs[i].run.config)) * pace_of(runs[i].run.arm);
    sum += weights[i] * left;
    if (weights[i] > 0) longest = std::max(longest, left);
  }
  return std::max(sum / jobs, longest);
}

}  // namespace cautious::study
