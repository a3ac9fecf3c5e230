#include "cli/study.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/terminal.h"
#include "cli/program.h"
#include "study/pace.h"
#include "study/progress_rows.h"

namespace cautious::cli {
namespace {

using study::FinishedRun;
using study::RunStatus;

void put(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

}  // namespace

StudyTable::StudyTable(bool quiet, int jobs, std::FILE* to)
    : quiet_(quiet), terminal_(base::redrawable(to)), jobs_(jobs), to_(to) {}

void StudyTable::show(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, bool saving) {
  if (quiet_) return;
  const double seconds = left(runs, progress);
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string last =
      fmt::format("{}  {} < {}", study::overall(runs, progress), base::clock_text(passed), base::clock_text(seconds));
  if (saving) last = "interrupted; saving the runs";
  if (terminal_) {
    const base::TerminalSize size = base::terminal_size(to_);
    std::vector<std::string> lines =
        study::progress_rows(runs, progress, size.width, std::max<std::size_t>(size.height, 4) - 2);
    lines.push_back(std::move(last));
    draw(lines);
  } else {
    print(runs, last);
  }
}

// Also counts what the processes have done since the last call.
double StudyTable::left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
  if (first_.empty()) first_ = progress;
  const Clock::time_point now = Clock::now();
  const auto running = std::ranges::count(runs, RunStatus::running, &FinishedRun::status);
  busy_ += static_cast<double>(running) * std::chrono::duration<double>(now - counted_).count();
  counted_ = now;
  double steps = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    steps += (progress[i] - first_[i]) * static_cast<double>(steps_of(runs[i].run.config));
  }
  return study::seconds_left(runs, progress, jobs_, steps > 0 ? busy_ / steps : std::numeric_limits<double>::quiet_NaN());
}

void StudyTable::draw(const std::vector<std::string>& lines) {
  const std::size_t width = base::terminal_size(to_).width;
  std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  for (const std::string& line : lines) text += fmt::format("\r{}\x1b[K\n", base::cut(line, width - 1));
  put(to_, text + "\x1b[J");
  drawn_ = lines.size();
}

void StudyTable::print(const std::vector<FinishedRun>& runs, const std::string& last) {
  constexpr std::chrono::seconds kSeldom{30};
  for (std::size_t i = 0; i < statuses_.size(); ++i) {
    const bool ended = runs[i].status != RunStatus::waiting && runs[i].status != RunStatus::running;
    if (ended && statuses_[i] != runs[i].status) put(to_, one_line(ending_of(runs[i])) + "\n");
  }
  statuses_.clear();
  for (const FinishedRun& run : runs) statuses_.push_back(run.status);
  const Clock::time_point now = Clock::now();
  if (now - printed_ < kSeldom) return;
  printed_ = now;
  put(to_, last + "\n");
}

}  // namespace cautious::cli
