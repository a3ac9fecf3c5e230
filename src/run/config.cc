// A configuration's defaults, its TOML, and what follows from it.
#include "run/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "data/corpus.h"
#include "run/config_table.h"

namespace cautious::run {
namespace {

constexpr std::size_t kWidest = 40;  // beyond it a comment follows its value directly

// A key beside which another one decides is there as a comment, and so is one that nobody has set.
std::string line_of(const ConfigKey& key, const KeyNames* set) {
  const std::string_view name = without_section(key.name);
  if (key.value.empty()) return fmt::format("# {} =", name);
  const bool open = set != nullptr && std::ranges::find(*set, key.name) == set->end();
  return fmt::format("{}{} = {}", open ? "# " : "", name, key.value);
}

std::size_t width_of(const std::vector<ConfigKey>& keys, const KeyNames* set) {
  std::size_t width = 0;
  for (const ConfigKey& key : keys) {
    const std::size_t length = line_of(key, set).size();
    if (length <= kWidest) width = std::max(width, length);
  }
  return width;
}

DecaySwitch vector_decay(const RunConfig& config) {
  return config.optimizer.decay_vectors ? DecaySwitch::on : DecaySwitch::off;
}

// Vectors first: the output's bias is one. Then embedding and output, by name.
std::vector<Route> routes_with(TaskKind task, const std::string& ends) {
  std::vector<Route> routes{{.group = "vectors", .max_rank = 1}};
  const auto add = [&](const std::string& group, std::initializer_list<const char*> patterns) {
    for (const char* pattern : patterns) routes.push_back({.group = group, .pattern = pattern});
  };
  if (task == TaskKind::image) {
    add("vectors", {"cls_token", "pos_embed"});
    add(ends, {"patch_embed.*", "head.*", "fc.*"});
  } else {
    add(ends, {"model.embed_tokens.*", "model.position_embeddings.*", "lm_head.*"});
  }
  routes.push_back({.group = "matrices"});
  return routes;
}

}  // namespace

std::string where_of(const Assignment& assignment) {
  if (assignment.layer == Layer::command_line) return assignment.source;
  return fmt::format("{}:{}", assignment.source, assignment.line);
}

std::string what_of(const Assignment& assignment) {
  if (assignment.layer == Layer::command_line) return assignment.shown;
  return fmt::format("{}: {}", where_of(assignment), assignment.shown);
}

bool works_on_matrices(const Rule& rule) {
  return std::visit(
      []<class R>(const R& r) {
        if constexpr (requires { shaping(r); }) {
          return shaping(r) == Shaping::matrix;
        } else {
          return false;
        }
      },
      rule);
}

std::vector<std::string> rest_names() {
  std::vector<std::string> names = recipe_names();
  std::erase_if(names, [](const std::string& name) { return works_on_matrices(recipe(name).rule); });
  return names;
}

Recipe recipe_for(TaskKind task, std::string_view optimizer) {
  const bool from_scratch = task == TaskKind::text || task == TaskKind::image;
  return from_scratch ? usual_recipe(optimizer) : recipe(optimizer);
}

double lr_for(const RunConfig& config) {
  const double wide = kUsualWidth / static_cast<double>(std::max<std::int64_t>(config.model.shape.width, 1));
  const double factor = config.task == TaskKind::text       ? std::min(1.0, wide)
                        : config.task == TaskKind::image    ? 0.4
                        : config.task == TaskKind::instruct ? 0.04
                                                            : 1;
  return std::stod(
      fmt::format("{:.2g}", factor * usual_lr(config.optimizer.name)));  // a rule of thumb, no more digits than that
}

void start_rest(RunConfig& config, std::string_view name) {
  RunConfig::Optimizer& optimizer = config.optimizer;
  optimizer.rest = recipe_for(config.task, name);
  optimizer.rest.decay = decay_for(optimizer.rest.rule, optimizer.recipe.decay);
  optimizer.rest.weight_decay = optimizer.recipe.weight_decay;
  optimizer.rest_name = name;
}

RunConfig defaults_of(TaskKind task) {
  RunConfig config;
  config.task = task;
  config.optimizer.recipe = recipe_for(task, config.optimizer.name);
  config.optimizer.rest = recipe_for(task, config.optimizer.rest_name);
  config.optimizer.lr = lr_for(config);
  if (task == TaskKind::text) return config;
  config.train.tokens_per_param = 0;
  if (task == TaskKind::external) {
    config.train.steps = 1;  // how long it is, is not known: it counts as one step
    return config;
  }
  if (task == TaskKind::instruct) {
    config.lora.rank = 8;
    config.schedule.warmup_ratio = 0.03;
    config.train.epochs = 3;
    config.train.batch_size = 8;
    return config;
  }
  config.model.preset = "resnet-20";
  config.model.image = model::image_preset(config.model.preset);
  config.data.val_fraction = 0;
  config.train.images = 600000;
  config.train.batch_size = 128;
  return config;
}

namespace {

std::string written(const RunConfig& config, const KeyNames* set) {
  const std::vector<ConfigKey> keys = config_keys(config);
  const std::size_t width = width_of(keys, set);
  std::string text =
      "# A training run of cautious: every key with its value, then its meaning | what is valid.\n"
      "# On the command line: --section.key=value\n";
  if (set != nullptr) text += "# Keys that nobody has set are comments with the values that they have now.\n";
  std::string_view section;
  for (const ConfigKey& key : keys) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("{:<{}}  # {} | {}\n", line_of(key, set), width, key.help, key.valid);
  }
  return text;
}

}  // namespace

