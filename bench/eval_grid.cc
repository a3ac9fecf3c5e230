// Items of random tokens in the shapes of HellaSwag and of MMLU with five examples.
#include "bench/eval_grid.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "bench/rounds.h"
#include "model/score.h"

namespace cautious::bench {
namespace {

using model::ScoreItem;
using Sums = std::vector<std::vector<double>>;

// Lengths are spread evenly between two ends.
struct ItemShape {
  const char* name;
  std::int64_t items, shared;                // tokens that all items begin with
  std::int64_t context_least, context_most;  // tokens of an item's own
  std::int64_t choice_least, choice_most;
};
constexpr ItemShape kShapes[] = {
    {"hellaswag", 12, 0, 60, 100, 20, 30},
    {"mmlu-5shot", 6, 600, 60, 100, 1, 1},
};

class RandomTokens {
 public:
  explicit RandomTokens(std::int64_t vocab) : vocab_(static_cast<std::uint64_t>(vocab)) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  void append(std::vector<std::int64_t>& tokens, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int64_t>(next() % vocab_));
  }

 private:
  std::uint64_t next() { return base::mix64(++number_ * base::kGolden); }
  std::uint64_t vocab_, number_ = 0;
};

std::vector<ScoreItem> items_of(const ItemShape& shape, std::int64_t vocab) {
  RandomTokens random(vocab);
  std::vector<std::int64_t> shared;
  random.append(shared, shape.shared);
  std::vector<ScoreItem> items;
  for (std::int64_t i = 0; i < shape.items; ++i) {
    std::vector<std::int64_t> context = shared;
    random.append(context, random.between(shape.context_least, shape.context_most));
    items.emplace_back();
    for (int choice = 0; choice < 4; ++choice) {
      const std::int64_t scored = random.between(shape.choice_least, shape.choice_most);
      items.back().push_back({context, scored});
      random.append(items.back().back().tokens, scored);
    }
  }
  return items;
}

Sums shared_sums(const model::Transformer& model, const std::vector<ScoreItem>& items) {
  Sums sums(items.size());
  model::score(model, items, [&](std::size_t item, const std::vector<double>& own) { sums[item] = own; });
  return sums;
}

// As evaluations usually do it: an item's four whole texts as one padded batch, all logits, their log-softmax.
Sums plain_sums(model::Transformer& model, const std::vector<ScoreItem>& items) {
  const at::NoGradGuard no_grad;
  Sums sums;
  for (const ScoreItem& item : items) {
    std::size_t longest = 0;
    for (const data::ChoiceTokens& choice : item) longest = std::max(longest, choice.tokens.size() - 1);
    const at::Tensor tokens = at::zeros({std::ssize(item), static_cast<std::int64_t>(longest)}, at::kLong);
    for (std::size_t i = 0; i < item.size(); ++i) {
      std::copy(item[i].tokens.begin(), item[i].tokens.end() - 1, tokens.data_ptr<std::int64_t>() + i * longest);
    }
    const at::Tensor all = at::log_softmax(model.logits(tokens), -1);
    sums.emplace_back();
    for (std::size_t i = 0; i < item.size(); ++i) {
      const std::vector<std::int64_t>& own = item[i].tokens;
      double sum = 0;
      for (std::int64_t t = std::ssize(own) - item[i].scored; t < std::ssize(own); ++t) {
        sum += all[static_cast<std::int64_t>(i)][t - 1][own[t]].item<double>();
      }
      sums.back().push_back(sum);
    }
  }
  return sums;
}

double largest_difference(const Sums& a, const Sums& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) largest = std::max(largest, std::abs(a[i][j] / b[i][j] - 1));
  }
  return largest;
}

}  // namespace

void run_eval_grid(const EvalGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const EvalRow&)>& done) {
  at::set_num_threads(grid.threads);
  for (const std::string& name : grid.presets) {
    model::ModelConfig config = model::preset(name);
    config.context = std::max<std::int64_t>(config.context, 1024);
    const auto model = std::make_shared<model::Transformer>(config, 1);
    for (const ItemShape& shape : kShapes) {
      begin(fmt::format("{}, {}", name, shape.name));
      const std::vector<ScoreItem> items = items_of(shape, config.vocab);
      EvalRow row{.preset = name, .shape = shape.name, .items = shape.items, .threads = grid.threads};
      row.largest_difference = largest_difference(shared_sums(*model, items), plain_sums(*model, items));
      std::vector<double> ours, plain, ratio;
      for (int round = 0; round < grid.rounds; ++round) {
        auto start = Clock::now();
        shared_sums(*model, items);
        ours.push_back(seconds_since(start));
        start = Clock::now();
        plain_sums(*model, items);
        plain.push_back(seconds_since(start));
        ratio.push_back(plain.back() / ours.back());
      }
      row.items_per_s = static_cast<double>(shape.items) / median(ours);
      row.plain_items_per_s = static_cast<double>(shape.items) / median(plain);
      row.speedup = median(ratio);
      done(row);
    }
  }
}

}  // namespace cautious::bench
