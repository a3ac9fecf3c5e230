// The sections of the experiment `dynamics`. Each draws its own random numbers from the seed.
#pragma once

#include <string>

#include "lab/dynamics/dynamics.h"

namespace cautious::lab {

Section table1_section(const DynamicsOptions& options, const Progress& progress);
Section manifold_section(const DynamicsOptions& options, const Progress& progress);
Section pareto_section(const DynamicsOptions& options, const Progress& progress);
Section adamw_section(const DynamicsOptions& options, const Progress& progress);
Section gamma_section(const DynamicsOptions& options, const Progress& progress);
Section muon_section(const DynamicsOptions& options, const Progress& progress);

// Repeats the run.
inline std::string command_of(const DynamicsOptions& options) {
  const DynamicsOptions usual;
  std::string command = "cautious lab dynamics";
  if (options.trials != usual.trials) command += " --trials " + std::to_string(options.trials);
  if (options.seed != usual.seed) command += " --seed " + std::to_string(options.seed);
  return command + " --out dynamics";
}

inline Section new_section(std::string title, std::string text, const DynamicsOptions& options) {
  Section section;
  section.title = std::move(title);
  section.text = std::move(text);
  section.command = command_of(options);
  return section;
}

inline report::LineChart new_chart(std::string title, std::string x_label, std::string y_label, std::string description) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(x_label);
  chart.y_label = std::move(y_label);
  chart.description = std::move(description);
  return chart;
}

inline report::ChartSeries new_series(std::string name, std::size_t colour) {
  report::ChartSeries series;
  series.name = std::move(name);
  series.colour = colour;
  return series;
}

}  // namespace cautious::lab
