// cautious train: for now what a preset would cost, from its numbers and the measured speed of the machine.
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "bench/sgemm.h"
#include "cli/engine/verbs.h"
#include "cli/engine_verbs.h"
#include "recipe/names.h"
#include "train/models/config.h"

namespace cautious::cli {
namespace {

struct TrainArguments {
  std::string preset;
  bool dry_run = false, recompute = false;
  std::int64_t batch = 8, sequence = 0;
  double tokens_per_param = 20;
};

// Part of the matrix product's speed that a training step reaches (docs/performance.md).
constexpr double kReached = 0.65;

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

int dry_run(const TrainArguments& args) {
  const ModelConfig config = preset(args.preset);
  const std::int64_t sequence = args.sequence > 0 ? args.sequence : config.context;
  const ModelSize size = size_of(config, args.batch, sequence, args.recompute);
  const auto parameters = static_cast<double>(size.parameters);
  const double tokens = args.tokens_per_param * parameters;
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  bench::Sgemm sgemm(1024);
  const double gflops = sgemm.gflops(threads);
  const double seconds = tokens * size.flops_per_token / (gflops * 1e9 * kReached);
  fmt::print("preset       {}: {} layers, width {}, {} heads of {}, hidden {}, vocabulary {}\n", args.preset, config.layers,
             config.width, config.heads, config.head_size, config.hidden, config.vocab);
  fmt::print("parameters   {} ({} of them embedding and output)\n", size.parameters, size.embedding);
  fmt::print("step         batch {} x {} tokens, {:.3g} FLOP per token, {:.3g} FLOP per step\n", args.batch, sequence,
             size.flops_per_token, size.flops_per_token * static_cast<double>(args.batch * sequence));
  fmt::print("memory       {} parameters, gradients and two moments; {} activations{}\n",
             bytes(static_cast<double>(size.parameter_bytes)), bytes(static_cast<double>(size.activation_bytes)),
             args.recompute ? " with recomputation" : "");
  fmt::print("tokens       {:.3g} at {} per parameter, {:.0f} steps\n", tokens, to_text(args.tokens_per_param),
             tokens / static_cast<double>(args.batch * sequence));
  fmt::print("time         about {} here: {:.0f} GFLOP/s of matrix products on {} threads, {:.0f}% of it in training\n",
             duration(seconds), gflops, threads, 100 * kReached);
  return 0;
}

int run(const TrainArguments& args) {
  constexpr Range kCount{1, 1e9, false, false};
  check_range("--batch", static_cast<double>(args.batch), kCount);
  if (args.sequence != 0) check_range("--sequence", static_cast<double>(args.sequence), kCount);
  check_range("--tokens_per_param", args.tokens_per_param, kPositive);
  if (!args.dry_run)
    throw Error(Fault::usage, "training itself is not there yet; give --dry-run to see what a preset would cost");
  return dry_run(args);
}

}  // namespace

void add_train(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<TrainArguments>();
  CLI::App& verb = *app.add_subcommand("train", kTrainLine);
  verb.footer(
      "  cautious train --preset gemma-2.3b --dry-run\n"
      "  cautious train --preset nano-10m --dry-run --batch 16 --sequence 256");
  verb.add_option("--preset", args->preset, "Model: " + join(preset_names()))->required()->type_name("NAME");
  verb.add_flag("--dry-run", args->dry_run, "Print sizes, operations, memory and time; nothing is allocated or written");
  verb.add_option("--batch", args->batch, "Sequences per step; valid: [1, 1e9] (default: 8)")->type_name("NUMBER");
  verb.add_option("--sequence", args->sequence, "Tokens per sequence (default: the preset's context)")->type_name("NUMBER");
  verb.add_option("--tokens_per_param", args->tokens_per_param, "Length of the run (default: 20)")->type_name("NUMBER");
  verb.add_flag("--recompute", args->recompute, "Keep one activation per layer and compute the others again");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
