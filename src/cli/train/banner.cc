// What the verbs of cautious-train share, and the banner of a run.
#include <algorithm>
#include <array>
#include <thread>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "bench/machine.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "run/checkpoint.h"
#include "run/config_table.h"
#include "run/provenance.h"
#include "run/scale.h"
#include "train/run.h"

namespace cautious::cli {
namespace {

// What the banner says of a model, whatever its task.
struct Described {
  std::string shape, parameters, batch;
  double flops_per_unit, parameter_bytes, activation_bytes;
  double reached;  // fraction of the matrix product's speed in a training step (docs/performance.md): small products reach less
};

double reached_at(std::int64_t width) { return width >= 256 ? 0.75 : width >= 128 ? 0.6 : 0.4; }

// Every digit, and in short where these are many.
std::string parameters_text(std::int64_t count) {
  return count < 1000000 ? fmt::format("{}", count)
                         : fmt::format("{} ({})", count, base::count_text(static_cast<double>(count)));
}

Described described_text(const run::RunConfig& config, std::int64_t chunk) {
  const model::ModelConfig& shape = config.model.shape;
  const std::int64_t sequence = run::sequence_length(config);
  const model::ModelSize size = size_of(shape, chunk, sequence, config.model.recompute);
  const bool adapted = config.lora.rank > 0;
  return {
      fmt::format("{} layers, width {}, {} heads of {}, hidden {}, vocabulary {}", shape.layers, shape.width, shape.heads,
                  shape.head_size, shape.hidden, shape.vocab),
      adapted
          ? fmt::format("{} frozen, {} in adapters of rank {}", size.parameters, run::parameters_of(config), config.lora.rank)
          : fmt::format("{}, {} of them in the embedding and the output", parameters_text(size.parameters), size.embedding),
      fmt::format("{} x {} tokens", config.train.batch_size, sequence),
      adapted ? size.flops_per_token * 2 / 3 : size.flops_per_token,
      run::parameter_bytes(config),
      static_cast<double>(size.activation_bytes),
      reached_at(shape.width)};
}

std::string shape_text(const model::VitConfig& vit) {
  return fmt::format("patches of {}, {} layers, width {}, {} heads, hidden {}", vit.patch, vit.layers, vit.width, vit.heads,
                     vit.hidden);
}

std::string shape_text(const model::ResNetConfig& resnet) {
  return fmt::format("stages of {} {} blocks, width {}", fmt::join(resnet.blocks, ", "), cautious::name_of(resnet.block),
                     resnet.width);
}

Described described_image(const run::RunConfig& config, std::int64_t chunk) {
  constexpr double kConvolutions = 0.6;
  const model::ImageModel& image = config.model.image;
  const model::ImageModelSize size = size_of(image, chunk);
  const auto* const vit = std::get_if<model::VitConfig>(&image);
  return {fmt::format("{} x {} x {} images, {}, {} classes", model::image_size(image), model::image_size(image),
                      model::channels(image), std::visit([](const auto& network) { return shape_text(network); }, image),
                      model::classes(image)),
          parameters_text(size.parameters),
          fmt::format("{} images", config.train.batch_size),
          size.flops_per_image,
          run::parameter_bytes(config),
          static_cast<double>(size.activation_bytes),
          vit ? reached_at(vit->width) : kConvolutions};
}

Described described(const run::RunConfig& config) {
  const std::int64_t chunk = config.train.batch_size / config.train.grad_accum;
  return config.task == run::TaskKind::image ? described_image(config, chunk) : described_text(config, chunk);
}

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

CLI::Option& add_seed(CLI::App& verb, std::uint64_t& seed, const std::string& help) {
  static constexpr Range kSeeds{0, 0x1p64, false, true};
  const auto read = [&seed](const std::string& text) { seed = base::to_unsigned("--seed", text, kSeeds); };
  return *verb.add_option_function<std::string>("--seed", read, help)->type_name("NUMBER");
}

Trained load_trained(const std::string& run) {
  const std::filesystem::path checkpoint = run::find_checkpoint(run), folder = run::tokenizer_beside(checkpoint);
  if (classifies_images(run)) {
    throw Error(Fault::data,
                fmt::format("{} is an image classifier, not a language model; for images: cautious predict {} IMAGE",
                            base::in_quotes(run), base::shell_word(run)));
  }
  Trained trained{checkpoint, data::Tokenizer::read(folder), model::load_model(checkpoint)};
  const std::int64_t vocab = trained.model->config().vocab;
  if (trained.tokenizer.vocab() > vocab) {
    throw Error(Fault::data, fmt::format("the tokenizer in {} has a vocabulary of {}, but the model has one of {}: it is not "
                                         "the tokenizer that the model was trained with",
                                         folder.string(), trained.tokenizer.vocab(), vocab));
  }
  return trained;
}

bool classifies_images(const std::string& run) {
  const std::filesystem::path checkpoint = run::find_checkpoint(run);
  if (!std::filesystem::is_directory(checkpoint)) return false;
  const auto text = base::read_file_if_any(checkpoint / "config.json");
  const auto json = base::parse_json(text.value_or(""));
  return json.is_object() && json.contains("architecture");  // timm's word; those of language models have architectures
}

TrainedClassifier load_trained_classifier(const std::string& run) {
  std::filesystem::path checkpoint = run::find_checkpoint(run);
  if (!classifies_images(run)) {
    throw Error(Fault::data, fmt::format("{} is not an image classifier; for text: cautious sample {} --prompt TEXT",
                                         base::in_quotes(run), base::shell_word(run)));
  }
  model::LoadedClassifier loaded = model::load_classifier(checkpoint);
  data::View view{model::image_size(loaded.described.model), {loaded.described.mean, loaded.described.deviation}};
  return {std::move(checkpoint), std::move(loaded.described), std::move(view), std::move(loaded.model)};
}

namespace {

// As parse_recipe() reads it: the decay, how much, and what differs from the defaults.
std::string optimizer_text(const run::RunConfig::Optimizer& optimizer) {
  Recipe usual = recipe(optimizer.name);
  set(usual, "decay", cautious::name_of(optimizer.recipe.decay));
  const std::vector<FieldInfo> defaults = fields(usual);
  std::vector<FieldInfo> told;
  for (const FieldInfo& field : fields(optimizer.recipe)) {
    const bool usual_value = std::ranges::find_if(defaults, [&](const FieldInfo& one) {
                               return one.name == field.name && one.value == field.value;
                             }) != defaults.end();
    if (!usual_value || field.name == "decay" || field.name == "weight_decay") told.push_back(field);
  }
  return fmt::format("{} {}", optimizer.name, base::to_line(told));
}

// What is kept in memory beside the activations: "parameters, gradients and one moment".
std::string kept_text(const run::RunConfig& config) {
  constexpr std::array<std::string_view, 3> kCounts{"", "one moment", "two moments"};
  const auto text = [&](const Recipe& recipe) { return kCounts[static_cast<std::size_t>(run::moments_of(recipe.rule))]; };
  const std::string_view own = text(config.optimizer.recipe), rest = text(config.optimizer.rest);
  if (run::moments_of(config.optimizer.recipe.rule) == 0) return "parameters and gradients";
  const bool two_rules = run::works_on_matrices(config.optimizer.recipe.rule) && rest != own;
  return fmt::format("parameters, gradients and {}{}", own, two_rules ? fmt::format(" ({} outside the matrices)", rest) : "");
}

// What is trained and how long, wherever that is.
std::vector<std::string> description(const run::RunConfig& config, const train::RunPlan* data) {
  const Described model = described(config);
  const std::string_view unit = run::unit_of(config.task), one = unit.substr(0, unit.size() - 1);
  const std::int64_t steps = steps_of(config), per_step = run::units_per_step(config);
  const double units = static_cast<double>(steps) * static_cast<double>(per_step);
  std::vector<std::string> lines;
  const std::string& start = config.model.from.empty() ? config.model.preset : config.model.from;
  lines.push_back(line("model", fmt::format("{}: {}", start, model.shape)));
  lines.push_back(line("parameters", model.parameters));
  if (data != nullptr) {
    lines.push_back(line("data", fmt::format("{} training {}, {} validation {}: {}", data->training, unit, data->validation,
                                             unit, data->split)));
    std::vector<std::string> shares;
    for (const auto& [name, fraction, tokens] : data->shares)
      shares.push_back(fmt::format("{:.3g}% of {} ({:.3g} epochs of its {} tokens)", 100 * fraction, name,
                                   fraction * units / static_cast<double>(tokens), tokens));
    if (!shares.empty()) lines.push_back(line("mixture", base::join(shares)));
  } else if (!config.data.path.empty()) {
    lines.push_back(line("data", base::join(config.data.path) + ": not read in this dry run"));
  }
  lines.push_back(line("optimizer", fmt::format("{} lr={} {}", optimizer_text(config.optimizer),
                                                base::to_text(config.optimizer.lr), cautious::name_of(config.schedule.kind))));
  lines.push_back(
      line("step", fmt::format("batch {}{}, {:.3g} FLOP per {}, {:.3g} FLOP per step", model.batch,
                               config.train.grad_accum > 1 ? fmt::format(" in {} chunks", config.train.grad_accum) : "",
                               model.flops_per_unit, one, model.flops_per_unit * static_cast<double>(per_step))));
  lines.push_back(line(
      unit, fmt::format("{} in {} steps, {:.3g} per parameter{}", base::count_text(units), steps,
                        units / static_cast<double>(run::parameters_of(config)),
                        data == nullptr ? "" : fmt::format(", {:.3g} epochs", units / static_cast<double>(data->training)))));
  return lines;
}

// What a run that does not fit would be told; empty: it fits.
std::string memory_advice(run::RunConfig config, double available) {
  const auto fits = [&] {
    const Described model = described(config);
    return model.parameter_bytes + model.activation_bytes <= available;
  };
  if (fits()) return "";
  for (std::int64_t& chunks = config.train.grad_accum; ++chunks <= config.train.batch_size;) {
    if (config.train.batch_size % chunks == 0 && fits()) return fmt::format("; does not fit: set train.grad_accum={}", chunks);
  }
  return "; does not fit, whatever train.grad_accum is: take a smaller model or train.seq_len, or model.recompute=true";
}

}  // namespace

std::vector<std::string> banner(const run::RunConfig& config, const train::RunPlan* data) {
  const Described model = described(config);
  const run::Provenance here = run::provenance();
  bench::Sgemm sgemm(1024);
  const double gflops = sgemm.gflops(config.train.threads);
  const double units = static_cast<double>(steps_of(config)) * static_cast<double>(run::units_per_step(config));
  const double seconds = units * model.flops_per_unit / (gflops * 1e9 * model.reached);
  const double available = base::memory_available();
  std::vector<std::string> lines = description(config, data);
  lines.push_back(
      line("memory", fmt::format("{} {}; {} activations{}; {} available{}", bytes(model.parameter_bytes), kept_text(config),
                                 bytes(model.activation_bytes), config.model.recompute ? " with recomputation" : "",
                                 bytes(available), memory_advice(config, available))));
  lines.push_back(
      line("machine", fmt::format("{}, {} of {} cores, {}", here.cpu, config.train.threads, here.cores, blas_text())));
  lines.push_back(line("time", fmt::format("about {}: {:.0f} GFLOP/s in matrix products, {:.0f}% of that in training",
                                           duration(seconds), gflops, 100 * model.reached)));
  return lines;
}

std::vector<std::string> on_paper(const run::RunConfig& config, int ranks, const std::string& hardware) {
  if (ranks < 1) throw Error(Fault::usage, fmt::format("--world is {}; it must be at least 1", ranks));
  const run::Hardware each = run::parse_hardware(hardware);
  const std::int64_t chunks = ranks * config.train.grad_accum;
  if (config.train.batch_size % chunks != 0) {
    throw Error(Fault::usage,
                fmt::format("train.batch_size {} cannot be divided among {} ranks with train.grad_accum {}; it must "
                            "be a multiple of {}",
                            config.train.batch_size, ranks, config.train.grad_accum, chunks));
  }
  const run::Load load = run::load_of(config, ranks);
  const run::StepCost cost = run::cost_of(load, each, ranks);
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); };
  const double units = static_cast<double>(run::units_per_step(config));
  std::vector<std::string> lines = description(config, nullptr);
  const std::vector<std::string> costs{
      line("on paper", fmt::format("{} x {}: {:.3g} FLOP/s at {:.0f}%, links {:.3g} GB/s, network {:.3g} GB/s, {:.0f} ranks "
                                   "a machine",
                                   ranks, each.label, each.peak, 100 * each.utilization, each.link / 1e9, each.network / 1e9,
                                   each.per_machine)),
      line("per rank",
           fmt::format("{} of {}: weights {}, gradients {}, state {} (1/{}), activations {}{}", bytes(cost.memory),
                       bytes(each.memory), bytes(load.parameters * load.weight_bytes),
                       bytes(load.parameters * load.gradient_bytes), bytes(load.parameters * load.state_bytes / ranks), ranks,
                       bytes(load.activation_bytes),
                       cost.memory > each.memory ? "; does not fit: raise train.grad_accum or set model.recompute=true" : "")),
      line("sent", fmt::format("{} a step and rank: gradients {}, parameters {}; {} not hidden", bytes(cost.sent),
                               milliseconds(cost.gradients), milliseconds(cost.parameters), milliseconds(cost.exposed))),
      line("a step", fmt::format("{}: {} computing, {} waiting, {} optimizer; {:.3g} {} per second", milliseconds(cost.step()),
                                 milliseconds(cost.compute), milliseconds(cost.exposed), milliseconds(cost.optimizer),
                                 units / cost.step(), run::unit_of(config.task))),
      line("time", duration(cost.step() * static_cast<double>(steps_of(config))))};
  lines.insert(lines.end(), costs.begin(), costs.end());
  return lines;
}

}  // namespace cautious::cli
