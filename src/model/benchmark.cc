#include "model/benchmark.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/parallel.h"
#include "base/text.h"
#include "model/score.h"

namespace cautious::model {
namespace {

constexpr std::size_t kItemsAtOnce = 512;  // in memory as tokens

// "mmlu:5": the task and its number of examples.
std::pair<std::string, std::int64_t> name_and_shots(const std::string& text, std::int64_t shots) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return {text, shots};
  return {text.substr(0, colon),
          base::to_integer("the number of examples of " + text, text.substr(colon + 1), BenchmarkOptions::kShots)};
}

// All of a task's items, or the first `limit` of each subset.
std::vector<std::size_t> chosen_items(const data::Task& task, std::int64_t limit) {
  std::vector<std::size_t> all;
  for (const auto& [subset, docs] : task.subsets) {
    const auto count = limit > 0 ? std::min<std::ptrdiff_t>(limit, std::ssize(docs)) : std::ssize(docs);
    all.insert(all.end(), docs.begin(), docs.begin() + count);
  }
  return all;
}

}  // namespace

std::vector<Benchmark> read_benchmarks(const BenchmarkOptions& options) {
  std::vector<Benchmark> all;
  for (const std::string& text : options.tasks) {
    const auto [name, shots] = name_and_shots(text, options.shots);
    if (std::ranges::any_of(all, [&](const Benchmark& other) { return other.task.name == name; })) {
      throw Error(Fault::usage, fmt::format("tasks has {} twice", base::in_quotes(name)));
    }
    Benchmark& own = all.emplace_back(data::read_task(name, options.data, shots > 0), shots);
    own.items = chosen_items(own.task, options.limit);
    for (const auto& [subset, docs] : own.task.subsets) {  // examples are missing before anything is computed
      data::context_of(own.task, docs.front(), shots, options.seed);
    }
  }
  return all;
}

void ask(const Transformer& model, const data::Tokenizer& tokenizer, const Benchmark& benchmark,
         std::span<const std::size_t> items, std::uint64_t seed, int threads, const Answered& answered) {
  for (std::size_t first = 0; first < items.size(); first += kItemsAtOnce) {
    const auto some = items.subspan(first, std::min(kItemsAtOnce, items.size() - first));
    std::vector<ScoreItem> tokens(some.size());
    base::parallel_for(some.size(), threads, [&](std::size_t i) {
      const std::string context = data::context_of(benchmark.task, some[i], benchmark.shots, seed);
      tokens[i] = data::tokens_of(benchmark.task.docs[some[i]], context, tokenizer);
    });
    score(model, tokens,
          [&](std::size_t i, const std::vector<double>& sums) { answered(some[i], sums, is_cut(model, tokens[i])); });
  }
}

}  // namespace cautious::model
