#include "study/measure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"

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

// The paper's differences are 0 to 3 points on the benchmarks of pre-trained models, 0.03 to 0.85 on those of fine-tuned ones.
Measure benchmark_error(run::TaskKind task, const std::string& benchmark, const std::string& metric) {
  return {.task = task,
          .name = fmt::format("error on {}", benchmark),
          .section = "Loss",
          .unit = "points",
          .axis = "%",
          .difference = "percentage points",
          .target = 0.5,
          .beside = "a quarter of the usual difference in the paper's table of pre-trained models",
          .columns = {{fmt::format("eval/{}/{}", benchmark, metric), "error", 2, true},
                      {"val_loss", "loss", 4},
                      {"val_accuracy", "accuracy", 4}},
          .described =
              fmt::format("Error on {} (%, what {} is short of 100), loss and accuracy on the validation text, at the end.",
                          benchmark, metric)};
}

[[noreturn]] void refuse_objective(const std::string& objective, const std::string& why) {
  throw Error(Fault::usage, fmt::format("objective is {}; {}", base::in_quotes(objective), why), {.key = "objective"});
}

}  // namespace

std::string Measure::number(double value) const { return fmt::format("{:.{}f}", value, decimals()); }
std::string Measure::signed_number(double value) const { return fmt::format("{:+.{}f}", value, decimals()); }
std::string Measure::with_unit(std::string text) const { return unit.empty() ? text : fmt::format("{} {}", text, unit); }
std::string Measure::target_text() const { return with_unit(fmt::format("{}", target)); }

std::string Measure::title() const { return with_capital(name); }

std::string with_capital(std::string text) {
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string in_brackets(const std::string& unit) { return unit.empty() ? "" : fmt::format(" ({})", unit); }

Measure measure_of(run::TaskKind task) { return task == run::TaskKind::image ? kError : kLoss; }

Measure measure_of(const run::RunConfig& config) {
  return config.task == run::TaskKind::external ? reported(config.objective) : measure_of(config.task);
}

Measure measure_of(const std::string& objective, const run::RunConfig& config) {
  if (objective.empty()) return measure_of(config);
  constexpr std::array<std::string_view, 3> kMetrics{"acc", "acc_norm", "acc_bytes"};
  constexpr std::string_view kFront = "eval/";
  const std::size_t slash = objective.rfind('/');
  if (!objective.starts_with(kFront) || slash <= kFront.size()) {
    refuse_objective(objective, "valid: eval/TASK/METRIC, as in eval/hellaswag/acc_norm");
  }
  const std::string benchmark = objective.substr(kFront.size(), slash - kFront.size()), metric = objective.substr(slash + 1);
  if (std::ranges::find(kMetrics, metric) == kMetrics.end()) {
    refuse_objective(objective, fmt::format("metrics: {}", base::join(kMetrics)));
  }
  std::vector<std::string> asked;
  for (const std::string& task : config.eval.tasks) asked.push_back(task.substr(0, task.find(':')));
  if (std::ranges::find(asked, benchmark) == asked.end()) {
    refuse_objective(objective, asked.empty() ? "the runs are asked no benchmark; set eval.tasks and eval.data in [base]"
                                              : fmt::format("the benchmarks of eval.tasks: {}", base::join(asked)));
  }
  return benchmark_error(config.task, benchmark, metric);
}

}  // namespace cautious::study