std::string to_toml(const RunConfig& config) { return written(config, nullptr); }

std::string to_toml(const RunConfig& config, const KeyNames& set) { return written(config, &set); }

std::vector<std::pair<std::string, std::string>> computing_keys(const RunConfig& config) {
  constexpr std::array<std::string_view, 11> kOthers{"data.path",    "data.val_path",          "data.cache",
                                                     "data.workers", "data.tokenizer",         "model.from",
                                                     "eval.data",    "optimizer.density_from", "optimizer.budget_from",
                                                     "train.device", "train.timeout"};
  std::vector<std::pair<std::string, std::string>> keys;
  for (const ConfigKey& key : config_keys(config)) {
    const bool watching = key.name.starts_with("log.") || key.name.starts_with("checkpoint.");
    if (!watching && std::ranges::find(kOthers, key.name) == kOthers.end()) keys.emplace_back(key.name, key.value);
  }
  return keys;
}

std::vector<model::Shape> parameter_shapes(const RunConfig& config) {
  if (config.task == TaskKind::image) return model::parameter_shapes(config.model.image);
  if (config.lora.rank > 0) return model::adapter_shapes(config.model.shape, config.lora);
  return model::parameter_shapes(config.model.shape);
}

std::int64_t parameters_of(const RunConfig& config) {
  double count = 0;
  for (const model::Shape& shape : parameter_shapes(config)) count += entries(shape);
  return static_cast<std::int64_t>(count);
}

int moments_of(const Rule& rule) {
  return std::visit([]<class R>(const R&) { return CAUTIOUS_ISA::moments_of<R, float>(); }, rule);
}

double moment_bytes(const RunConfig& config) {
  const Routing routing = routing_of(config);
  double count = 0;
  for (const model::Shape& shape : parameter_shapes(config)) {
    count += moments_of(routing.groups[route(routing, shape.name, shape.sides)].recipe.rule) * entries(shape);
  }
  return count * (config.optimizer.options.moments == Element::bf16 ? 2 : 4);
}

double parameter_bytes(const RunConfig& config) {
  const bool adapted = config.task != TaskKind::image && config.lora.rank > 0;
  const double frozen = adapted ? 4 * static_cast<double>(size_of(config.model.shape, 1, 1, false).parameters) : 0;
  return frozen + 8 * static_cast<double>(parameters_of(config)) + moment_bytes(config);
}

std::int64_t units_per_step(const RunConfig& config) {
  return config.train.batch_size * (config.task == TaskKind::image ? 1 : sequence_length(config));
}

std::string_view unit_of(TaskKind task) { return task == TaskKind::image ? "images" : "tokens"; }

data::ImageSpec image_spec(const RunConfig& config) {
  return {config.data.path, config.data.val_path, config.data.val_fraction, config.data.train_images,
          data::cache_named(config.data.cache)};
}

std::int64_t sequence_length(const RunConfig& config) {
  return config.train.seq_len > 0 ? config.train.seq_len : config.model.shape.context;
}

std::int64_t steps_of(const RunConfig& config) {
  const RunConfig::Train& train = config.train;
  if (train.steps > 0) return train.steps;
  const std::int64_t per_step = units_per_step(config), units = std::max(train.tokens, train.images);
  if (units > 0) return (units - 1) / per_step + 1;
  if (train.epochs > 0 && config.data.epoch_units == 0) {
    throw Error(Fault::usage, "train.epochs needs data.path, whose examples it counts; set data.path, or train.steps instead",
                {.key = "train.epochs"});
  }
  const double wanted = train.epochs > 0 ? train.epochs * static_cast<double>(config.data.epoch_units)
                                         : train.tokens_per_param * static_cast<double>(parameters_of(config));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(wanted / static_cast<double>(per_step))));
}

Schedule schedule_of(const RunConfig& config) {
  Schedule schedule = config.schedule;
  schedule.lr = config.optimizer.lr;
  schedule.steps = steps_of(config);
  return schedule;
}

DecaySchedule decay_schedule_of(const RunConfig& config) {
  DecaySchedule schedule = config.decay_schedule;
  schedule.steps = steps_of(config);
  return schedule;
}

Routing routing_of(const RunConfig& config) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  if (!works_on_matrices(optimizer.recipe.rule)) {
    return {{{.name = "matrices", .recipe = optimizer.recipe},
             {.name = "embedding", .recipe = optimizer.recipe},
             {.name = "vectors", .recipe = optimizer.recipe, .decay = vector_decay(config)}},
            routes_with(config.task, "embedding")};
  }
  const double multiplier = optimizer.rest_lr_multiplier;
  return {{{.name = "matrices", .recipe = optimizer.recipe},
           {.name = "rest", .recipe = optimizer.rest, .lr_multiplier = multiplier},
           {.name = "vectors", .recipe = optimizer.rest, .lr_multiplier = multiplier, .decay = vector_decay(config)}},
          routes_with(config.task, "rest")};
}

}  // namespace cautious::run
