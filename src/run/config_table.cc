// Every key of a run, in the order of its file. The keys of [model], [schedule] and the recipes are the fields of their types;
// a key of the run alone is a member (config.h) and a line here.
#include "run/config_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "run/config_section.h"

namespace cautious::run {
namespace {

constexpr std::array<std::string_view, 12> kSections{"model",    "data",  "lora", "augment",    "optimizer", "optimizer.rest",
                                                     "schedule", "train", "eval", "checkpoint", "log",       "objective"};
constexpr std::array<std::string_view, 3> kTextHorizon{"train.steps", "train.tokens", "train.tokens_per_param"};
constexpr std::array<std::string_view, 3> kImageHorizon{"train.steps", "train.epochs", "train.images"};
constexpr std::array<std::string_view, 2> kInstructHorizon{"train.steps", "train.epochs"};
constexpr std::array<std::string_view, 2> kWarmup{"schedule.warmup_steps", "schedule.warmup_ratio"};

std::span<const std::string_view> horizon_of(TaskKind task) {
  if (task == TaskKind::image) return kImageHorizon;
  if (task == TaskKind::instruct) return kInstructHorizon;
  return kTextHorizon;
}

constexpr Range kExamples{1, 1e6, false, false};

void set_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(recipe_names()));
  config.optimizer.recipe = base::with_context(std::string(what), [&] { return recipe_for(config.task, name); });
  config.optimizer.name = name;
}

void set_rest_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(rest_names()));
  base::with_context(std::string(what), [&] { start_rest(config, name); });
}

void add_optimizer(std::vector<Key>& keys, const RunConfig& config) {
  using O = RunConfig::Optimizer;
  Section optimizer(
      keys, config, "optimizer", [](auto& c) -> auto& { return c.optimizer; });
  Section options(
      keys, config, "optimizer", [](auto& c) -> auto& { return c.optimizer.options; });
  optimizer.add(
      Key{{"name", to_toml(config.optimizer.name), base::join(recipe_names()), "rule, with its usual decay"}, set_name});
  optimizer.add(Field{"lr", &O::lr, kPositive, "peak of the learning rate"});
  optimizer.add_recipe(&O::recipe);
  if (config.task != TaskKind::external) {  // there it is up to the program that trains
    options.add_only(Options::identity(), {"grad_clip", "update_rms_clip"});
    optimizer.add(Flag{"decay_vectors", &O::decay_vectors, "weight decay on norms and biases too"});
    options.add_only(Options::identity(), {"moments"});
  }
  optimizer.add(Text{"density_from", &O::density_from, "a run's directory",
                     "random decay: each tensor's density and budget are that run's"},
                Text{"budget_from", &O::budget_from, "a run's directory", "plain decay: each tensor's budget is that run's"});
}

void add_rest(std::vector<Key>& keys, const RunConfig& config) {
  using O = RunConfig::Optimizer;
  Section rest(
      keys, config, "optimizer.rest", [](auto& c) -> auto& { return c.optimizer; });
  rest.add(
      Key{{"name", to_toml(config.optimizer.rest_name), base::join(rest_names()), "rule for embedding, output and vectors"},
          set_rest_name});
  rest.add(Field{"lr_multiplier", &O::rest_lr_multiplier, kPositive, "factor on their learning rate"});
  rest.add_recipe(&O::rest);
}

void add_schedule(std::vector<Key>& keys, const RunConfig& config) {
  Section schedule(
      keys, config, "schedule", [](auto& c) -> auto& { return c.schedule; });
  schedule.add_all_but(Schedule::fields(), {"lr", "steps"});
  Section decay(
      keys, config, "schedule", [](auto& c) -> auto& { return c.decay_schedule; });
  decay.add_all_but(DecaySchedule::fields(), {"steps"}, "decay_");
}

void add_train(std::vector<Key>& keys, const RunConfig& config) {
  using T = RunConfig::Train;
  Section train(
      keys, config, "train", [](auto& c) -> auto& { return c.train; });
  const bool image = config.task == TaskKind::image;
  const Field seed{"seed", &T::seed, kEvery, "of initial weights, data order and random decay"};
  if (config.task == TaskKind::external) return train.add(seed);
  train.add(Field{"steps", &T::steps, kCount, "length of the run in steps; one of three ways"});
  if (image) {
    train.add(Field{"epochs", &T::epochs, Range{0, 1e9, true, false}, "length of the run in passes over the training images"},
              Field{"images", &T::images, kCount, "length of the run in images"});
  } else if (config.task == TaskKind::instruct) {
    train.add(Field{"epochs", &T::epochs, Range{0, 1e9, true, false}, "length of the run in passes over the conversations"});
  } else {
    train.add(Field{"tokens", &T::tokens, kCount, "length of the run in tokens"},
              Field{"tokens_per_param", &T::tokens_per_param, Range{0, 1e9, true, false},
                    "length of the run in tokens per parameter of the model"});
  }
  train.add(Field{"batch_size", &T::batch_size, kExamples,
                  image ? "images per step, over all grad_accum chunks" : "sequences per step, over all grad_accum chunks"},
            Field{"grad_accum", &T::grad_accum, kExamples, "chunks of a batch, one after another; divides batch_size"});
  if (!image) train.add(Field{"seq_len", &T::seq_len, Range{0, 1e9, false, false}, "tokens of a sequence; 0: model.context"});
  train.add(Field{"ema", &T::ema, kMomentum, "of an average of the weights, which is evaluated instead; 0: none"}, seed,
            Field{"threads", &T::threads, Range{0, 1024, false, false},
                  "of each rank; 0: as many as there are cores, shared by the ranks of a machine"},
            Field{"timeout", &T::timeout, Range{1, 1e6, false, false},
                  "seconds after which a rank that is not heard from, or does nothing, ends the run"},
            Text{"device", &T::device, "auto, cpu, cuda, cuda:N, lazy",
                 "auto: a GPU that is there; of several, the ranks of a machine have one each"},
            Choice{"precision", &T::precision,
                   "mixed: matrix products in bf16; bf16: weights too, and the optimizer keeps their other half"});
}

