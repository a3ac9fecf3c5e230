#include "study/pace.h"

#include <algorithm>
#include <map>
#include <string>

namespace cautious::study {
namespace {

struct Worked {
  double seconds = 0, steps = 0;
};

// The whole study's under "", which is no arm's name.
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
