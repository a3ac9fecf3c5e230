#include "study/external_run.h"

#include <cmath>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "run/config_table.h"
#include "run/provenance.h"

namespace cautious::study {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kResult = "result.json";

// A weight decay that nothing applies would mislead a program that looks at it alone.
Recipe told(Recipe recipe) {
  if (std::holds_alternative<None>(recipe.decay)) recipe.weight_decay = 0;
  return recipe;
}

// Beyond what statistics take counts as not finite.
OrderedJson number_or_null(double number) { return kFinite.contains(number) ? OrderedJson(number) : OrderedJson(nullptr); }

double number_in(const OrderedJson& json, const std::string& key, const fs::path& file) {
  const auto found = json.find(key);
  if (found == json.end()) base::refuse_content(file.string(), fmt::format("there is no {}", base::in_quotes(key)));
  if (found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!found->is_number()) base::refuse_content(file.string(), fmt::format("{} is not a number", base::in_quotes(key)));
  return found->get<double>();
}

}  // namespace

ExternalRun external_run(const PlannedRun& run, const fs::path& directory) {
  const run::RunConfig::Optimizer& optimizer = run.config.optimizer;
  const Recipe recipe = told(optimizer.recipe);
  const bool parts = run::works_on_matrices(recipe.rule);
  return {.folder = run.folder,
          .directory = directory,
          .arm = run.arm,
          .recipe = to_string(recipe),
          .lr = optimizer.lr,
          .rest = parts ? to_string(told(optimizer.rest)) : "",
          .rest_lr = parts ? optimizer.lr * optimizer.rest_lr_multiplier : 0,
          .decay = std::string(name_of(recipe.decay)),
          .weight_decay = recipe.weight_decay,
          .seed = run.seed,
          .decay_trace = run.config.log.decay_trace,
          .density_from = optimizer.density_from,
          .budget_from = optimizer.budget_from};
}

void begin(const ExternalRun& run, const run::RunConfig& config) {
  fs::create_directories(run.directory);
  fs::remove(run.directory / kResult);
  base::write_atomically(run.directory / "config.toml", to_toml(config));
}

std::vector<std::string> environment_of(const ExternalRun& run) {
  std::vector<std::string> all{fmt::format("CAUTIOUS_OUT={}", run.directory.string()),
                               fmt::format("CAUTIOUS_ARM={}", run.arm),
                               fmt::format("CAUTIOUS_RECIPE={}", run.recipe),
                               fmt::format("CAUTIOUS_LR={}", run.lr),
                               fmt::format("CAUTIOUS_DECAY={}", run.decay),
                               fmt::format("CAUTIOUS_WEIGHT_DECAY={}", run.weight_decay),
                               fmt::format("CAUTIOUS_SEED={}", run.seed)};
  if (run.rest.empty()) return all;
  all.push_back(fmt::format("CAUTIOUS_REST={}", run.rest));
  all.push_back(fmt::format("CAUTIOUS_REST_LR={}", run.rest_lr));
  return all;
}

ExternalResult reported(const ExternalRun& run, const std::string& objective, const fs::path& said) {
  const fs::path file = run.directory / kResult;
  if (const auto text = base::read_file_if_any(file, {.what = "the result", .most = base::kRecord.most})) {
    const OrderedJson json = base::parse_json<OrderedJson>(*text);
    if (!json.is_object()) {
      base::refuse_content(file.string(),
                           fmt::format("not a JSON object; write {{\"{}\": NUMBER}}, or null for NaN", objective));
    }
    ExternalResult result{.objective = number_in(json, objective, file)};
    if (json.contains("decay_budget")) result.decay_budget = number_in(json, "decay_budget", file);
    return result;
  }
  const std::string last = base::last_message_in(said);
  const std::optional<double> number = base::parsed<double>(last);
  if (!number) {
    throw Error(Fault::data, fmt::format("its last line is {}, not a number; print the {} last, or write it to "
                                         "$CAUTIOUS_OUT/result.json",
                                         base::in_quotes(base::in_one_line(last)), objective));
  }
  return {.objective = *number};
}

void finish(const ExternalRun& run, const ExternalResult& result) {
  const run::Provenance made = run::provenance();
  const OrderedJson summary{{"task", "external"},
                            {"status", kFinite.contains(result.objective) ? "done" : "diverged"},
                            {"objective", number_or_null(result.objective)},
                            {"decay_budget", number_or_null(result.decay_budget)},
                            {"seconds", result.seconds},
                            {"version", made.version},
                            {"git", made.git},
                            {"cpu", made.cpu}};
  base::write_atomically(run.directory / "summary.json", summary.dump(1) + "\n");
}

}  // namespace cautious::study
