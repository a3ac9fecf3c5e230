#include "train/divergence.h"

#include <cmath>

#include <fmt/format.h>

namespace cautious::train {
namespace {

std::string not_finite(double number) { return std::isnan(number) ? "not a number" : "infinite"; }

}  // namespace

std::string fault_of_parameters(double rms, double start) {
  constexpr double kExploded = 1000;
  if (!std::isfinite(rms)) return "parameters are not finite";
  if (start <= 0 || rms <= kExploded * start) return "";
  return fmt::format("the RMS of the parameters is {:.3g}, {:.0f} times that at the start", rms, rms / start);
}

std::string fault_of(const TrainStep& step, double start) {
  if (!std::isfinite(step.loss)) return "the loss is " + not_finite(step.loss);
  if (step.report->skipped) return fmt::format("{} entries of the gradient are not finite", step.report->total.nonfinite);
  return fault_of_parameters(step.report->total.rms_x(), start);
}

std::string fault_of(const model::Evaluation& evaluation) {
  const bool well = evaluation.targets == 0 || std::isfinite(evaluation.loss);
  return well ? "" : "the validation loss is " + not_finite(evaluation.loss);
}

}  // namespace cautious::train
