// A single token takes the fast way of ops/one_token.h. For several, the Transformer runs as it is; only its attention is
// replaced by one that also sees the keys and values of earlier tokens.
#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>
#include "base/hash.h"
#include "base/text.h"
#include "model/ops/one_token.h"

namespace cautious::model {
namespace {

constexpr std::int64_t kMostAtOnce = 256;  // tokens; bounds the scores in memory

// [N, heads * head_size] -> [heads, N, head_size].
at::Tensor by_heads(const at::Tensor& rows, std::int64_t head_size) {
  return rows.view({rows.size(0), -1, head_size}).transpose(0, 1);
}

void enlarge(at::Tensor& kept, std::int64_t used, std::int64_t needed, std::int64_t most) {
  if (kept.size(1) >= needed) return;
  const std::int64_t capacity = std::min(most, std::max(needed, 2 * kept.size(1)));
  at::Tensor larger = at::empty({kept.size(0), capacity, kept.size(2)}, kept.options());
  larger.narrow(1, 0, used).copy_(kept.narrow(1, 0, used));
  kept = std::move(larger);
}

// Of queries [N, heads * head_size] at the positions after `before` others, to the keys that each one sees.
at::Tensor attended(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values, std::int64_t before,
                    const ops::AttentionShape& shape) {
  const std::int64_t count = q.size(0), group = shape.heads / shape.kv_heads;
  const std::int64_t low = shape.window > 0 ? std::max<std::int64_t>(0, before + 1 - shape.window) : 0;  // of the first query
  const std::int64_t seen = before + count - low, own = before - low;
  const at::Tensor queries = by_heads(q, shape.head_size).reshape({shape.kv_heads, group * count, shape.head_size});
  at::Tensor scores = at::bmm(queries * shape.scale, keys.narrow(1, low, seen).transpose(1, 2));
  if (shape.softcap > 0) scores = (scores / shape.softcap).tanh() * shape.softcap;
  if (count > 1) {
    const at::Tensor all = at::ones({count, seen}, q.options().dtype(at::kBool));
    at::Tensor unseen = all.triu(own + 1);
    if (shape.window > 0) unseen = unseen.logical_or(all.tril(own - shape.window));
    scores = scores.view({shape.kv_heads, group, count, seen})
                 .masked_fill(unseen, -std::numeric_limits<double>::infinity())
                 .view({shape.kv_heads, group * count, seen});
  }
  const at::Tensor sums = at::bmm(at::softmax(scores, -1), values.narrow(1, low, seen));
  return sums.view({shape.heads, count, shape.head_size}).transpose(0, 1).reshape({count, -1});
}

void check_tokens(std::span<const std::int64_t> tokens, std::int64_t vocab) {
  if (tokens.empty()) throw Error(Fault::usage, "no tokens to feed; give at least 1");
  for (const std::int64_t token : tokens) {
    if (token >= 0 && token < vocab) continue;
    throw Error(Fault::data, fmt::format("token {} is not in the model's vocabulary; valid: [0, {}]", token, vocab - 1));
  }
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

// Single tokens by the model's own weights. None if the model's operations are to be others than the fused ones: then the
// Transformer does it. Each option has a name here, so that a new one is not forgotten.
template <class T>
std::optional<ops::OneToken<T>> one_token(const Transformer& model) {
  const auto parameters = model.named_parameters();
  const auto& [path, recompute, adapters, place] = model.options();  // recomputing is for training
  if (path != ops::Path::fused || adapters != nullptr || !parameters.begin()->value().is_cpu() ||
      parameters.begin()->value().scalar_type() != c10::CppTypeToScalarType<T>::value)
    return {};
  return ops::OneToken<T>(model.config(), [&](const std::string& name) -> const T* {
    const at::Tensor* const found = parameters.find(name);
    return found != nullptr ? found->data_ptr<T>() : nullptr;
  });
}

}  // namespace

struct Decoder::Parts {
  // Keys and values of one layer, [kv_heads, capacity, head_size].
  struct Cache {
    ops::AttentionShape shape;
    at::Tensor keys, values;
  };

  const Transformer& model;
  std::optional<ops::OneToken<float>> single;  // of the two, that of the model's type
  std::optional<ops::OneToken<double>> double_single;
  std::vector<Cache> caches{};         // by layer
  std::vector<std::int64_t> window{};  // the tokens that the next one can see
  std::int64_t done = 0;               // of them, in the caches

  void make_room(std::int64_t tokens) {
    for (Cache& cache : caches)
      for (at::Tensor* const kept : {&cache.keys, &cache.values}) enlarge(*kept, done, done + tokens, model.config().context);
  }

