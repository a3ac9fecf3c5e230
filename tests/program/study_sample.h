// A study as its runs leave it, with numbers that are known in advance: for the tests of its report.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "study/plan.h"

namespace cautious::study {

inline constexpr std::string_view kSample = R"(title = "Does <CWD> help & how?"
about = "Small runs </script> beside the paper's."
seeds = [0, 1, 2]
[base]
model.preset = "nano-100k"
data.path = "gcide"
[grid]
"optimizer.weight_decay" = [0, 0.1, 1.0, 3.0]
[[arm]]
name = "plain"
optimizer.decay = "decoupled"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
[[arm]]
name = "none"
optimizer.decay = "none"
grid = false
[[contrast]]
a = "cwd"
b = "plain"
best = true
[[contrast]]
a = "cwd"
b = "plain"
primary = false
[[paper]]
what = "AdamW, 338M, validation loss"
number = "3.0136"
)";

inline double sample_lambda(const PlannedRun& run) { return run.arm == "none" ? 0 : run.config.optimizer.recipe.weight_decay; }

// plain is best at 0.1 (mean 2), cwd at 1 (mean 1.9), no decay has 2.5; seeds are 0.05 apart, tuning seeds in the middle.
inline double sample_loss(const PlannedRun& run) {
  const double lambda = sample_lambda(run);
  const bool cautious = run.arm == "cwd";
  const double loss = lambda == 0 ? 2.5 : lambda == 0.1 ? (cautious ? 2.1 : 2.0) : lambda == 1 ? (cautious ? 1.9 : 2.2) : 2.3;
  return loss + (run.tuning ? 0 : 0.05 * (static_cast<double>(run.seed) - 1));
}

inline double sample_budget(const PlannedRun& run) { return (run.arm == "cwd" ? 100 : 250) * sample_lambda(run); }

inline constexpr int kSampleSteps = 1000, kSampleEvery = 5;

inline void write_sample_metrics(const std::filesystem::path& folder, double loss) {
  std::ofstream out(folder / "metrics.jsonl");
  for (int step = kSampleEvery; step <= kSampleSteps; step += kSampleEvery) {
    const double now = loss + 3 * std::exp(-step / 60.0) - 3 * std::exp(-kSampleSteps / 60.0);
    out << fmt::format(R"({{"step":{},"loss":{},)", step, now);
    if (step % 50 == 0) out << fmt::format(R"("val_loss":{},)", now);
    out << fmt::format(
               R"("lr":{},"tokens_per_s":{},"ratio":1,"ratio_strict":{},"rms_x":{},"rms_g":{},"rms_u":0.5,"decay_budget":0.25}})",
               0.003 * (1 - step / 1001.0), 28000 + step, 0.5 + 0.1 / step, 0.01 * step, 1.0 / step)
        << '\n';
  }
}

inline void write_sample_summary(const std::filesystem::path& folder, double loss, std::string_view status,
                                 double budget = 250) {
  std::ofstream(folder / "summary.json") << fmt::format(
      R"({{"status":"{}","val_loss":{},"val_bpb":{},"val_accuracy":0.5,"decay_budget":{},"seconds":12.5,"parameters":312448,)"
      R"("tokens":16384000,"version":"0.1.0","git":"0123456789ab","compiler":"GCC","cpu":"A CPU","blas":"A BLAS","threads":1}})",
      status, loss, loss / std::log(2.0), budget);
}

// All runs are done.
inline void write_sample(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory / "runs");
  std::ofstream(directory / "plan.toml") << kSample;
  for (const PlannedRun& run : expand(read_plan(directory / "plan.toml"))) {
    const auto folder = directory / "runs" / run.folder;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.toml") << to_toml(run.config);
    write_sample_metrics(folder, sample_loss(run));
    write_sample_summary(folder, sample_loss(run), "done", sample_budget(run));
  }
}

}  // namespace cautious::study
