#include "run/reference_run.h"

#include <algorithm>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::run {
namespace {

void check_tensors(const std::filesystem::path& directory, const std::vector<std::string>& theirs,
                   const std::vector<std::string>& own) {
  const auto [a, b] = std::ranges::mismatch(theirs, own);
  if (a == theirs.end() && b == own.end()) return;
  const auto shown = [](const auto& at, const auto& all) { return at == all.end() ? "nothing" : base::in_quotes(*at); };
  throw Error(Fault::data, fmt::format("{}: the {} tensors of its decay trace are not the {} of this run: where it has {}, "
                                       "this one has {}",
                                       directory.string(), theirs.size(), own.size(), shown(a, theirs), shown(b, own)));
}

}  // namespace

ReferenceRun::ReferenceRun(What what, const std::filesystem::path& directory, const std::vector<std::string>& tensors)
    : what_(what), directory_(directory), trace_(DecayTrace::read(directory)) {
  check_tensors(directory_, trace_.tensors(), tensors);
}

ReferenceRun::Amounts ReferenceRun::follow(std::int64_t number, std::span<const OwnDecay> tensors) const {
  if (number < 1 || number > trace_.steps()) {
    throw Error(Fault::data, fmt::format("{}: its decay trace has {} steps, this run is at step {}; all runs of a seed must "
                                         "have as many steps",
                                         directory_.string(), trace_.steps(), number));
  }
  Amounts amounts{std::vector<double>(tensors.size(), 1), std::vector<double>(tensors.size(), 0), 0};
  double plain = 0, wanted = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (what_ == What::density) amounts.densities[i] = trace_.density(number, i);
    const auto [strength, sum] = tensors[i];
    const double budget = amounts.densities[i] * strength * sum;
    if (budget > 0) amounts.factors[i] = std::min(trace_.budget(number, i) / budget, 1 / strength);
    plain += budget;
    wanted += amounts.factors[i] * budget;
  }
  if (plain > 0) amounts.all = wanted / plain;
  return amounts;
}

}  // namespace cautious::run
