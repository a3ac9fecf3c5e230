// Two models side by side, and the rounds in which each takes its turn.
#include "bench/train_grid.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>
#include <torch/optim/adamw.h>

#include <cautious/torch.h>

#include "bench/machine.h"
#include "bench/rounds.h"
#include "model/transformer.h"

namespace cautious::bench {
namespace {

// Gives back what earlier cases left and forgets their peak.
void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

// A model with its optimizer; step() is one training step.
class Side {
 public:
  Side(const model::ModelConfig& config, model::ops::Path path, bool recompute,
       std::unique_ptr<::torch::optim::Optimizer> (*make)(model::Transformer&))
      : model_(std::make_shared<model::Transformer>(config, 1, model::RunOptions{path, recompute})),
        optimizer_(make(*model_)) {}

  void step(const at::Tensor& tokens, const at::Tensor& target) {
    const auto start = Clock::now();
    optimizer_->zero_grad();
    model_->loss(tokens, target).backward();
    const auto backward = Clock::now();
    optimizer_->step();
    optimizer_seconds.push_back(seconds_since(backward));
    seconds.push_back(seconds_since(start));
  }

  std::vector<double> seconds, optimizer_seconds;

 private:
  std::shared_ptr<model::Transformer> model_;
  std::unique_ptr<::torch::optim::Optimizer> optimizer_;
};

std::unique_ptr<::torch::optim::Optimizer> ours(model::Transformer& model) {
  torch::Options options(1e-3);
  options.recipe.decay = Cautious{};
  return std::make_unique<torch::Optimizer>(model.named_parameters(), options);
}

std::unique_ptr<::torch::optim::Optimizer> plain(model::Transformer& model) {
  return std::make_unique<::torch::optim::AdamW>(model.parameters(), ::torch::optim::AdamWOptions(1e-3).weight_decay(0.1));
}

}  // namespace

void run_train_grid(const TrainGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const TrainRow&)>& done) {
  at::set_num_threads(grid.threads);
  for (const std::string& name : grid.presets) {
    const model::ModelConfig config = model::preset(name);
    TrainRow row{.preset = name, .threads = grid.threads};
    row.sequence = std::min<std::int64_t>(config.context, 256);
    row.batch = config.vocab > 50'000 ? 4 : config.width > 200 ? 8 : 16;
    forget_peak();
    begin(fmt::format("{}, batch {} x {}", name, row.batch, row.sequence));
    const at::Tensor tokens = at::randint(config.vocab, {row.batch, row.sequence}, at::kLong);
    const at::Tensor target = at::randint(config.vocab, {row.batch, row.sequence}, at::kLong);
    Side fused(config, model::ops::Path::fused, grid.recompute, ours);
    for (int i = 0; i < 2; ++i) fused.step(tokens, target);
    row.peak_rss_mb = peak_rss_mb();
    Side usual(config, model::ops::Path::plain, false, plain);
    for (int i = 0; i < 2; ++i) usual.step(tokens, target);
    Sgemm sgemm(1024);
    fused.seconds.clear();
    fused.optimizer_seconds.clear();
    usual.seconds.clear();
    std::vector<double> peak, ratio;
    for (int round = 0; round < grid.rounds; ++round) {
      fused.step(tokens, target);
      usual.step(tokens, target);
      const auto start = Clock::now();
      sgemm.run(grid.threads);
      peak.push_back(sgemm.flops() / 1e9 / seconds_since(start));
      ratio.push_back(usual.seconds.back() / fused.seconds.back());
    }
    const auto count = static_cast<double>(row.batch * row.sequence);
    row.tokens_per_s = count / median(fused.seconds);
    row.plain_tokens_per_s = count / median(usual.seconds);
    row.speedup = median(ratio);
    row.gflops = size_of(config, row.batch, row.sequence, false).flops_per_token * row.tokens_per_s / 1e9;
    row.sgemm_gflops = median(peak);
    row.fraction = row.gflops / row.sgemm_gflops;
    row.optimizer_fraction = median(fused.optimizer_seconds) / median(fused.seconds);
    done(row);
  }
}

}  // namespace cautious::bench
