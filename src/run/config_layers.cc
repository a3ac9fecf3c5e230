// Reads the layers one upon another and applies them in stages, so that what a key depends on is there before it, whatever the
// order in which they are written.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "base/toml.h"
#include "run/config.h"
#include "run/config_table.h"
#include "run/run_data.h"

namespace cautious::run {
namespace {

constexpr std::size_t kMostKeys = 10'000;  // of all files: there are fewer than 200 different ones

// Collects the values of a section and of the sections in it.
void collect(std::vector<Assignment>& all, std::size_t rank, const std::string& prefix, const base::TomlValue& table) {
  for (const auto& [key, at, value] : table.entries) {
    std::string name = prefix + key;
    std::ranges::replace(name, '-', '_');
    const auto sections = config_sections();
    const bool is_section = std::ranges::find(sections, name) != sections.end(),
               is_table = value.kind == base::TomlValue::Kind::table;
    if (is_table && is_section) {
      collect(all, rank, name + ".", value);
    } else if (is_table) {
      value.refuse(base::unknown("section", prefix + key, sections));
    } else if (is_section) {
      value.refuse(fmt::format("{} is a section, not a value; write [{}] on a line of its own, then its keys", name, name));
    } else {
      const auto twice = [&](const Assignment& other) { return other.rank == rank && other.name == name; };
      if (const auto other = std::ranges::find_if(all, twice); other != all.end()) {
        value.refuse(fmt::format("{} is given twice, first in line {}", name, other->line));
      }
      if (all.size() == kMostKeys)
        value.refuse(fmt::format("more than {} keys; see 'cautious train --print-config'", kMostKeys));
      all.push_back({Layer::file, rank, *value.file, value.begin.line, name, name, config_value(value)});
    }
  }
}

// The files, then --preset, then the overrides in their order.
std::vector<Assignment> assignments_of(const ConfigSource& source) {
  std::vector<Assignment> all;
  for (std::size_t rank = 0; rank < source.files.size(); ++rank) {
    collect(all, rank, "", base::read_toml(source.files[rank], {.what = "the configuration"}));
  }
  const std::string from = source.typed ? "command line" : "", dashes = source.typed ? "--" : "";
  const auto add = [&](const std::string& shown, const std::string& name, const std::string& text) {
    all.push_back({Layer::command_line, source.files.size(), from, 0, dashes + shown, name, {ConfigValue::Kind::typed, text}});
  };
  if (!source.preset.empty()) add("preset", "model.preset", source.preset);
  for (const auto& [name, text] : source.overrides) {
    if (name == "model.preset" && !source.preset.empty() && text != source.preset) {
      throw Error(Fault::usage,
                  fmt::format("--preset is {} and --model.preset is {}; give one of them", base::in_quotes(source.preset),
                              base::in_quotes(text)),
                  {.key = name});
    }
    add(name, name, text);
  }
  return all;
}

// The last value that the layers give to the key.
const Assignment* last_given(const std::vector<Assignment>& given, std::string_view name) {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name; });
  return found == given.rend() ? nullptr : &*found;
}

// That of the preset where there is one. Names that are none are refused later, with their places.
TaskKind task_in(const std::vector<Assignment>& given) {
  const Assignment* const preset = last_given(given, "model.preset");
  const Assignment* const task = last_given(given, "task");
  const auto is = [&](TaskKind kind) { return task && task->value.text == cautious::name_of(kind); };
  const bool image = is(TaskKind::image);
  const TaskKind of_text = is(TaskKind::instruct)   ? TaskKind::instruct
                           : is(TaskKind::external) ? TaskKind::external
                                                    : TaskKind::text;
  if (!preset) return image ? TaskKind::image : of_text;
  const bool of_images = model::is_image_preset(preset->value.text);
  if (task && image != of_images && (of_images || std::ranges::count(model::preset_names(), preset->value.text) > 0)) {
    throw Error(Fault::usage,
                fmt::format("{} is '{}', a model of the task '{}', but {} is '{}'; remove one of them", what_of(*preset),
                            preset->value.text, of_images ? "image" : "text", what_of(*task), task->value.text),
                {.key = "task"});
  }
  return of_images ? TaskKind::image : of_text;
}

// What falls away, by what makes it so and where it was.
class Fallen {
 public:
  void add(const Assignment& cause, const Assignment& fallen) {
    lists_[{fallen.source, what_of(cause) + " is " + base::in_quotes(cause.value.text)}].push_back(fallen.name);
  }

