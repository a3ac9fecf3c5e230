#include "study/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/terminal.h"

namespace cautious::study {
namespace {

constexpr std::array<std::string_view, 5> kWords{"waiting", "running", "done", "diverged", "failed"};

struct Row {
  std::string name;
  std::size_t total = 0;
  std::array<std::size_t, kWords.size()> count{};  // by status
  double fraction = 0, loss = 0;                   // sums

  std::size_t of(RunStatus status) const { return count[static_cast<std::size_t>(status)]; }
};

bool ended(RunStatus status) { return status != RunStatus::waiting && status != RunStatus::running; }

std::vector<Row> rows_of(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  constexpr std::size_t kSmall = 16;
  std::vector<Row> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const FinishedRun& run = runs[i];
    std::string name = name_of(run.run.arm, run.run.point);
    if (runs.size() <= kSmall) name += fmt::format(" seed={}", run.run.seed);
    auto row = std::ranges::find(rows, name, &Row::name);
    if (row == rows.end()) row = rows.insert(row, Row{.name = std::move(name)});
    row->total += 1;
    row->count[static_cast<std::size_t>(run.status)] += 1;
    row->fraction += ended(run.status) ? 1 : progress[i];
    if (run.status == RunStatus::done) row->loss += run.loss;
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
    if (row.total == 1) return std::string(kWords[status]);
    if (static_cast<RunStatus>(status) == RunStatus::done || static_cast<RunStatus>(status) == RunStatus::waiting) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.count[status], kWords[status]);
  }
  return text;
}

std::string line_of(const Row& row, std::size_t names, std::size_t bars) {
  const std::size_t done = row.of(RunStatus::done);
  const std::string loss = done == 0 ? "-" : fmt::format("{:.4f}", row.loss / static_cast<double>(done));
  std::string line = fmt::format("{:<{}}  {:>3}/{:<3} {} {:>8}  {}", row.name, names, done, row.total,
                                 bar(row.fraction / static_cast<double>(row.total), bars), loss, note(row));
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
  for (const Row& row : rows) lines.push_back(line_of(row, names, bars));
  if (most < all) lines.push_back(fmt::format("... and {} more", all - most));
  return lines;
}

std::string overall(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  Row sum;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sum.count[static_cast<std::size_t>(runs[i].status)] += 1;
    sum.fraction += ended(runs[i].status) ? 1 : progress[i];
  }
  std::string text = fmt::format("{}/{} runs done", sum.of(RunStatus::done), runs.size());
  for (const RunStatus status : {RunStatus::diverged, RunStatus::failed}) {
    if (sum.of(status) > 0) text += fmt::format(", {} {}", sum.of(status), word_of(status));
  }
  return fmt::format("{}  {:3.0f}%", text, std::floor(100 * sum.fraction / static_cast<double>(runs.size())));
}

std::string ending_of(const FinishedRun& run) {
  const std::string name =
      fmt::format("{} seed={}: {}", name_of(run.run.arm, run.run.point), run.run.seed, word_of(run.status));
  if (run.status == RunStatus::done)
    return fmt::format("{}, validation loss {:.4f}, {}", name, run.loss, base::clock_text(run.seconds));
  return run.status == RunStatus::failed ? fmt::format("{}: {}", name, run.failure) : name;
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
  double sum = 0, longest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].status != RunStatus::waiting && runs[i].status != RunStatus::running) continue;
    const double left = (1 - progress[i]) * static_cast<double>(steps_of(runs[i].run.config)) * pace_of(runs[i].run.arm);
    sum += left;
    longest = std::max(longest, left);
  }
  return std::max(sum / jobs, longest);
}

}  // namespace cautious::study
