// Items become trees of tokens: each row of a batch is a token, which sees the shared prefix and the tokens above it in its own
// tree. A batch has no padding, and only the rows that predict a choice's token get logits.
#include "model/score.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "model/score_parts.h"

namespace cautious::model {
namespace {

constexpr std::int64_t kRows = 1024;  // tokens of a batch, more if an item has more
constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kChunk = 512;                          // tokens of a prefix at a time; bounds the scores in memory
constexpr std::int64_t kLogitBytes = std::int64_t{64} << 20;  // of one slice

at::Tensor longs(const std::vector<std::int64_t>& values) {
  return at::from_blob(const_cast<std::int64_t*>(values.data()), {std::ssize(values)}, at::kLong).clone();
}

// The model with the keys and values of a prefix.
class PrefixModel {
 public:
  PrefixModel(const Transformer& model, Tokens prefix)
      : model_(model),
        shape_(attention_shape(model.config(), 0)),
        options_(model.parameters().front().options().requires_grad(false)) {
    const ModelConfig& c = model.config();
    for (std::int64_t layer = 0; layer < c.layers; ++layer) {
      const at::Tensor room = at::empty({2, c.kv_heads, std::ssize(prefix), c.head_size}, options_);
      caches_.push_back({room[0], room[1], attention_shape(c, layer).window});
    }
    if (shape_.rope.base > 0) {  // what becomes of (1, 0): cosine and sine of every position
      const std::int64_t half = c.head_size / 2;
      const at::Tensor unit = at::cat({at::ones({c.context, half}, options_), at::zeros({c.context, half}, options_)}, 1);
      turns_ = ops::rope(unit.unsqueeze(0), c.head_size, shape_.rope).squeeze(0);
    }
    while (!prefix.empty()) {
      const Tokens piece = prefix.first(std::min(prefix.size(), static_cast<std::size_t>(kChunk)));
      hidden({TokenTree(piece, done_)}, true);
      done_ += std::ssize(piece);
      prefix = prefix.subspan(piece.size());
    }
  }

  // [rows of all trees, width]; `keep`: they are the next piece of the prefix.
  at::Tensor hidden(const std::vector<TokenTree>& trees, bool keep = false) {
    std::vector<std::int64_t> tokens, positions;
    std::vector<Packed> packed;
    for (const TokenTree& tree : trees) {
      tokens.insert(tokens.end(), tree.tokens.begin(), tree.tokens.end());
      positions.insert(positions.end(), tree.positions.begin(), tree.positions.end());
      packed.push_back(
          {std::ssize(tokens) - tree.rows(), at::empty({tree.rows(), tree.rows()}, at::kBool), longs(tree.positions)});
      tree.fill_hidden(packed.back().hidden.data_ptr<bool>());
    }
    const at::Tensor where = longs(positions);
    at::Tensor turns;
    if (turns_.defined()) turns = turns_.index_select(0, where).unsqueeze(1);
    const auto attend_all = [&](std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
      const at::Tensor queries = rotated(q, turns), keys = rotated(k, turns);
      Cache& cache = caches_[layer];
      if (keep) {
        cache.keys.narrow(1, done_, keys.size(0)).copy_(by_head(keys));
        cache.values.narrow(1, done_, keys.size(0)).copy_(by_head(v));
      }
      at::Tensor result = at::empty_like(q);
      // Trees side by side: the operations on one are too small for several threads.
      at::parallel_for(0, std::ssize(packed), 1, [&](std::int64_t begin, std::int64_t end) {
        const at::NoGradGuard no_grad;  // of this thread
        for (std::int64_t i = begin; i < end; ++i) {
          const auto part = [&](const at::Tensor& all) { return all.narrow(0, packed[i].first, packed[i].hidden.size(0)); };
          part(result).copy_(attend(cache, part(queries), part(keys), part(v), packed[i]));
        }
      });
      return result;
    };
    return model_.hidden(longs(tokens).unsqueeze(0), where, attend_all);
  }

 private:
  struct Cache {
    at::Tensor keys, values;  // of the prefix, [kv_heads, tokens, head_size]
    std::int64_t window;      // of the layer; 0: none
  };
  struct Packed {
    std::int64_t first;    // row
    at::Tensor hidden;     // [rows, rows]
    at::Tensor positions;  // [rows]
  };

  at::Tensor by_head(const at::Tensor& rows) const { return rows.view({rows.size(0), -1, shape_.head_size}).transpose(0, 1); }

  at::Tensor rotated(const at::Tensor& rows, const at::Tensor& turns) const {
    if (!turns.defined()) return rows;
    const std::int64_t half = shape_.head_size / 2;
    const at::Tensor heads = rows.view({rows.size(0), -1, shape_.head_size});
    const at::Tensor a = heads.narrow(2, 0, half), b = heads.narrow(2, half, half);
    const at::Tensor c = turns.narrow(2, 0, half), s = turns.narrow(2, half, half);
    return at::cat({a * c - b * s, b * c + a * s}, 2).view(rows.sizes());
  }

  at::Tensor scores_of(const at::Tensor& queries, const at::Tensor& keys) const {
    const at::Tensor scores = at::bmm(queries, keys.transpose(1, 2));
    return shape_.softcap > 0 ? (scores / shape_.softcap).tanh_() * shape_.softcap : scores;
  }

