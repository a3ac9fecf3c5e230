// Keys of the model and its data, or of what an external run reports: those of the task.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <variant>

#include <cautious/error.h>

#include "model/weight_source.h"
#include "run/checkpoint.h"
#include "run/config_section.h"

namespace cautious::run {
namespace {

constexpr auto kTasks = names_of(TaskKind{});

// Of all tasks: the preset decides which task it is.
std::vector<std::string> every_preset() {
  std::vector<std::string> names = model::preset_names();
  std::ranges::copy(model::image_preset_names(), std::back_inserter(names));
  return names;
}

void set_preset(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::vector<std::string> names = every_preset();
  const std::string name = to_word(what, given, base::join(names));
  base::with_context(std::string(what), [&] {
    if (std::ranges::find(names, name) == names.end()) {
      throw Error(Fault::usage, base::unknown("model", name, std::vector<std::string_view>(names.begin(), names.end())));
    }
    if (config.task == TaskKind::image) {
      config.model.image = model::image_preset(name);
    } else {
      config.model.shape = model::preset(name);
    }
  });
  config.model.preset = name;
}

// read_config() has already started from the task's defaults.
void set_task(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string word = to_word(what, given, base::join(kTasks));
  config.task = base::with_context(std::string(what), [&] { return base::named<TaskKind>("task", word); });
}

void add_image_data(std::vector<Key>& keys, const RunConfig& config) {
  using D = RunConfig::Data;
  Section data(
      keys, config, "data", [](auto& c) -> auto& { return c.data; });
  data.add(Text{"path", &D::path, "files or folders", "images to train on"},
           Text{"val_path", &D::val_path, "files or folders", "images to validate on; none: the test images of path"},
           Field{"val_fraction", &D::val_fraction, Range{0, 0.5, false, false},
                 "validate on this fraction of the training images instead; 0: on the test images"},
           Field{"train_images", &D::train_images, kEvery, "train on only this many of the images, always the same; 0: all"},
           Field{"workers", &D::workers, Range{0, 1024, false, false}, "threads that prepare images; never change results"},
           Field{"most_bad", &D::most_bad, kEvery, "unreadable images before the run is given up"},
           Text{"cache", &D::cache, "a folder", "of known sets; empty: the user's cache folder"});
  Section augment(
      keys, config, "augment", [](auto& c) -> auto& { return c.augment; });
  augment.add_all_but(data::Augment::fields(), {});
}

void add_instruct_data(std::vector<Key>& keys, const RunConfig& config) {
  using D = RunConfig::Data;
  Section data(
      keys, config, "data", [](auto& c) -> auto& { return c.data; });
  data.add(Text{"path", &D::path, "files", "conversations to learn from: Alpaca's, lists of messages, or plain text"},
           Text{"val_path", &D::val_path, "files", "conversations to validate on; none: a part of path"},
           Field{"val_fraction", &D::val_fraction, Range{0, 0.5, true, false}, "that part, always the same conversations"},
           Text{"tokenizer", &D::tokenizer, "bytes, a path, or a fetched tokenizer",
                "how text becomes tokens; a chat template beside it is used"},
           Text{"cache", &D::cache, "a folder", "of known sets; empty: the user's cache folder"});
}

}  // namespace

void add_lora(std::vector<Key>& keys, const RunConfig& config) {
  if (config.task == TaskKind::image) return;
  Section lora(
      keys, config, "lora", [](auto& c) -> auto& { return c.lora; });
  lora.add_all_but(model::LoraConfig::fields(), {});
  lora.add(
      Text{"targets", &model::LoraConfig::targets, "q_proj, k_proj, ...", "matrices with adapters; none: all of the layers"});
}

void add_task(std::vector<Key>& keys, const RunConfig& config) {
  Section top(
      keys, config, "", [](auto& c) -> auto& { return c; });
  top.add(Key{{"task", to_toml(cautious::name_of(config.task)), base::join(kTasks),
               "what is trained: follows from model.preset, but for instruct and external"},
              set_task});
}

void add_objective(std::vector<Key>& keys, const RunConfig& config) {
  using O = RunConfig::Objective;
  Section objective(
      keys, config, "objective", [](auto& c) -> auto& { return c.objective; });
  objective.add(Text{"name", &O::name, "a text", "of the number that a run reports, the lower the better"},
                Text{"unit", &O::unit, "a text", "of that number; may be empty"},
                Field{"target", &O::target, kPositive, "the difference that matters: less is practically equal"});
}

void add_model(std::vector<Key>& keys, const RunConfig& config) {
  using M = RunConfig::Model;
  Section model(
      keys, config, "model", [](auto& c) -> auto& { return c.model; });
  const std::vector<std::string> names = config.task == TaskKind::image ? model::image_preset_names() : model::preset_names();
  model.add(Key{{"preset", to_toml(config.model.preset), base::join(names), "where the keys below start"}, set_preset});
  if (config.task == TaskKind::image) {
    std::visit(
        [&]<class Network>(const Network&) {
          Section network(
              keys, config, "model", [](auto& c) -> auto& { return std::get<Network>(c.model.image); });
          network.add_all_but(Network::fields(), {});
        },
        config.model.image);
    return;
  }
  model.add(Text{"from", &M::from, "a run, a model's folder or file, or a known model",
                 "start from its weights; the keys below start from it too"},
            Flag{"recompute", &M::recompute, "activations again in the backward pass: slower, less memory"});
  Section shape(
      keys, config, "model", [](auto& c) -> auto& { return c.model.shape; });
  shape.add_all_but(model::ModelConfig::fields(), {});
}

void add_data(std::vector<Key>& keys, const RunConfig& config) {
  if (config.task == TaskKind::image) return add_image_data(keys, config);
  if (config.task == TaskKind::instruct) return add_instruct_data(keys, config);
  using D = RunConfig::Data;
  Section data(
      keys, config, "data", [](auto& c) -> auto& { return c.data; });
  data.add(Text{"path", &D::path, "files or folders", "what to train on; of a folder with splits, its train split"},
           Numbers{"weights", &D::weights, "how much of each entry of path, as in [0.7, 0.3]; none: all are one text"},
           Text{"val_path", &D::val_path, "files or folders",
                "what to validate on; none: the validation or test split of path, or else its end"},
           Field{"val_fraction", &D::val_fraction, Range{0, 0.5, true, false}, "that end, as a fraction of its tokens"},
           Field{"train_tokens", &D::train_tokens, kEvery, "train only on the first tokens, this many; 0: all"},
           Text{"field", &D::field, "a name", "the field of JSONL, or column of Parquet, that has the text"},
           Text{"tokenizer", &D::tokenizer, "bytes, a path, or a fetched tokenizer", "how text becomes tokens"},
           Text{"cache", &D::cache, "a folder", "of tokenized data; empty: the user's cache folder"});
}

void follow_model(RunConfig& config, const std::vector<Assignment>& given) {
  const auto is_open = [&](const std::string& key) { return std::ranges::find(given, key, &Assignment::name) == given.end(); };
  const Assignment* from = nullptr;
  for (const Assignment& each : given) {
    if (each.name == "model.from") from = &each;
  }
  if (config.model.from.empty() || from == nullptr) return;
  bool open = false;
  base::each_field(config.model.shape,
                   [&](const auto&, const auto& field) { open |= is_open("model." + std::string(field.name)); });
  if (!open && !is_open("data.tokenizer")) return;
  base::with_context(what_of(*from), [&] {
    const std::filesystem::path path = find_checkpoint(config.model.from);
    config.model.shape = model::open_weights(path)->config();
    config.data.tokenizer = tokenizer_beside(path).string();
  });
}

}  // namespace cautious::run
