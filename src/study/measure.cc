#include "study/measure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cautious::study {
namespace {

// The paper's differences of validation loss are 0.0045 to 0.0109 nats.
const Measure kLoss{.task = run::TaskKind::text,
                    .name = "validation loss",
                    .section = "Loss",
                    .unit = "nats",
                    .axis = "nats per token",
                    .difference = "nats per token",
                    .target = 0.005,
                    .beside = "the size of the paper's differences",
                    .columns = {{"val_loss", "loss", 4}, {"val_bpb", "bits per byte", 4}, {"val_accuracy", "accuracy", 4}},
                    .described = "Loss, bits per byte and accuracy on the validation text, at the end."};

// The paper's differences of top-1 accuracy are 0.16 to 0.61 points.
const Measure kError{.task = run::TaskKind::image,
                     .name = "top-1 error",
                     .section = "Error",
                     .unit = "points",
                     .axis = "%",
                     .difference = "percentage points",
                     .target = 0.2,
                     .beside = "about the smallest of the paper's differences",
                     .columns = {{"objective", "error", 2}, {"val_loss", "loss", 4}, {"val_top5_error", "top-5 error", 2}},
                     .described =
                         "Top-1 error (%), loss (nats per image) and top-5 error (%) on the validation images, at "
                         "the end."};

// One decimal more than the target's first digit needs, as above.
Measure reported(const run::RunConfig::Objective& objective) {
  const int decimals = 1 + std::max(0, static_cast<int>(std::ceil(-std::log10(objective.target))));
  return {.task = run::TaskKind::external,
          .name = objective.name,
          .section = "",
          .unit = objective.unit,
          .axis = objective.unit,
          .difference = objective.unit,
          .target = objective.target,
          .beside = "the difference that this study was made to find",
          .columns = {{"objective", objective.name, std::min(decimals, 12)}},
          .described = fmt::format("What a run reported as its {}.", objective.name)};
}

}  // namespace

std::string Measure::number(double value) const { return fmt::format("{:.{}f}", value, decimals()); }
std::string Measure::signed_number(double value) const { return fmt::format("{:+.{}f}", value, decimals()); }
std::string Measure::with_unit(std::string text) const { return unit.empty() ? text : fmt::format("{} {}", text, unit); }
std::string Measure::target_text() const { return with_unit(fmt::format("{}", target)); }

std::string Measure::title() const {
  std::string text(name);
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string in_brackets(const std::string& unit) { return unit.empty() ? "" : fmt::format(" ({})", unit); }

Measure measure_of(run::TaskKind task) { return task == run::TaskKind::image ? kError : kLoss; }

Measure measure_of(const run::RunConfig& config) {
  return config.task == run::TaskKind::external ? reported(config.objective) : measure_of(config.task);
}

}  // namespace cautious::study
