// Every key of a run, in the order of its file. The keys of [model], [schedule] and the recipes are the fields of their types;
// a key of the run alone is a member (config.h) and a line here.
#include "run/config_table.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/fields.h"
#include "base/text.h"

namespace cautious::run {
namespace {

constexpr std::array<std::string_view, 9> kSections{"model", "data",       "optimizer", "optimizer.rest", "schedule", "train",
                                                    "eval",  "checkpoint", "log"};
constexpr std::array<std::string_view, 3> kHorizon{"train.steps", "train.tokens", "train.tokens_per_param"};
constexpr std::array<std::string_view, 2> kWarmup{"schedule.warmup_steps", "schedule.warmup_ratio"};

constexpr Range kCount{1, 0x1p63, false, true};
constexpr Range kEvery{0, 0x1p63, false, true};
constexpr Range kSequences{1, 1e6, false, false};

// A text or a list of texts as a field.
template <class Owner, class Value>
struct Text {
  std::string_view name;
  Value Owner::*member;  // std::string or std::vector<std::string>
  std::string_view valid, help;
};
template <class Owner, class Value>
Text(std::string_view, Value Owner::*, std::string_view, std::string_view) -> Text<Owner, Value>;

using Set = std::function<void(RunConfig&, std::string_view what, const ConfigValue&)>;

std::string toml_of(const FieldInfo& field) {
  if (field.kind == FieldKind::numbers) return fmt::format("[{}]", field.value);
  return field.kind == FieldKind::choice ? to_toml(std::string_view(field.value)) : field.value;
}

// The value as set() takes it for the field.
std::string text_for(const FieldInfo& field, std::string_view what, const ConfigValue& given) {
  if (field.kind == FieldKind::choice) return to_word(what, given, field.valid);
  if (field.kind == FieldKind::flag) return to_boolean(what, given) ? "true" : "false";
  return to_numeric_text(what, given, field.valid);
}

// A field as a key without its section and without a way to set it.
template <class Owner, class Any>
Key key_of(const Owner& owner, const Any& field) {
  const FieldInfo info = base::fields::info(owner, field);
  return {{info.name, toml_of(info), info.valid, info.help}};
}
template <class Owner, class Value>
Key key_of(const Owner& owner, const Text<Owner, Value>& field) {
  return {{std::string(field.name), to_toml(owner.*field.member), std::string(field.valid), std::string(field.help)}};
}

// One assign() per kind of field.
template <class Owner, class Value>
void assign(Owner& owner, const Field<Owner, Value>& field, std::string_view what, const ConfigValue& given) {
  if constexpr (std::is_integral_v<Value>) {
    owner.*field.member = static_cast<Value>(to_whole(what, given, field.range));
  } else {
    owner.*field.member = to_number(what, given, field.range);
  }
}
template <class Owner, class Enum>
void assign(Owner& owner, const Choice<Owner, Enum>& field, std::string_view what, const ConfigValue& given) {
  const std::string word = to_word(what, given, base::join(base::fields::choices_of(field)));
  base::with_context(std::string(what), [&] { base::fields::assign(owner, field, field.name, word); });
}
template <class Owner>
void assign(Owner& owner, const Flag<Owner>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_boolean(what, given);
}
template <class Owner>
void assign(Owner& owner, const Text<Owner, std::string>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_word(what, given, field.valid);
}
template <class Owner>
void assign(Owner& owner, const Text<Owner, std::vector<std::string>>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_words(what, given);
}

// Adds keys to a section; Find takes a RunConfig, const or not, to the owner of the members.
template <class Find>
class Section {
 public:
  Section(std::vector<Key>& keys, const RunConfig& config, std::string name, Find find)
      : keys_(keys), config_(config), name_(std::move(name)), find_(find) {}

  template <class... Any>
  void add(const Any&... field) {
    (add_one("", field), ...);
  }

  // Of the type's own fields those that the names choose.
  template <class... Any>
  void add_only(const std::tuple<Any...>& fields, std::initializer_list<std::string_view> names) {
    each(fields, [&](const auto& field) {
      if (std::ranges::find(names, field.name) != names.end()) add_one("", field);
    });
  }
  template <class... Any>
  void add_all_but(const std::tuple<Any...>& fields, std::initializer_list<std::string_view> names,
                   std::string_view prefix = "") {
    each(fields, [&](const auto& field) {
      if (std::ranges::find(names, field.name) == names.end()) add_one(prefix, field);
    });
  }

  // A key with a way of its own.
  void add(Key key) {
    key.name = fmt::format("{}.{}", name_, key.name);
    keys_.push_back(std::move(key));
  }

  // Every field of the recipe, which depend on its rule and its decay.
  template <class Owner>
  void add_recipe(Recipe Owner::*member) {
    for (const FieldInfo& field : fields(find_(config_).*member)) {
      const Set set_field = [find = find_, member, field](RunConfig& c, std::string_view what, const ConfigValue& given) {
        const std::string text = text_for(field, what, given);
        base::with_context(std::string(what), [&] { set(find(c).*member, field.name, text); });
      };
      add(Key{{field.name, toml_of(field), field.valid, field.help}, set_field});
    }
  }

 private:
  template <class... Any, class Call>
  static void each(const std::tuple<Any...>& fields, const Call& call) {
    std::apply([&](const auto&... field) { (call(field), ...); }, fields);
  }

  template <class Any>
  void add_one(std::string_view prefix, const Any& field) {
    Key key = key_of(find_(config_), field);
    key.name.insert(0, prefix);
    key.set = [find = find_, field](RunConfig& config, std::string_view what, const ConfigValue& given) {
      assign(find(config), field, what, given);
    };
    add(std::move(key));
  }

