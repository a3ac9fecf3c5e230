// Benchmarks of multiple choice with a model: which are asked for, which of their items, and what the model answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/tasks/task.h"
#include "model/transformer.h"

namespace cautious::model {

struct BenchmarkOptions {
  static constexpr Range kShots{0, 1000, false, false}, kLimit{0, 1e15, false, false};

  std::vector<std::string> tasks;  // "hellaswag"; "mmlu:5" has its own number of examples
  std::filesystem::path data;      // the folder of their files, or one file
  std::int64_t shots = 0;          // examples before an item, where the task does not say
  std::int64_t limit = 0;          // items of each subset, the first; 0: all
  std::uint64_t seed = 0;          // which examples are drawn
};

struct Benchmark {
  data::Task task;
  std::int64_t shots;
  std::vector<std::size_t> items;  // numbers of the task's docs
};

// All that the options ask for. A task that is unknown, there twice, or has too few examples is an Error.
std::vector<Benchmark> read_benchmarks(const BenchmarkOptions& options);

// What the model answered: the sums of log-probabilities of an item's choices, and whether the item is longer than the model's
// context and lost its beginning.
using Answered = std::function<void(std::size_t item, const std::vector<double>& sums, bool cut)>;

// Asks the model about the items, which are some of the benchmark's. `answered` is called once per item, in any order; what it
// throws ends the work.
void ask(const Transformer& model, const data::Tokenizer& tokenizer, const Benchmark& benchmark,
         std::span<const std::size_t> items, std::uint64_t seed, int threads, const Answered& answered);

}  // namespace cautious::model
