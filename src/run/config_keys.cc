#include "run/config_keys.h"

#include <algorithm>
#include <array>

#include "run/config_optimizer_keys.h"
#include "run/config_section.h"

namespace cautious::run {
namespace {

constexpr std::array<std::string_view, 9> kSections{"model", "data",       "optimizer", "optimizer.rest", "schedule", "train",
                                                    "eval",  "checkpoint", "log"};
constexpr std::array<std::string_view, 3> kHorizon{"train.steps", "train.tokens", "train.tokens_per_param"};
constexpr std::array<std::string_view, 2> kWarmup{"schedule.warmup_steps", "schedule.warmup_ratio"};

constexpr WholeRange kCount{1, WholeRange::kUnlimited};
constexpr WholeRange kEvery{0, WholeRange::kUnlimited};
constexpr WholeRange kSize{1, 1000000000};

void clear_horizon(RunConfig& config) {
  config.train.steps = config.train.tokens = 0;
  config.train.tokens_per_param = 0;
}

void clear_warmup(RunConfig& config) {
  config.schedule.warmup_steps = 0;
  config.schedule.warmup_ratio = 0;
}

void add_shape(std::vector<Key>& keys, const RunConfig& config) {
  using M = model::ModelConfig;
  Section model(
      keys, config, "model", [](auto& c) -> auto& { return c.model.shape; });
  model.add("vocab", &M::vocab, kSize, "number of tokens; the tokenizer's must fit into it");
  model.add("width", &M::width, kSize, "of the residual stream");
  model.add("layers", &M::layers, WholeRange{1, 10000}, "number of layers");
  model.add("heads", &M::heads, kSize, "attention heads");
  model.add("kv_heads", &M::kv_heads, kSize, "heads of keys and values; divides heads");
  model.add("head_size", &M::head_size, kSize, "entries of one head; even with rotary positions");
  model.add("hidden", &M::hidden, kSize, "width of the gated feed-forward part");
  model.add("context", &M::context, kSize, "tokens that it is meant for");
  model.add("norm", &M::norm, "kind of normalization; rms-offset stores the scale minus 1");
  model.add("post_norm", &M::post_norm, "a norm after each sub-layer too");
  model.add("qk_norm", &M::qk_norm, "a norm of each head's query and key");
  model.add("query_scale", &M::query_scale, "a learned factor per dimension of a head");
  model.add("ffn_bias", &M::ffn_bias, "biases in the feed-forward part");
  model.add("output_bias", &M::output_bias, "a bias of the output");
  model.add("tied", &M::tied, "the output matrix is the embedding");
  model.add("activation", &M::activation, "of the feed-forward part's gate");
  model.add("rope_base", &M::rope_base, kNonnegative, "of rotary positions; 0: none");
  model.add("attention_softcap", &M::attention_softcap, kNonnegative, "bound of the attention scores; 0: none");
  model.add("logit_softcap", &M::logit_softcap, kNonnegative, "bound of the logits; 0: none");
  model.add("norm_eps", &M::norm_eps, {0, 1, true, true}, "added to a norm's mean square");
  model.add("init", &M::init, "distribution of the initial weights");
}

void add_model(std::vector<Key>& keys, const RunConfig& config) {
  Section model(
      keys, config, "model", [](auto& c) -> auto& { return c.model; });
  const std::string valid = base::join(model::preset_names());
  model.add("preset", to_toml(std::string_view(config.model.preset)), valid, "where the keys below start",
            [valid](RunConfig& c, std::string_view what, const ConfigValue& given) {
              const std::string name = to_word(what, given, valid);
              c.model.shape = told_of(what, [&] { return model::preset(name); });
              c.model.preset = name;
            });
  model.add("recompute", &RunConfig::Model::recompute, "activations again in the backward pass: slower, less memory");
  add_shape(keys, config);
}

void add_data(std::vector<Key>& keys, const RunConfig& config) {
  using D = RunConfig::Data;
  Section data(
      keys, config, "data", [](auto& c) -> auto& { return c.data; });
  data.add("path", &D::path, "files or folders", "what to train on");
  data.add("val_path", &D::val_path, "files or folders", "what to validate on; none: a part of path");
  data.add("val_fraction", &D::val_fraction, {0, 0.5, true, false}, "that part");
  data.add("tokenizer", &D::tokenizer, "bytes, or a path", "how text becomes tokens");
  data.add("cache", &D::cache, "a folder", "of tokenized data; empty: the user's cache folder");
}

void add_schedule(std::vector<Key>& keys, const RunConfig& config) {
  using S = RunConfig::Schedule;
  Section schedule(
      keys, config, "schedule", [](auto& c) -> auto& { return c.schedule; });
  const bool in_steps = config.schedule.warmup_steps > 0;
  schedule.add("kind", &S::kind, "learning rate after the warmup");
  schedule.add("warmup_steps", &S::warmup_steps, kEvery, "warmup in steps, instead of warmup_ratio");
  schedule.rival(in_steps, clear_warmup);
  schedule.add("warmup_ratio", &S::warmup_ratio, kFraction, "warmup as a part of the run, instead of warmup_steps");
  schedule.rival(!in_steps, clear_warmup);
  schedule.add("final", &S::final, kFraction, "last learning rate, as a part of the peak");
  schedule.add("cooldown", &S::cooldown, kFraction, "wsd: part of the run at its end");
  schedule.add("cooldown_curve", &S::cooldown_curve, "wsd: how the learning rate falls");
  schedule.add("decay_curve", &S::decay_curve, "how the weight decay changes over the run");
  schedule.add("decay_final", &S::decay_final, kNonnegative, "last factor on the weight decay, unless its curve is constant");
}

void add_train(std::vector<Key>& keys, const RunConfig& config) {
  using T = RunConfig::Train;
  Section train(
      keys, config, "train", [](auto& c) -> auto& { return c.train; });
  train.add("steps", &T::steps, kCount, "length of the run in steps; one of three ways");
  train.rival(config.train.steps > 0, clear_horizon);
  train.add("tokens", &T::tokens, kCount, "length of the run in tokens");
  train.rival(config.train.tokens > 0, clear_horizon);
  train.add("tokens_per_param", &T::tokens_per_param, {0, 1e9, true, false},
            "length of the run in tokens per parameter of the model");
  train.rival(config.train.tokens_per_param > 0, clear_horizon);
  train.add("batch_size", &T::batch_size, WholeRange{1, 1000000}, "sequences per step, over all grad_accum parts");
  train.add("grad_accum", &T::grad_accum, WholeRange{1, 1000000}, "parts of a batch, one after another; divides batch_size");
  train.add("seq_len", &T::seq_len, WholeRange{0, kSize.high}, "tokens of a sequence; 0: model.context");
  train.add("seed", &T::seed, kEvery, "of initial weights, data order and random decay");
  train.add("threads", &T::threads, WholeRange{0, 1024}, "0: as many as there are cores");
}

void add_records(std::vector<Key>& keys, const RunConfig& config) {
  Section eval(
      keys, config, "eval", [](auto& c) -> auto& { return c.eval; });
  eval.add("every", &RunConfig::Eval::every, kEvery, "steps; 0: at the end only");
  eval.add("tokens", &RunConfig::Eval::tokens, kCount, "of the validation data, evenly spaced");
  Section checkpoint(
      keys, config, "checkpoint", [](auto& c) -> auto& { return c.checkpoint; });
  checkpoint.add("every", &RunConfig::Checkpoint::every, kEvery, "steps; 0: at the end only");
  checkpoint.add("keep", &RunConfig::Checkpoint::keep, kCount, "the newest that stay");
  Section log(
      keys, config, "log", [](auto& c) -> auto& { return c.log; });
  log.add("every", &RunConfig::Log::every, kCount, "steps per row of the metrics");
  log.add("tensors", &RunConfig::Log::tensors, "also columns for every tensor");
  log.add("decay_trace", &RunConfig::Log::decay_trace, "what decayed in every step, for a run that follows this one");
  log.add("tensorboard", &RunConfig::Log::tensorboard, "also as TensorBoard events");
}

}  // namespace

std::vector<Key> keys_of(const RunConfig& config) {
  std::vector<Key> keys;
  add_model(keys, config);
  add_data(keys, config);
  add_optimizer(keys, config);
  add_schedule(keys, config);
  add_train(keys, config);
  add_records(keys, config);
  return keys;
}

std::span<const std::string_view> config_sections() { return kSections; }

std::string_view section_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view without_section(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::span<const std::string_view> rivals_of(std::string_view name) {
  if (std::find(kHorizon.begin(), kHorizon.end(), name) != kHorizon.end()) return kHorizon;
  if (std::find(kWarmup.begin(), kWarmup.end(), name) != kWarmup.end()) return kWarmup;
  return {};
}

std::vector<ConfigKey> config_keys(const RunConfig& config) {
  const std::vector<Key> keys = keys_of(config);
  return {keys.begin(), keys.end()};
}

}  // namespace cautious::run