void add_records(std::vector<Key>& keys, const RunConfig& config) {
  using E = RunConfig::Eval;
  using C = RunConfig::Checkpoint;
  Section eval(
      keys, config, "eval", [](auto& c) -> auto& { return c.eval; });
  eval.add(Field{"every", &E::every, kEvery, "steps; 0: at the end only"});
  if (config.task == TaskKind::image) {
    eval.add(Field{"images", &E::images, kEvery, "of the validation data, the first; 0: all"});
  } else if (config.task == TaskKind::text) {
    eval.add(Field{"tokens", &E::tokens, kCount, "of the validation data, evenly spaced"});
  }
  if (config.task != TaskKind::image) {
    eval.add(Text{"tasks", &E::tasks, "hellaswag, mmlu:5, ...", "benchmarks that the trained model is asked, at the end"},
             Text{"data", &E::data, "a folder, a file or a known set", "of the benchmarks"},
             Field{"shots", &E::shots, Range{0, 1000, false, false}, "examples before each item; mmlu:5 has its own number"},
             Field{"limit", &E::limit, kEvery, "the first items of a benchmark, or of each of its subjects; 0: all"});
  }
  Section checkpoint(
      keys, config, "checkpoint", [](auto& c) -> auto& { return c.checkpoint; });
  checkpoint.add(Field{"every", &C::every, kEvery, "steps; 0: at the end only"},
                 Field{"minutes", &C::minutes, Range{0, 1e6, false, false},
                       "also when this many have passed since the last; 0: never by the clock"},
                 Field{"keep", &C::keep, kCount, "how many of the newest are kept"},
                 Flag{"best", &C::best, "also save and keep the one with the best validation, as checkpoints/best"});
}

void add_log(std::vector<Key>& keys, const RunConfig& config) {
  using L = RunConfig::Log;
  Section log(
      keys, config, "log", [](auto& c) -> auto& { return c.log; });
  const Flag trace{"decay_trace", &L::decay_trace, "what decayed in every step, for a control that repeats it"};
  if (config.task == TaskKind::external) return log.add(trace);
  log.add(Field{"every", &L::every, kCount, "steps per row of the metrics"},
          Flag{"tensors", &L::tensors, "also columns for every tensor"}, trace,
          Flag{"tensorboard", &L::tensorboard, "also as TensorBoard events"},
          Text{"command", &L::command, "a line for the shell", "also to the standard input of this program, as lines of JSON"});
  if (config.task == TaskKind::image) return;
  log.add(
      Text{"prompt", &L::prompt, "a text", "that the model continues after every evaluation, for metrics.jsonl and the report"},
      Field{"prompt_tokens", &L::prompt_tokens, kCount, "at most this many tokens are generated"});
}

void clear_rivals(RunConfig& config, std::string_view name) {
  if (std::ranges::find(kWarmup, name) == kWarmup.end()) {
    config.train.steps = config.train.tokens = config.train.images = 0;
    config.train.tokens_per_param = config.train.epochs = 0;
  } else {
    config.schedule.warmup_steps = 0;
    config.schedule.warmup_ratio = 0;
  }
}

// Of keys of which one decides, that one has a value: the one that is not zero, else the last. Setting one clears them all.
void make_rivals(std::vector<Key>& keys, std::span<const std::string_view> names) {
  const auto is_rival = [&](const Key& key) { return std::ranges::find(names, key.name) != names.end(); };
  const bool any = std::ranges::any_of(keys, [&](const Key& key) { return is_rival(key) && key.value != "0"; });
  for (Key& key : keys) {
    if (!is_rival(key)) continue;
    if (key.value == "0" && (any || key.name != names.back())) key.value.clear();
    key.set = [set = std::move(key.set), name = key.name](RunConfig& config, std::string_view what, const ConfigValue& given) {
      RunConfig changed = config;
      clear_rivals(changed, name);
      set(changed, what, given);
      config = std::move(changed);
    };
  }
}

}  // namespace

std::vector<Key> keys_of(const RunConfig& config) {
  std::vector<Key> keys;
  const bool external = config.task == TaskKind::external;
  add_task(keys, config);
  if (!external) {
    add_model(keys, config);
    add_data(keys, config);
    add_lora(keys, config);
  }
  add_optimizer(keys, config);
  if (works_on_matrices(config.optimizer.recipe.rule)) add_rest(keys, config);
  if (!external) add_schedule(keys, config);
  add_train(keys, config);
  external ? add_objective(keys, config) : add_records(keys, config);
  add_log(keys, config);
  make_rivals(keys, horizon_of(config.task));
  make_rivals(keys, kWarmup);
  return keys;
}

std::span<const std::string_view> config_sections() { return kSections; }

std::string_view section_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view without_section(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::span<const std::string_view> rivals_of(TaskKind task, std::string_view name) {
  const auto horizon = horizon_of(task);
  if (std::ranges::find(horizon, name) != horizon.end()) return horizon;
  if (std::ranges::find(kWarmup, name) != kWarmup.end()) return kWarmup;
  return {};
}

std::vector<ConfigKey> config_keys(const RunConfig& config) {
  const std::vector<Key> keys = keys_of(config);
  return {keys.begin(), keys.end()};
}

}  // namespace cautious::run
