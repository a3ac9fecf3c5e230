#include "lab/fixedpoint/fixedpoint.h"

#include <fmt/format.h>

#include "lab/fixedpoint/fixedpoint_sections.h"
#include "base/text.h"

namespace cautious::lab {

std::string command_of(const FixedpointOptions& options) {
  const FixedpointOptions usual;
  std::string command = "cautious lab fixedpoint";
  if (options.steps != usual.steps) command += fmt::format(" --steps {}", options.steps);
  if (options.seed != usual.seed) command += fmt::format(" --seed {}", options.seed);
  return command + " --out fixedpoint";
}

void check(const FixedpointOptions& options) { base::check_range("steps", static_cast<double>(options.steps), kFixedpointSteps); }

Experiment run_fixedpoint(const FixedpointOptions& options, const Progress& progress) {
  check(options);
  Experiment experiment{.name = "fixedpoint", .title = "Which problem does an optimizer solve?", .sections = {}};
  progress(0, "fixedpoint: vectors");
  const fixedpoint::Ends ends = fixedpoint::run_vectors(options);
  experiment.sections.push_back(fixedpoint::vectors_section(options, ends));
  progress(0.3, "fixedpoint: one coordinate");
  experiment.sections.push_back(fixedpoint::curves_section(options));
  progress(0.4, "fixedpoint: matrices");
  experiment.sections.push_back(fixedpoint::matrices_section(options));
  progress(0.8, "fixedpoint: coming to rest");
  experiment.sections.push_back(fixedpoint::motion_section(options));
  experiment.sections.push_back(fixedpoint::cautious_section(ends));
  for (Section& section : experiment.sections) section.command = command_of(options);
  progress(1, "fixedpoint");
  return experiment;
}

}  // namespace cautious::lab
