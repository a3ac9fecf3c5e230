// Verdicts that were given before, one line each: {"seeds":3,"tune_seeds":2,"time":"2026-11-17T08:00:00Z"}.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <sstream>

#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/json.h"
#include "study/verdict.h"

namespace cautious::study {
namespace {

constexpr const char* kLooks = "looks.jsonl";

}  // namespace

std::vector<Look> looks_of(const std::filesystem::path& directory) {
  std::vector<Look> looks;
  if (directory.empty()) return looks;
  const auto file = directory / kLooks;
  std::istringstream lines(base::read_file_if_any(file, base::kRecord).value_or(""));
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = base::parse_json(line);
    ++number;
    const auto count = [&](const char* key) {
      const auto found = json.is_object() ? json.find(key) : json.end();
      if (found != json.end() && found->is_number_unsigned()) return found->get<std::size_t>();
      throw Error(Fault::data, fmt::format("'{}' is missing or not a number; remove the line", key),
                  {.where = fmt::format("{}:{}", file.string(), number)});
    };
    looks.push_back({count("seeds"), count("tune_seeds")});
  }
  return looks;
}

std::size_t judged_seeds(const Results& results) {
  return static_cast<std::size_t>(std::ranges::count_if(results.plan.seeds, [&](std::uint64_t seed) {
    return std::ranges::none_of(results.runs, [&](const FinishedRun& run) {
      const bool open = run.status == RunStatus::waiting || run.status == RunStatus::running;
      return run.run.seed == seed && open;
    });
  }));
}

void record_look(const Results& results) {
  const Look look{judged_seeds(results), results.plan.tune_seeds.size()};
  const std::vector<Look> before = looks_of(results.directory);
  if (!before.empty() && before.back() == look) return;
  const auto file = results.directory / kLooks;
  const std::string line = fmt::format("{{\"seeds\":{},\"tune_seeds\":{},\"time\":\"{:%Y-%m-%dT%H:%M:%SZ}\"}}\n", look.seeds,
                                       look.tune_seeds, fmt::gmtime(std::time(nullptr)));
  base::write_atomically(file, base::read_file_if_any(file, base::kRecord).value_or("") + line);  // no zeros after a power loss
}

}  // namespace cautious::study
