// The Transformer runs as it is; only its attention is replaced by one that also sees the keys and values of earlier tokens.
#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>
#include "base/hash.h"

#include "base/text.h"

namespace cautious::model {
namespace {

constexpr std::int64_t kMostAtOnce = 256;  // tokens; bounds the scores in memory

// [N, heads * head_size] -> [heads, N, head_size].
at::Tensor by_heads(const at::Tensor& rows, std::int64_t head_size) {
  return rows.view({rows.size(0), -1, head_size}).transpose(0, 1);
}

void make_room(at::Tensor& kept, std::int64_t used, std::int64_t needed, std::int64_t most) {
  if (kept.size(1) >= needed) return;
  const std::int64_t capacity = std::min(most, std::max(needed, 2 * kept.size(1)));
  at::Tensor larger = at::empty({kept.size(0), capacity, kept.size(2)}, kept.options());
  larger.narrow(1, 0, used).copy_(kept.narrow(1, 0, used));
  kept = std::move(larger);
}

// Of queries [N, heads * head_size] at the positions after `before` others, to all keys up to each one's own.
at::Tensor attended(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, std::int64_t before,
                    const ops::AttentionShape& shape) {
  const std::int64_t count = q.size(0), total = before + count, group = shape.heads / shape.kv_heads;
  const at::Tensor queries = by_heads(q, shape.head_size).reshape({shape.kv_heads, group * count, shape.head_size});
  at::Tensor scores = at::bmm(queries * shape.scale, keys.narrow(1, 0, total).transpose(1, 2));
  if (shape.softcap > 0) scores = (scores / shape.softcap).tanh() * shape.softcap;
  if (count > 1) {
    const at::Tensor later = at::ones({count, total}, q.options().dtype(at::kBool)).triu(before + 1);
    scores = scores.view({shape.kv_heads, group, count, total})
                 .masked_fill(later, -std::numeric_limits<double>::infinity())
                 .view({shape.kv_heads, group * count, total});
  }
  const at::Tensor seen = at::bmm(at::softmax(scores, -1), values.narrow(1, 0, total));
  return seen.view({shape.heads, count, shape.head_size}).transpose(0, 1).reshape({count, -1});
}

struct Candidate {
  double logit;
  std::int64_t token;
  // The more likely one first, of equal ones the smaller token.
  bool operator<(const Candidate& other) const { return logit != other.logit ? logit > other.logit : token < other.token; }
};

std::vector<Candidate> candidates_of(const at::Tensor& logits) {
  const at::Tensor wide = logits.to(at::kDouble).contiguous();
  const auto* const values = wide.data_ptr<double>();
  std::vector<Candidate> all;
  for (std::int64_t token = 0; token < wide.numel(); ++token) {
    if (std::isnan(values[token]) || values[token] == std::numeric_limits<double>::infinity()) {
      throw Error(Fault::data, fmt::format("the logit of token {} is {}: the model has diverged", token, values[token]));
    }
    if (std::isfinite(values[token])) all.push_back({values[token], token});
  }
  if (all.empty()) throw Error(Fault::data, fmt::format("none of {} logits is finite: no token to pick", wide.numel()));
  return all;
}

// Uniform in [0, 1): splitmix64 of the seed, then of the number.
double uniform(std::uint64_t seed, std::uint64_t number) {
  const auto mixed = [](std::uint64_t x) { return base::mix64(x + base::kGolden); };
  return static_cast<double>(mixed(mixed(seed) + number) >> 11U) * 0x1p-53;
}

}  // namespace

struct Decoder::Parts {
  // Keys and values of one layer, [kv_heads, capacity, head_size].
  struct Cache {
    at::Tensor keys, values;
  };

  const Transformer& model;
  ops::AttentionShape shape;
  std::vector<Cache> caches;           // by layer
  std::vector<std::int64_t> window{};  // the tokens that the next one can see
  std::int64_t done = 0;               // of them, in the caches

