#include "lab/dynamics/dynamics.h"

#include <utility>

#include "lab/dynamics/dynamics_sections.h"

namespace cautious::lab {

Experiment run_dynamics(const DynamicsOptions& options, const Progress& progress) {
  using Make = Section (*)(const DynamicsOptions&, const Progress&);
  // With the part of the time that each takes.
  constexpr std::pair<Make, double> kSections[] = {{table1_section, 0.4}, {manifold_section, 0.1}, {pareto_section, 0.2},
                                                   {adamw_section, 0.05}, {gamma_section, 0.1},    {muon_section, 0.15}};
  Experiment experiment{.name = "dynamics", .title = "Continuous time: Table 1 and appendix D", .sections = {}};
  double done = 0;
  for (const auto& [make, part] : kSections) {
    experiment.sections.push_back(
        make(options, [&](double inside, std::string_view what) { progress(done + part * inside, what); }));
    done += part;
  }
  progress(1, "dynamics");
  return experiment;
}

}  // namespace cautious::lab
