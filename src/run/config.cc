// Applies the layers in stages, so that what a key depends on is there before it, whatever the order in which they are written.
#include "run/config.h"

#include <algorithm>
#include <array>

#include "run/config_check.h"
#include "run/config_keys.h"
#include "run/config_layers.h"

namespace cautious::run {
namespace {

// A recipe's name resets its decay, and a decay its own fields; the rest starts from all that is decided above it.
enum class Stage { start, decay, plain, rest_start, rest_decay, rest_plain };
constexpr std::array kStages{Stage::start, Stage::decay, Stage::plain, Stage::rest_start, Stage::rest_decay, Stage::rest_plain};

Stage stage_of(std::string_view name) {
  if (name == "model.preset" || name == "optimizer.name") return Stage::start;
  if (name == "optimizer.decay") return Stage::decay;
  if (name == "optimizer.rest.name") return Stage::rest_start;
  if (name == "optimizer.rest.decay") return Stage::rest_decay;
  return name.starts_with("optimizer.rest.") ? Stage::rest_plain : Stage::plain;
}

void apply(RunConfig& config, const std::vector<Assignment>& given, Stage stage) {
  const std::vector<Key> keys = keys_of(config);
  for (const Assignment& assignment : given) {
    if (stage_of(assignment.name) != stage) continue;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == assignment.name; });
    if (key == keys.end()) refuse_key(config, given, assignment);
    key->set(config, what_of(assignment), assignment.value);
  }
}

}  // namespace

RunConfig read_config(const ConfigSource& source) {
  std::vector<Assignment> given = source.file ? read_file(*source.file) : std::vector<Assignment>{};
  const std::vector<Assignment> typed = read_command_line(source);
  given.insert(given.end(), typed.begin(), typed.end());
  refuse_rivals(given);

  RunConfig config;
  for (const Stage stage : kStages) {
    if (stage == Stage::rest_start && works_on_matrices(config.optimizer.recipe.rule)) {
      start_rest(config.optimizer, config.optimizer.rest_name);
    }
    apply(config, given, stage);
  }
  check_together(config, given);
  return config;
}

}  // namespace cautious::run