  std::vector<Key>& keys_;
  const RunConfig& config_;
  std::string name_;
  Find find_;
};

void set_preset(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(model::preset_names()));
  config.model.shape = base::with_context(std::string(what), [&] { return model::preset(name); });
  config.model.preset = name;
}

void set_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(recipe_names()));
  config.optimizer.recipe = base::with_context(std::string(what), [&] { return recipe(name); });
  config.optimizer.name = name;
}

void set_rest_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(rest_names()));
  base::with_context(std::string(what), [&] { start_rest(config.optimizer, name); });
}

void add_model(std::vector<Key>& keys, const RunConfig& config) {
  using M = RunConfig::Model;
  Section model(
      keys, config, "model", [](auto& c) -> auto& { return c.model; });
  model.add(Key{{"preset", to_toml(config.model.preset), base::join(model::preset_names()), "where the keys below start"},
                set_preset});
  model.add(Flag{"recompute", &M::recompute, "activations again in the backward pass: slower, less memory"});
  Section shape(
      keys, config, "model", [](auto& c) -> auto& { return c.model.shape; });
  shape.add_all_but(model::ModelConfig::fields(), {});
}

void add_data(std::vector<Key>& keys, const RunConfig& config) {
  using D = RunConfig::Data;
  Section data(
      keys, config, "data", [](auto& c) -> auto& { return c.data; });
  data.add(Text{"path", &D::path, "files or folders", "what to train on"},
           Text{"val_path", &D::val_path, "files or folders", "what to validate on; none: the end of path"},
           Field{"val_fraction", &D::val_fraction, Range{0, 0.5, true, false}, "that end, as a fraction of its tokens"},
           Field{"train_tokens", &D::train_tokens, kEvery, "train on the first this many tokens only; 0: all"},
           Text{"tokenizer", &D::tokenizer, "bytes, or a path", "how text becomes tokens"},
           Text{"cache", &D::cache, "a folder", "of tokenized data; empty: the user's cache folder"});
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
  options.add_only(Options::identity(), {"grad_clip", "update_rms_clip"});
  optimizer.add(Flag{"decay_vectors", &O::decay_vectors, "weight decay on norms and biases too"});
  options.add_only(Options::identity(), {"moments"});
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
  train.add(Field{"steps", &T::steps, kCount, "length of the run in steps; one of three ways"},
            Field{"tokens", &T::tokens, kCount, "length of the run in tokens"},
            Field{"tokens_per_param", &T::tokens_per_param, Range{0, 1e9, true, false},
                  "length of the run in tokens per parameter of the model"},
            Field{"batch_size", &T::batch_size, kSequences, "sequences per step, over all grad_accum chunks"},
            Field{"grad_accum", &T::grad_accum, kSequences, "chunks of a batch, one after another; divides batch_size"},
            Field{"seq_len", &T::seq_len, Range{0, 1e9, false, false}, "tokens of a sequence; 0: model.context"},
            Field{"seed", &T::seed, kEvery, "of initial weights, data order and random decay"},
            Field{"threads", &T::threads, Range{0, 1024, false, false}, "0: as many as there are cores"});
}

void add_records(std::vector<Key>& keys, const RunConfig& config) {
  using E = RunConfig::Eval;
  using C = RunConfig::Checkpoint;
  using L = RunConfig::Log;
  Section eval(
      keys, config, "eval", [](auto& c) -> auto& { return c.eval; });
  eval.add(Field{"every", &E::every, kEvery, "steps; 0: at the end only"},
           Field{"tokens", &E::tokens, kCount, "of the validation data, evenly spaced"});
  Section checkpoint(
      keys, config, "checkpoint", [](auto& c) -> auto& { return c.checkpoint; });
  checkpoint.add(Field{"every", &C::every, kEvery, "steps; 0: at the end only"},
                 Field{"keep", &C::keep, kCount, "how many of the newest are kept"});
  Section log(
      keys, config, "log", [](auto& c) -> auto& { return c.log; });
  log.add(Field{"every", &L::every, kCount, "steps per row of the metrics"},
          Flag{"tensors", &L::tensors, "also columns for every tensor"},
          Flag{"decay_trace", &L::decay_trace, "what decayed in every step, for a control that repeats it"},
          Flag{"tensorboard", &L::tensorboard, "also as TensorBoard events"});
}

void clear_rivals(RunConfig& config, std::string_view name) {
  if (std::ranges::find(kHorizon, name) != kHorizon.end()) {
    config.train.steps = config.train.tokens = 0;
    config.train.tokens_per_param = 0;
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
  add_model(keys, config);
  add_data(keys, config);
  add_optimizer(keys, config);
  if (works_on_matrices(config.optimizer.recipe.rule)) add_rest(keys, config);
  add_schedule(keys, config);
  add_train(keys, config);
  add_records(keys, config);
  make_rivals(keys, kHorizon);
  make_rivals(keys, kWarmup);
  return keys;
}

std::span<const std::string_view> config_sections() { return kSections; }

std::string_view section_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view without_section(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::span<const std::string_view> rivals_of(std::string_view name) {
  if (std::ranges::find(kHorizon, name) != kHorizon.end()) return kHorizon;
  if (std::ranges::find(kWarmup, name) != kWarmup.end()) return kWarmup;
  return {};
}

std::vector<ConfigKey> config_keys(const RunConfig& config) {
  const std::vector<Key> keys = keys_of(config);
  return {keys.begin(), keys.end()};
}

}  // namespace cautious::run