  std::vector<std::string> notes() const {
    constexpr std::size_t kShown = 6;
    std::vector<std::string> lines;
    for (const auto& [key, names] : lists_) {
      const auto& [source, cause] = key;
      const std::vector<std::string> shown(names.begin(), names.begin() + std::min(names.size(), kShown));
      const std::string more = names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
      lines.push_back(
          fmt::format("{}{} of {} {} not used: {}", base::join(shown), more, source, names.size() > 1 ? "are" : "is", cause));
    }
    return lines;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> lists_;
};

// What a model's name decides, and what belongs to an optimizer: its rule's fields and what is tuned for it. Which coordinates
// decay is a choice of its own.
bool belongs_to_model(const std::string& name) { return section_of(name) == "model" && name != "model.recompute"; }

bool belongs_to_optimizer(const Recipe& recipe, const std::string& section, const std::string& name) {
  if (section_of(name) != section) return false;
  const std::string_view field = without_section(name);
  if (field == "lr" || field == "lr_multiplier" || field == "weight_decay" || field == "coupling") return true;
  Recipe bare = recipe;
  bare.decay = None{};
  const auto all = fields(bare);
  return field != "decay" && std::ranges::any_of(all, [&](const FieldInfo& info) { return info.name == field; });
}

const Assignment* given_up_to(const std::vector<Assignment>& given, std::string_view name, std::size_t rank) {
  const auto found =
      std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name && a.rank <= rank; });
  return found == given.rend() ? nullptr : &*found;
}

// Where the layer of this rank names another one than the layers below: takes away what belongs to theirs, from the layer that
// named it on.
template <class Belongs>
void start_anew(std::vector<Assignment>& given, std::size_t rank, const std::string& name, Fallen& fallen,
                const Belongs& belongs) {
  const Assignment* const now = last_given(given, name);
  const Assignment* const before = rank == 0 ? nullptr : given_up_to(given, name, rank - 1);
  if (!now || !before || now->rank != rank || now->value.text == before->value.text) return;
  const Assignment cause = *now, replaced = *before;
  std::erase_if(given, [&](const Assignment& a) {
    const bool falls = a.rank >= replaced.rank && a.rank < rank && (a.name == name || belongs(replaced, cause, a));
    if (falls && a.name != name) fallen.add(cause, a);
    return falls;
  });
}

void replace_named(std::vector<Assignment>& given, std::size_t rank, Fallen& fallen) {
  start_anew(given, rank, "model.preset", fallen, [](const Assignment& was, const Assignment& is, const Assignment& a) {
    const bool other_task = model::is_image_preset(was.value.text) != model::is_image_preset(is.value.text);
    return belongs_to_model(a.name) || (a.name == "task" && other_task);
  });
  start_anew(given, rank, "model.from", fallen, [](const Assignment&, const Assignment&, const Assignment& a) {
    return (belongs_to_model(a.name) && a.name != "model.preset") || a.name == "data.tokenizer";
  });
  start_anew(given, rank, "data.tokenizer", fallen,
             [](const Assignment&, const Assignment&, const Assignment& a) { return a.name == "model.vocab"; });
  for (const std::string section : {"optimizer", "optimizer.rest"}) {
    const auto belongs = [&](const Assignment& was, const Assignment&, const Assignment& a) {
      return belongs_to_optimizer(recipe(was.value.text), section, a.name);
    };
    start_anew(given, rank, section + ".name", fallen, belongs);
  }
}

// Of what the layer of this rank says, that which has taken the key away.
const Assignment* taken_by(const std::vector<Assignment>& given, std::size_t rank, const std::string& name) {
  std::vector<std::string> causes{"model.preset", "task"};
  if (name.starts_with("optimizer.")) causes = {"optimizer.decay", "optimizer.k", "optimizer.name"};
  if (name.starts_with("optimizer.rest.")) causes.insert(causes.begin(), {"optimizer.rest.decay", "optimizer.rest.name"});
  for (const std::string& cause : causes) {
    const Assignment* const found = last_given(given, cause);
    if (found && found->rank == rank) return found;
  }
  return nullptr;
}

// A recipe's name resets its decay, and a decay its own fields; the rest starts from all that is decided above it.
enum class Stage { start, decay, plain, rest_start, rest_decay, rest_plain };
constexpr std::array kStages{Stage::start, Stage::decay, Stage::plain, Stage::rest_start, Stage::rest_decay, Stage::rest_plain};

Stage stage_of(std::string_view name) {
  if (name == "model.preset" || name == "model.from" || name == "optimizer.name") return Stage::start;
  if (name == "optimizer.decay") return Stage::decay;
  if (name == "optimizer.rest.name") return Stage::rest_start;
  if (name == "optimizer.rest.decay") return Stage::rest_decay;
  return name.starts_with("optimizer.rest.") ? Stage::rest_plain : Stage::plain;
}

void apply(RunConfig& config, const Key& key, const Assignment& assignment) try {
  key.set(config, assignment.shown, assignment.value);
} catch (const Error& error) {
  const Error located = assignment.layer == Layer::file ? error.within(where_of(assignment)) : error;
  throw Error(located.fault(), located.message(), {.key = assignment.name, .where = located.where()});
}

