#include "study/measure.h"

#include <fmt/format.h>

namespace cautious::study {
namespace {

// The paper's differences of validation loss are 0.0045 to 0.0109 nats.
constexpr Measure kLoss{
    .task = run::TaskKind::text,
    .name = "validation loss",
    .section = "Loss",
    .unit = "nats",
    .axis = "nats per token",
    .difference = "nats per token",
    .target = 0.005,
    .beside = "the size of the paper's differences",
    .columns = {{{"val_loss", "loss", 4}, {"val_bpb", "bits per byte", 4}, {"val_accuracy", "accuracy", 4}}},
    .described = "Loss, bits per byte and accuracy on the validation text, at the end."};

// The paper's differences of top-1 accuracy are 0.16 to 0.61 points.
constexpr Measure kError{
    .task = run::TaskKind::image,
    .name = "top-1 error",
    .section = "Error",
    .unit = "points",
    .axis = "%",
    .difference = "percentage points",
    .target = 0.2,
    .beside = "about the smallest of the paper's differences",
    .columns = {{{"objective", "error", 2}, {"val_loss", "loss", 4}, {"val_top5_error", "top-5 error", 2}}},
    .described =
        "Top-1 error (%), loss (nats per image) and top-5 error (%) on the validation images, at "
        "the end."};

}  // namespace

std::string Measure::number(double value) const { return fmt::format("{:.{}f}", value, decimals()); }
std::string Measure::signed_number(double value) const { return fmt::format("{:+.{}f}", value, decimals()); }
std::string Measure::target_text() const { return fmt::format("{} {}", target, unit); }

std::string Measure::title() const {
  std::string text(name);
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

const Measure& measure_of(run::TaskKind task) { return task == run::TaskKind::image ? kError : kLoss; }

}  // namespace cautious::study
