// Studies of runs that are made here, as a program of the user's would make them: losses with a known truth.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run_fixture.h"
#include "simulated.h"
#include "study/compare.h"
#include "study/external.h"

namespace cautious::study {

// What a run is worth beside the noise of its seed.
using ExternalTruth = std::function<double(const ExternalRun& run)>;

class ExternalFiles : public RunFiles {
 protected:
  static Comparison comparison() {
    return {.seeds = 5, .tune_seeds = 2, .lambdas = {0.05, 0.2, 1}, .lrs = {1e-3}, .settings = {{"objective.unit", "nats"}}};
  }

  // Seeds are 0.02 apart, runs of a seed 0.0002: the same numbers in whatever order the runs are made.
  static double loss_of(const ExternalRun& run, const ExternalTruth& truth) {
    Normal of_seed(run.seed), of_run(run.seed ^ std::hash<std::string>()(run.recipe));
    return 2 + truth(run) + 0.02 * of_seed() + 0.0002 * of_run();
  }

  // Decay helps: most at 0.2 for plain decay and at 0.5 for masks.
  static double helpful(const ExternalRun& run) {
    const double reach = run.decay == "decoupled" ? 1 : 2.5, lambda = run.weight_decay / reach;
    return lambda == 0 ? 0 : lambda == 0.2 ? -0.1 : -0.05;
  }
  static double idle(const ExternalRun&) { return 0; }

  std::filesystem::path study() const { return directory_ / "study"; }

  // Makes at most `most` runs, and returns the folders of those.
  std::vector<std::string> make(const ExternalTruth& truth, std::size_t most = 1000) const {
    ExternalStudy study(external_plan(comparison()), this->study());
    std::vector<std::string> made;
    while (made.size() < most) {
      const std::optional<ExternalRun> run = study.next();
      if (!run) break;
      study.finish(loss_of(*run, truth), 100 * run->weight_decay);
      made.push_back(run->folder);
    }
    return made;
  }

  Conclusion conclusion() const { return ExternalStudy(external_plan(comparison()), study()).conclude(); }
};

}  // namespace cautious::study