  // One tree's rows to the prefix and to the rows above them.
  at::Tensor attend(const Cache& cache, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Packed& tree) const {
    const std::int64_t rows = q.size(0), group = shape_.heads / shape_.kv_heads;
    const at::Tensor queries = by_head(q * shape_.scale).reshape({shape_.kv_heads, group * rows, shape_.head_size});
    at::Tensor scores = scores_of(queries, by_head(k));
    scores.view({shape_.kv_heads, group, rows, rows}).masked_fill_(tree.hidden, kNever);
    if (done_ > 0) scores = at::cat({scores_of(queries, cache.keys.narrow(1, 0, done_)), scores}, 2);
    if (cache.window > 0) {
      const at::Tensor seen_from = at::cat({at::arange(done_, at::kLong), tree.positions});
      scores.view({shape_.kv_heads, group, rows, done_ + rows})
          .masked_fill_(tree.positions.unsqueeze(1) - seen_from >= cache.window, kNever);
    }
    const at::Tensor weights = at::softmax(scores, -1);
    at::Tensor seen = at::bmm(weights.narrow(2, done_, rows), by_head(v));
    if (done_ > 0) seen.baddbmm_(weights.narrow(2, 0, done_), cache.values.narrow(1, 0, done_));
    return seen.view({shape_.heads, rows, shape_.head_size}).transpose(0, 1).reshape({rows, -1});
  }

  const Transformer& model_;
  ops::AttentionShape shape_;
  at::TensorOptions options_;
  at::Tensor turns_ = {};  // [context, head_size]
  std::vector<Cache> caches_ = {};
  std::int64_t done_ = 0;  // tokens of the prefix in the caches
};

struct Wanted {
  std::int64_t row, target;
  double* sum;
};

// Adds the log-probability of each target to its sum.
void add_log_probabilities(const Transformer& model, const at::Tensor& hidden, std::vector<Wanted> wanted) {
  std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) { return a.row < b.row; });
  const std::int64_t vocab = model.config().vocab;
  const std::int64_t most = std::max<std::int64_t>(1, kLogitBytes / (vocab * static_cast<std::int64_t>(hidden.element_size())));
  for (std::size_t first = 0; first < wanted.size();) {
    std::vector<std::int64_t> rows, entries;
    std::size_t last = first;
    for (; last < wanted.size(); ++last) {
      if (rows.empty() || rows.back() != wanted[last].row) {
        if (std::ssize(rows) == most) break;
        rows.push_back(wanted[last].row);
      }
      entries.push_back((std::ssize(rows) - 1) * vocab + wanted[last].target);
    }
    const at::Tensor logits = model.logits_of(hidden.index_select(0, longs(rows)));
    const at::Tensor totals = at::logsumexp(logits, 1).to(at::kDouble);
    const at::Tensor chosen = logits.reshape({-1}).index_select(0, longs(entries)).to(at::kDouble);
    for (std::size_t i = first; i < last; ++i) {
      *wanted[i].sum += chosen.data_ptr<double>()[i - first] - totals.data_ptr<double>()[entries[i - first] / vocab];
    }
    first = last;
  }
}

using Done = std::function<void(std::size_t, const std::vector<double>&)>;

void score_batch(const Transformer& model, PrefixModel& prefixed, const std::vector<TokenTree>& trees, const Done& done) {
  const at::Tensor hidden = prefixed.hidden(trees);
  std::vector<std::vector<double>> sums;
  for (const TokenTree& tree : trees) sums.emplace_back(tree.item().texts.size(), 0.0);
  std::vector<Wanted> wanted;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const std::vector<ScoredText>& texts = trees[i].item().texts;
    for (std::size_t text = 0; text < texts.size(); ++text) {
      for (std::size_t j = 0; j < texts[text].targets.size(); ++j) {
        wanted.push_back({first + trees[i].row_of(text, j), texts[text].targets[j], &sums[i][text]});
      }
    }
    first += trees[i].rows();
  }
  add_log_probabilities(model, hidden, std::move(wanted));
  for (std::size_t i = 0; i < trees.size(); ++i) {
    for (const double sum : sums[i]) {
      if (std::isfinite(sum)) continue;
      throw Error(Fault::data, fmt::format("the log-probability of a choice is {}: the model has diverged", sum));
    }
    done(trees[i].item().number, sums[i]);
  }
}

void score_group(const Transformer& model, const PrefixGroup& group, const Done& done) {
  const std::int64_t length = std::ssize(group.prefix);
  std::vector<TokenTree> batch;
  PrefixModel prefixed(model, group.prefix);
  std::int64_t rows = 0;
  for (const ScoredItem* item : group.items) {
    TokenTree tree(*item, length);
    if (!batch.empty() && rows + tree.rows() > kRows) {
      score_batch(model, prefixed, batch, done);
      batch.clear();
      rows = 0;
    }
    rows += tree.rows();
    batch.push_back(std::move(tree));
  }
  score_batch(model, prefixed, batch, done);
}

}  // namespace

bool is_cut(const Transformer& model, const ScoreItem& item) {
  return std::any_of(item.begin(), item.end(),
                     [&](const data::ChoiceTokens& choice) { return std::ssize(choice.tokens) - 1 > model.config().context; });
}

void score(const Transformer& model, std::span<const ScoreItem> items, const Done& done) {
  const at::NoGradGuard no_grad;
  for (const ScoreItem& item : items) {
    for (const data::ChoiceTokens& choice : item) {
      if (choice.scored >= 1 && choice.scored < std::ssize(choice.tokens)) continue;
      throw Error(Fault::usage, fmt::format("a choice of {} tokens has {} to score; valid: at least 1, and 1 before them",
                                            choice.tokens.size(), choice.scored));
    }
  }
  std::vector<ScoredItem> all = scored_items(items, model.config().context);
  for (const PrefixGroup& group : grouped(all, kRows)) score_group(model, group, done);
}

}  // namespace cautious::model
