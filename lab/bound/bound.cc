#include "lab/bound/bound.h"

#include <fmt/format.h>

#include "lab/bound/bound_sections.h"
#include "base/text.h"

namespace cautious::lab {
namespace {

std::string command_of(const BoundOptions& options) {
  const BoundOptions usual;
  std::string command = "cautious lab bound";
  if (options.seeds != usual.seeds) command += fmt::format(" --seeds {}", options.seeds);
  if (options.seed != usual.seed) command += fmt::format(" --seed {}", options.seed);
  return command + " --out bound";
}

}  // namespace

Experiment run_bound(const BoundOptions& options, const Progress& progress) {
  base::check_range("seeds", static_cast<double>(options.seeds), kBoundSeeds);
  constexpr std::size_t kLemmaRuns = 128, kLemmaSteps = 128;  // enough for a mean whatever the seeds asked for
  constexpr std::size_t kRandomSettings = 400, kRandomRuns = 8;
  const Progress tell = progress ? progress : [](double, std::string_view) {};
  BoundTally tally;
  Section sweeps = sweep_section(options, tell, tally);
  Section rate = rate_section(options, tell, tally);
  tell(0.85, "settings drawn at random");
  tally.add(random_settings(kRandomSettings, kRandomRuns, options.seed));
  tell(0.9, "lemmas");
  const std::vector<LemmaCheck> checks = check_lemmas(kLemmaRuns, kLemmaSteps, options.seed);
  sweeps.claims.insert(sweeps.claims.begin(), theorem_claim(tally));
  Experiment experiment{
      .name = "bound", .title = "Theorem 1: the convergence bound of Adam with cautious weight decay", .sections = {}};
  experiment.sections = {std::move(sweeps), std::move(rate), lemma_section(checks), proof_section(tally, checks)};
  for (Section& section : experiment.sections) section.command = command_of(options);
  tell(1, "done");
  return experiment;
}

}  // namespace cautious::lab