  at::Tensor attend(Cache& cache, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
    const ops::AttentionShape& shape = cache.shape;
    const auto rotated = [&](const at::Tensor& rows) {
      return shape.rope.base > 0 ? ops::rope(rows.unsqueeze(0), shape.head_size, shape.rope, done).squeeze(0) : rows;
    };
    const std::int64_t count = q.size(0);
    cache.keys.narrow(1, done, count).copy_(by_heads(rotated(k), shape.head_size));
    cache.values.narrow(1, done, count).copy_(by_heads(v, shape.head_size));
    return attended(rotated(q), cache.keys, cache.values, done, shape);
  }

  // Hidden states of the next `count` tokens of the window, [count, width].
  at::Tensor run(std::int64_t count) {
    make_room(count);
    const at::Tensor tokens = at::from_blob(window.data() + done, {1, count}, at::kLong);
    const at::Tensor positions = at::arange(done, done + count, at::kLong);
    const at::Tensor hidden =
        model.hidden(tokens, positions, [&](std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
          return attend(caches[layer], q, k, v);
        });
    done += count;
    return hidden;
  }

  // Logits after the next token of the window.
  template <class T>
  at::Tensor run_one(ops::OneToken<T>& by) {
    make_room(1);
    std::vector<ops::TokenCache<T>> rows;
    for (const Cache& cache : caches)
      rows.push_back({cache.shape, cache.keys.data_ptr<T>(), cache.values.data_ptr<T>(), cache.keys.size(1)});
    const at::Tensor logits = at::empty({model.config().vocab}, caches.front().keys.options());
    by.run(window[static_cast<std::size_t>(done)], done, rows,
           {logits.data_ptr<T>(), static_cast<std::size_t>(logits.numel())});
    ++done;
    return logits;
  }

  // Those of all tokens of the window that are not in the caches, in slices.
  std::vector<at::Tensor> run_all() {
    std::vector<at::Tensor> slices;
    const auto all = static_cast<std::int64_t>(window.size());
    while (done < all) slices.push_back(run(std::min(kMostAtOnce, all - done)));
    return slices;
  }
};

Decoder::Decoder(const Transformer& model) : parts_(new Parts{model, one_token<float>(model), one_token<double>(model)}) {
  const ModelConfig& c = model.config();
  const at::Tensor none = at::empty({c.kv_heads, 0, c.head_size}, model.parameters().front().options().requires_grad(false));
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    parts_->caches.push_back({attention_shape(c, layer), none, none});
  }
}

Decoder::~Decoder() = default;

std::int64_t Decoder::position() const { return parts_->done; }

at::Tensor Decoder::feed(std::span<const std::int64_t> tokens) {
  const std::int64_t context = parts_->model.config().context;
  check_tokens(tokens, parts_->model.config().vocab);
  // What follows from the tokens alone: however they come in, the windows are those of one at a time.
  for (const std::int64_t token : tokens) {
    auto& window = parts_->window;
    if (static_cast<std::int64_t>(window.size()) == context) {
      window.erase(window.begin(), window.end() - context / 2);
      parts_->done = 0;
    }
    window.push_back(token);
  }
  const at::NoGradGuard no_grad;
  if (parts_->done + 1 == static_cast<std::int64_t>(parts_->window.size())) {
    if (parts_->single) return parts_->run_one(*parts_->single);
    if (parts_->double_single) return parts_->run_one(*parts_->double_single);
  }
  const at::Tensor last = parts_->run_all().back();
  return parts_->model.logits_of(last.narrow(0, last.size(0) - 1, 1)).squeeze(0);
}

at::Tensor Decoder::feed_all(std::span<const std::int64_t> tokens) {
  const std::int64_t context = parts_->model.config().context;
  check_tokens(tokens, parts_->model.config().vocab);
  if (static_cast<std::int64_t>(tokens.size()) > context - parts_->done) {
    throw Error(Fault::usage,
                fmt::format("{} tokens after {} others; the model's context is {}", tokens.size(), parts_->done, context));
  }
  parts_->window.insert(parts_->window.end(), tokens.begin(), tokens.end());
  const at::NoGradGuard no_grad;
  return at::cat(parts_->run_all());
}

void Decoder::rewind(std::int64_t position) {
  if (position < 0 || position > parts_->done) {
    throw Error(Fault::usage, fmt::format("position {}; valid: [0, {}]", position, parts_->done));
  }
  parts_->window.resize(static_cast<std::size_t>(position));
  parts_->done = position;
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
