#include "study/report_facts.h"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cautious::study {
namespace {

using Json = nlohmann::json;

constexpr std::array kKeys{"version", "git", "compiler", "cpu", "blas", "threads"};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

double larger(double before, const Json& summary, const char* key) {
  const auto found = summary.find(key);
  return found == summary.end() || !found->is_number() ? before : std::max(before, found->get<double>());
}

}  // namespace

RunFacts facts_of(const std::vector<std::filesystem::path>& runs) {
  RunFacts facts;
  for (const char* key : kKeys) facts.provenance.push_back({key, {}});
  for (const std::filesystem::path& run : runs) {
    std::ifstream in(run / "summary.json");
    const Json summary = Json::parse(in, nullptr, false);
    if (!summary.is_object()) continue;
    facts.parameters = larger(facts.parameters, summary, "parameters");
    facts.tokens = larger(facts.tokens, summary, "tokens");
    for (auto& [key, values] : facts.provenance) {
      if (!summary.contains(key)) continue;
      std::string value = text_of(summary[key]);
      if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
    }
  }
  std::erase_if(facts.provenance, [](const auto& entry) { return entry.second.empty(); });
  return facts;
}

report::Table provenance_table(const RunFacts& facts) {
  report::Table table{.name = "provenance", .title = "What the runs were made with", .head = {"what", "value"}, .rows = {}, .note = ""};
  for (const auto& [key, values] : facts.provenance) table.rows.push_back({key, fmt::format("{}", fmt::join(values, "; "))});
  return table;
}

std::string count_words(double count) {
  if (count >= 1e9) return fmt::format("{:.3g} billion", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.3g} million", count / 1e6);
  return count >= 1e4 ? fmt::format("{:.3g} thousand", count / 1e3) : fmt::format("{:.0f}", count);
}

}  // namespace cautious::study