  at::Tensor attend(Cache& cache, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
    const auto rotated = [&](const at::Tensor& rows) {
      return shape.rope_base > 0 ? ops::rope(rows.unsqueeze(0), shape.head_size, shape.rope_base, done).squeeze(0) : rows;
    };
    const std::int64_t count = q.size(0), context = model.config().context;
    for (at::Tensor* kept : {&cache.keys, &cache.values}) make_room(*kept, done, done + count, context);
    cache.keys.narrow(1, done, count).copy_(by_heads(rotated(k), shape.head_size));
    cache.values.narrow(1, done, count).copy_(by_heads(v, shape.head_size));
    return attended(rotated(q), cache.keys, cache.values, done, shape);
  }

  // Hidden state of the last of the next `count` tokens of the window, [1, width].
  at::Tensor run(std::int64_t count) {
    const at::Tensor tokens = at::from_blob(window.data() + done, {1, count}, at::kLong);
    const at::Tensor hidden = model.hidden(tokens, [&](std::int64_t layer, const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v) { return attend(caches[layer], q, k, v); });
    done += count;
    return hidden.narrow(0, count - 1, 1);
  }
};

Decoder::Decoder(const Transformer& model)
    : parts_(new Parts{model, attention_shape(model.config()), std::vector<Parts::Cache>(model.config().layers)}) {
  const ModelConfig& c = model.config();
  const at::TensorOptions options = model.parameters().front().options().requires_grad(false);
  for (Parts::Cache& cache : parts_->caches) {
    cache.keys = at::empty({c.kv_heads, 0, c.head_size}, options);
    cache.values = at::empty({c.kv_heads, 0, c.head_size}, options);
  }
}

Decoder::~Decoder() = default;

std::int64_t Decoder::position() const { return parts_->done; }

at::Tensor Decoder::feed(std::span<const std::int64_t> tokens) {
  const ModelConfig& config = parts_->model.config();
  if (tokens.empty()) throw Error(Fault::usage, "no tokens to feed; give at least 1");
  for (const std::int64_t token : tokens) {
    if (token >= 0 && token < config.vocab) continue;
    throw Error(Fault::data, fmt::format("token {} is not in the model's vocabulary; valid: [0, {}]", token, config.vocab - 1));
  }
  // What follows from the tokens alone: however they come in, the windows are those of one at a time.
  for (const std::int64_t token : tokens) {
    auto& window = parts_->window;
    if (static_cast<std::int64_t>(window.size()) == config.context) {
      window.erase(window.begin(), window.end() - config.context / 2);
      parts_->done = 0;
    }
    window.push_back(token);
  }
  const at::NoGradGuard no_grad;
  at::Tensor last;
  const auto all = static_cast<std::int64_t>(parts_->window.size());
  while (parts_->done < all) last = parts_->run(std::min(kMostAtOnce, all - parts_->done));
  return parts_->model.logits_of(last).squeeze(0);
}

std::int64_t pick(const at::Tensor& logits, const Sampling& sampling, std::int64_t number) {
  base::check_range("temperature", sampling.temperature, kNonnegative);
  base::check_range("top_k", static_cast<double>(sampling.top_k), kNonnegative);
  base::check_range("top_p", sampling.top_p, {0, 1, true, false});
  std::vector<Candidate> left = candidates_of(logits);
  const Candidate first = *std::min_element(left.begin(), left.end());
  if (sampling.temperature == 0) return first.token;

  const auto size = static_cast<std::int64_t>(left.size());
  const std::int64_t kept = sampling.top_k > 0 ? std::min(sampling.top_k, size) : size;
  if (kept < size || sampling.top_p < 1) std::partial_sort(left.begin(), left.begin() + kept, left.end());
  left.resize(kept);
  std::vector<double> sums;  // of the probabilities up to each, not normalized
  for (const Candidate& candidate : left) {
    const double weight = std::exp((candidate.logit - first.logit) / sampling.temperature);
    sums.push_back((sums.empty() ? 0 : sums.back()) + weight);
  }
  const auto enough = [&](double part) { return std::lower_bound(sums.begin(), sums.end(), part * sums.back()); };
  if (sampling.top_p < 1) sums.erase(enough(sampling.top_p) + 1, sums.end());
  const double point = uniform(sampling.seed, static_cast<std::uint64_t>(number)) * sums.back();
  return left[std::upper_bound(sums.begin(), sums.end(), point) - sums.begin()].token;
}

}  // namespace cautious::model
