#include "run/config_optimizer_keys.h"

#include <array>
#include <variant>

#include "run/config_section.h"

namespace cautious::run {
namespace {

using Set = std::function<void(RunConfig&, std::string_view what, const ConfigValue&)>;

constexpr std::array<std::string_view, 2> kMoments{"f32", "bf16"};

bool is_list(const FieldInfo& field) { return field.valid.starts_with("numbers"); }
bool is_number(const FieldInfo& field) { return field.valid.starts_with('[') || field.valid.starts_with('('); }

std::string toml_of(const FieldInfo& field) {
  if (is_list(field)) return fmt::format("[{}]", field.value);
  return is_number(field) ? field.value : to_toml(std::string_view(field.value));
}

// Every field of a recipe, which `find` takes a RunConfig::Optimizer to.
template <class Find>
void add_fields(std::vector<Key>& keys, const RunConfig& config, const std::string& section,
                Recipe RunConfig::Optimizer::*member, Find find) {
  Section target(keys, config, section, find);
  for (const FieldInfo& field : fields(find(config).*member)) {
    const Set set_field = [find, member, field](RunConfig& c, std::string_view what, const ConfigValue& given) {
      const bool numeric = is_number(field) || is_list(field);
      const std::string text = numeric ? to_numeric_text(what, given, field.valid) : to_word(what, given, field.valid);
      told_of(what, [&] { set(find(c).*member, field.name, text); });
    };
    target.add(field.name, toml_of(field), field.valid, field.help, set_field);
  }
}

void set_moments(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string word = to_word(what, given, base::join(kMoments));
  const std::size_t index = told_of(what, [&] { return base::index_of_name("moments", word, kMoments); });
  config.optimizer.moments = index == 0 ? Element::f32 : Element::bf16;
}

void set_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(recipe_names()));
  config.optimizer.recipe = told_of(what, [&] { return recipe(name); });
  config.optimizer.name = name;
}

void set_rest_name(RunConfig& config, std::string_view what, const ConfigValue& given) {
  const std::string name = to_word(what, given, base::join(rest_names()));
  told_of(what, [&] { start_rest(config.optimizer, name); });
}

void add_rest(std::vector<Key>& keys, const RunConfig& config) {
  const auto find = [](auto& c) -> auto& { return c.optimizer; };
  Section rest(keys, config, "optimizer.rest", find);
  rest.add("name", to_toml(std::string_view(config.optimizer.rest_name)), base::join(rest_names()),
           "rule for embedding, output and vectors", set_rest_name);
  rest.add("lr_multiplier", &RunConfig::Optimizer::rest_lr_multiplier, kPositive, "of their learning rate");
  add_fields(keys, config, "optimizer.rest", &RunConfig::Optimizer::rest, find);
}

}  // namespace

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
  std::vector<std::string> names;
  for (const std::string& name : recipe_names()) {
    if (!works_on_matrices(recipe(name).rule)) names.push_back(name);
  }
  return names;
}

void start_rest(RunConfig::Optimizer& optimizer, std::string_view name) {
  optimizer.rest = recipe(name);
  optimizer.rest.decay = optimizer.recipe.decay;
  optimizer.rest.weight_decay = optimizer.recipe.weight_decay;
  optimizer.rest_name = name;
}

void add_optimizer(std::vector<Key>& keys, const RunConfig& config) {
  using O = RunConfig::Optimizer;
  const auto find = [](auto& c) -> auto& { return c.optimizer; };
  Section optimizer(keys, config, "optimizer", find);
  optimizer.add("name", to_toml(std::string_view(config.optimizer.name)), base::join(recipe_names()), "rule, with its usual decay",
                set_name);
  optimizer.add("lr", &O::lr, kPositive, "peak of the learning rate");
  add_fields(keys, config, "optimizer", &O::recipe, find);
  optimizer.add("grad_clip", &O::grad_clip, kNonnegative, "bound of the gradient's norm; 0: none");
  optimizer.add("update_rms_clip", &O::update_rms_clip, kNonnegative, "bound of a tensor's RMS of u; 0: none");
  optimizer.add("decay_vectors", &O::decay_vectors, "weight decay on norms and biases too");
  optimizer.add("moments", to_toml(name_of(config.optimizer.moments)), base::join(kMoments), "type that they are kept in",
                set_moments);
  optimizer.add("density_from", &O::density_from, "a run's directory", "random decay: part of each tensor that decayed there");
  optimizer.add("budget_from", &O::budget_from, "a run's directory", "plain decay: as much in all as there");
  if (works_on_matrices(config.optimizer.recipe.rule)) add_rest(keys, config);
}

}  // namespace cautious::run