// A key of a lower layer that the layers up to this one no longer have falls away; it was good where it was written.
void apply(RunConfig& config, std::vector<Assignment>& given, std::size_t rank, Stage stage, Fallen& fallen) {
  const std::vector<Key> keys = keys_of(config);
  std::vector<Assignment> kept;
  for (const Assignment& assignment : given) {
    const auto key = std::ranges::find(keys, assignment.name, &Key::name);
    const bool due = stage_of(assignment.name) == stage;
    if (due && key == keys.end()) {
      const Assignment* const cause = assignment.rank < rank ? taken_by(given, rank, assignment.name) : nullptr;
      if (cause == nullptr) refuse_key(config, given, assignment);
      fallen.add(*cause, assignment);
      continue;
    }
    if (due) apply(config, *key, assignment);
    kept.push_back(assignment);
  }
  given = std::move(kept);
}

// What the data decides unless the user does: the classes and channels, for small models the size, and how long an epoch is. A
// configuration that leaves nothing open needs no data yet.
void follow_data(RunConfig& config, const std::vector<Assignment>& given) {
  constexpr std::int64_t kSmall = 64;  // models of larger images are meant for photographs, whose sizes differ
  if (config.data.path.empty()) return;
  const auto is_open = [&](const char* key) { return !last_given(given, key); };
  const bool size = is_open("model.image_size") && model::image_size(config.model.image) <= kSmall;
  const bool channels = is_open("model.channels"), classes = is_open("model.classes");
  if (!size && !channels && !classes && config.train.epochs == 0) return;
  const data::ImageFacts facts = data::image_facts(image_spec(config));
  config.data.epoch_units = facts.training;
  std::visit(
      [&](auto& network) {
        if (size && facts.size > 0) network.image_size = facts.size;
        if (channels) network.channels = facts.channels;
        if (classes) network.classes = facts.classes;
      },
      config.model.image);
}

// A vocabulary that nobody has set is that of the tokenizer that somebody has, unless the preset's holds it with little to
// spare: published ones are round numbers. Where there is no such tokenizer here, whoever opens it says so.
void follow_tokenizer(RunConfig& config, const std::vector<Assignment>& given) {
  const Assignment* const tokenizer = last_given(given, "data.tokenizer");
  if (!tokenizer || config.data.tokenizer == "bytes" || !config.model.from.empty() || last_given(given, "model.vocab")) return;
  base::with_context(what_of(*tokenizer), [&] {
    std::int64_t& vocab = config.model.shape.vocab;
    const std::int64_t tokens = vocabulary_of(config).value_or(vocab);
    if (tokens > vocab || tokens < vocab - vocab / 10) vocab = tokens;
  });
}

// All that the layers up to this rank make.
RunConfig laid_up_to(std::vector<Assignment>& given, std::size_t rank, bool last, Fallen& fallen) {
  RunConfig config = defaults_of(task_in(given));
  refuse_rivals(config.task, given);
  for (const Stage stage : kStages) {
    if (stage == Stage::rest_start && works_on_matrices(config.optimizer.recipe.rule)) {
      start_rest(config, config.optimizer.rest_name);
    }
    apply(config, given, rank, stage, fallen);
    if (last && stage == Stage::start && config.task != TaskKind::image) follow_model(config, given);
  }
  return config;
}

// What nobody has set follows from what is set.
void follow(RunConfig& config, const std::vector<Assignment>& given) {
  if (!last_given(given, "optimizer.lr")) config.optimizer.lr = lr_for(config);
  if (config.task == TaskKind::text || config.task == TaskKind::instruct) follow_tokenizer(config, given);
  if (config.task == TaskKind::image) follow_data(config, given);
  if (config.task == TaskKind::instruct && config.train.epochs > 0 && !config.data.path.empty()) {
    config.data.epoch_units = open_lessons(config).train.count() * sequence_length(config);
  }
}

}  // namespace

ReadConfig read_layers(const ConfigSource& source) {
  const std::vector<Assignment> all = assignments_of(source);
  std::vector<Assignment> given;
  Fallen fallen;
  ReadConfig read;
  for (std::size_t rank = 0; rank <= source.files.size(); ++rank) {
    std::ranges::copy_if(all, std::back_inserter(given), [&](const Assignment& a) { return a.rank == rank; });
    replace_named(given, rank, fallen);
    read.config = laid_up_to(given, rank, rank == source.files.size(), fallen);
  }
  follow(read.config, given);
  check_together(read.config, given);
  for (const Assignment& assignment : given) read.set.push_back(assignment.name);
  read.notes = fallen.notes();
  return read;
}

RunConfig read_config(const ConfigSource& source) { return read_layers(source).config; }

}  // namespace cautious::run
