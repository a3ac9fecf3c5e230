// Before a run begins: the ranks agree, the memory suffices, the data fits the model.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "run/checkpoint.h"
#include "train/trainer.h"

namespace cautious::train {
namespace {

std::vector<std::string> tensor_names(const run::RunConfig& config) {
  std::vector<std::string> names;
  for (const model::Shape& shape : run::parameter_shapes(config)) names.push_back(shape.name);
  return names;
}

// Parameters, gradients, moments and the activations of one chunk of a step, in bytes.
double memory_needed(const run::RunConfig& config, const ranks::World& world) {
  const std::int64_t chunk = rows_of(config, world).chunk;
  if (config.task == run::TaskKind::image) {
    const model::ImageModelSize size = size_of(config.model.image, chunk);
    return run::parameter_bytes(config) + static_cast<double>(size.activation_bytes);
  }
  const model::ModelSize size = size_of(config.model.shape, chunk, run::sequence_length(config), config.model.recompute);
  return run::parameter_bytes(config) + static_cast<double>(size.activation_bytes);
}

void check_memory(const run::RunConfig& config, const ranks::World& world) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const double needed = memory_needed(config, world), available = base::memory_available();
  if (needed <= available) return;
  const bool image = config.task == run::TaskKind::image;
  throw Error(
      Fault::usage,
      fmt::format(
          "train.batch_size {} in {} chunk{}{} needs about {:.1f} GiB, but {:.1f} GiB are available; raise "
          "train.grad_accum, {}",
          config.train.batch_size, config.train.grad_accum, config.train.grad_accum == 1 ? "" : "s",
          image ? "" : fmt::format(" of {} tokens", run::sequence_length(config)), needed / kGiB, available / kGiB,
          image ? "or lower train.batch_size" : "set model.recompute=true, or lower train.batch_size or train.seq_len"));
}

void check_continued(const RunRequest& request) {
  if (!request.resume) return;
  const auto saved = run::list_checkpoints(request.out / "checkpoints");
  const std::int64_t steps = steps_of(request.config);
  if (saved.empty() && says_done(request.out / "summary.json")) {
    throw Error(Fault::data, fmt::format("{}: the run has ended, and its checkpoints are gone: there is nothing to continue; "
                                         "start a new one with another --out",
                                         request.out.string()));
  }
  if (saved.empty() || saved.back().step <= steps) return;
  throw Error(Fault::usage, fmt::format("the run would end after step {}, but step {} is done; give a longer one, as in: "
                                        "--change train.steps={}",
                                        steps, saved.back().step, saved.back().step));
}

// What the task is made from: when a run continues, weights and tokenizer are those of its checkpoint, and the model that it
// started from is not needed, except under adapters.
run::RunConfig with_checkpoint(const RunRequest& request) {
  run::RunConfig config = request.config;
  if (!request.resume || config.model.from.empty() || config.lora.rank > 0) return config;
  const auto saved = run::list_checkpoints(request.out / "checkpoints");
  if (saved.empty()) return config;
  config.model.from.clear();
  config.data.tokenizer = (saved.back().path / "tokenizer.json").string();
  return config;
}

// All ranks run the same program on the same configuration; only the number of threads may differ.
void agree_on(const run::RunConfig& config, ranks::World& world) {
  if (world.ranks() == 1) return;
  world.agree("program", base::sha256_of_file("/proc/self/exe"));
  run::RunConfig shared = config;
  shared.train.threads = 0;
  world.agree("configuration", to_toml(shared));
}

}  // namespace

void check_ranks(const run::RunConfig& config, int ranks) {
  const std::int64_t chunks = ranks * config.train.grad_accum;
  if (config.train.batch_size % chunks == 0) return;
  throw Error(
      Fault::usage,
      fmt::format("train.batch_size {} cannot be divided among {} ranks with train.grad_accum {}; it must be a multiple of {}",
                  config.train.batch_size, ranks, config.train.grad_accum, chunks),
      {"train.batch_size", ""});
}

std::unique_ptr<Task> make_task(const run::RunConfig& config, ranks::World& world, const Progress& progress) {
  return config.task == run::TaskKind::image ? make_image_task(config, world, progress)
                                             : make_text_task(config, world, progress);
}

RunPlan plan_of_data(const RunRequest& request, const Progress& progress) {
  const run::RunConfig config = with_checkpoint(request);
  return config.task == run::TaskKind::image ? plan_of_images(config, progress) : plan_of_text(config, progress);
}

void check_request(const RunRequest& request) {
  const run::RunConfig& config = request.config;
  check_continued(request);
  reference_run(config, tensor_names(config));
  if (!request.resume) return;
  const auto saved = run::list_checkpoints(request.out / "checkpoints");
  if (saved.empty()) return;
  (void)changes_since(run::read_state(saved.back(), config.task, steps_of(config)), config, request.changed);
}

std::unique_ptr<Task> prepare(const RunRequest& request, const RunWatch& watch, ranks::World& world) {
  const run::RunConfig& config = request.config;
  at::set_num_threads(config.train.threads);
  agree_on(config, world);
  if (world.first()) check_continued(request);
  check_memory(config, world);
  std::unique_ptr<Task> task;
  world.in_turn("data", [&] {
    task = make_task(with_checkpoint(request), world, [&](const std::string& what, double fraction) {
      watch.preparing();
      watch.live.show_fraction(fraction, what);
    });
  });
  watch.live.finish();
  reference_run(config, tensor_names(config));
  return task;
}

}  // namespace cautious::train
