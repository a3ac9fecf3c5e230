#include "run/usual.h"

#include <algorithm>

namespace cautious::run {
namespace {

struct Row {
  std::string_view optimizer;
  double lr;  // best of a few, for byte models of 100 to 300 thousand parameters at batch 8
  std::vector<std::pair<std::string, std::string>> fields;
};

const Row& row_of(std::string_view optimizer) {
  static const std::vector<Row> rows{
      {"sgd", 0.5, {}},
      {"sgdm", 2, {}},
      {"adam", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"adamw", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"adamc", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"lion", 1e-3, {{"optimizer.beta2", "0.95"}}},
      {"lion-k", 2e-3, {}},
      {"muon", 1e-2, {{"optimizer.scale", "rms"}, {"optimizer.nesterov", "on"}, {"optimizer.rest.beta2", "0.95"}}},
  };
  static const Row added{"", 3e-3, {}};  // a rule that nobody has tuned yet
  const auto found = std::ranges::find(rows, optimizer, &Row::optimizer);
  return found == rows.end() ? added : *found;
}

}  // namespace

Recipe usual_recipe(std::string_view optimizer) {
  constexpr std::string_view kSection = "optimizer.";
  Recipe result = recipe(optimizer);
  for (const auto& [key, value] : row_of(optimizer).fields) {
    const std::string_view field = std::string_view(key).substr(kSection.size());
    if (field.find('.') == field.npos) set(result, field, value);
  }
  return result;
}

const std::vector<std::pair<std::string, std::string>>& usual_fields(std::string_view optimizer) {
  return row_of(optimizer).fields;
}

double usual_lr(std::string_view optimizer) { return row_of(optimizer).lr; }

}  // namespace cautious::run
