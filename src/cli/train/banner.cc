// What the verbs of cautious-train share, and the banner of a run.
#include <algorithm>
#include <thread>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "bench/machine.h"
#include "cli/train/train.h"
#include "linear/blas.h"
#include "run/checkpoint.h"
#include "run/provenance.h"
#include "train/run.h"

namespace cautious::cli {
namespace {

// Fraction of the matrix product's speed that a training step reaches (docs/performance.md): small products reach less.
double reached(const model::ModelConfig& config) { return config.width >= 256 ? 0.75 : config.width >= 128 ? 0.6 : 0.4; }

std::string bytes(double count) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return count >= kGiB ? fmt::format("{:.1f} GiB", count / kGiB) : fmt::format("{:.1f} MiB", count / (1024.0 * 1024));
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 2 * 86400.0) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds < 2 * 365 * 86400.0) return fmt::format("{:.0f} days", seconds / 86400);
  return fmt::format("{:.1f} years", seconds / (365 * 86400.0));
}

std::string line(std::string_view label, const std::string& text) { return fmt::format("{:<12} {}", label, text); }

}  // namespace

int use_threads(int wanted) {
  base::check_range("--threads", wanted, {0, 1024, false, false});
  const int threads = wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  at::set_num_threads(threads);
  return threads;
}

Trained load_trained(const std::string& run) {
  const std::filesystem::path checkpoint = run::find_checkpoint(run), tokenizer = checkpoint / "tokenizer.json";
  Trained trained{checkpoint, data::Tokenizer::read(tokenizer), model::load_model(checkpoint)};
  const std::int64_t vocab = trained.model->config().vocab;
  if (trained.tokenizer.vocab() > vocab) {
    throw Error(Fault::data, fmt::format("{} has a vocabulary of {}, but the model next to it has one of {}: it is not the "
                                         "tokenizer that the model was trained with",
                                         tokenizer.string(), trained.tokenizer.vocab(), vocab));
  }
  return trained;
}

std::vector<std::string> banner(const run::RunConfig& config, const train::RunPlan* data) {
  const model::ModelConfig& shape = config.model.shape;
  const std::int64_t sequence = run::sequence_length(config), chunk = config.train.batch_size / config.train.grad_accum;
  const model::ModelSize size = size_of(shape, chunk, sequence, config.model.recompute);
  const std::int64_t steps = steps_of(config), per_step = config.train.batch_size * sequence;
  const double tokens = static_cast<double>(steps) * static_cast<double>(per_step);
  const run::Provenance here = run::provenance();
  bench::Sgemm sgemm(1024);
  const double gflops = sgemm.gflops(config.train.threads);
  const double seconds = tokens * size.flops_per_token / (gflops * 1e9 * reached(shape));
  std::vector<std::string> lines;
  lines.push_back(
      line("model", fmt::format("{}: {} layers, width {}, {} heads of {}, hidden {}, vocabulary {}", config.model.preset,
                                shape.layers, shape.width, shape.heads, shape.head_size, shape.hidden, shape.vocab)));
  lines.push_back(
      line("parameters", fmt::format("{}, {} of them in the embedding and the output", size.parameters, size.embedding)));
  if (data != nullptr) {
    lines.push_back(line("data", fmt::format("{} training tokens, {} validation tokens: {}", data->train_tokens,
                                             data->validation_tokens, data->split)));
  }
  lines.push_back(line("optimizer", fmt::format("{} lr={} {}", to_string(config.optimizer.recipe),
                                                base::to_text(config.optimizer.lr), cautious::name_of(config.schedule.kind))));
  lines.push_back(line(
      "step", fmt::format("batch {} x {} tokens{}, {:.3g} FLOP per token, {:.3g} FLOP per step", config.train.batch_size,
                          sequence, config.train.grad_accum > 1 ? fmt::format(" in {} chunks", config.train.grad_accum) : "",
                          size.flops_per_token, size.flops_per_token * static_cast<double>(per_step))));
  lines.push_back(line(
      "tokens",
      fmt::format("{:.3g} in {} steps, {:.3g} per parameter{}", tokens, steps, tokens / static_cast<double>(size.parameters),
                  data == nullptr ? "" : fmt::format(", {:.3g} epochs", tokens / static_cast<double>(data->train_tokens)))));
  lines.push_back(line(
      "memory", fmt::format("{} parameters, gradients and two moments; {} activations{}; {} available",
                            bytes(static_cast<double>(size.parameter_bytes)), bytes(static_cast<double>(size.activation_bytes)),
                            config.model.recompute ? " with recomputation" : "", bytes(train::memory_available()))));
  lines.push_back(
      line("machine", fmt::format("{}, {} of {} cores, {}", here.cpu, config.train.threads, here.cores, linear::blas_name())));
  lines.push_back(line("time", fmt::format("about {}: {:.0f} GFLOP/s in matrix products, {:.0f}% of that in training",
                                           duration(seconds), gflops, 100 * reached(shape))));
  return lines;
}

}  // namespace cautious::cli
