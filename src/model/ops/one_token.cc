// Threads share one parallel region per token. Between two waits they compute rows of matrices, blocks of which go to whoever
// is free, or the heads of attention; what is cheap, norms and sums, every thread computes for itself instead of waiting.
#include "model/ops/one_token.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include <fmt/format.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

constexpr std::int64_t kBlockBytes = 32 << 10;      // of a matrix, the work that a thread takes at a time
constexpr std::int64_t kSharedEntries = 1'000'000;  // with fewer weights, waiting for each other takes longer than it saves

// y[r] = row r of the weights times x. One row after the other is one stream from memory, which is read as fast as memory can;
// four rows at a time, as in products from a cache, are read at 0.6 of that.
template <class T>
CAUTIOUS_CLONES void rows_times(const T* weight, const T* x, std::int64_t rows, std::int64_t columns, T* y) {
  typedef T Vector __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr std::int64_t wide = sizeof(Vector) / sizeof(T);
  for (std::int64_t r = 0; r < rows; ++r, weight += columns) {
    Vector a{}, b{}, c{}, d{};
    const Vector *w = reinterpret_cast<const Vector*>(weight), *v = reinterpret_cast<const Vector*>(x);
    std::int64_t i = 0;
    for (; i + 4 * wide <= columns; i += 4 * wide, w += 4, v += 4) {
      a += w[0] * v[0], b += w[1] * v[1];
      c += w[2] * v[2], d += w[3] * v[3];
    }
    for (; i + wide <= columns; i += wide) a += *w++ * *v++;
    const Vector all = (a + b) + (c + d);
    T sum = (all[0] + all[1]) + (all[2] + all[3]);
    if constexpr (wide == 8) sum += (all[4] + all[5]) + (all[6] + all[7]);
    for (; i < columns; ++i) sum += weight[i] * x[i];
    y[r] = sum;
  }
}

// y = the sum of rows, each times its weight.
template <class T>
CAUTIOUS_CLONES void mix_rows(const T* weights, const T* rows, std::int64_t count, std::int64_t columns, T* __restrict y) {
  for (std::int64_t i = 0; i < columns; ++i) y[i] = 0;
  std::int64_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const T *a = rows + r * columns, *b = a + columns, *c = b + columns, *d = c + columns;
    const T wa = weights[r], wb = weights[r + 1], wc = weights[r + 2], wd = weights[r + 3];
    for (std::int64_t i = 0; i < columns; ++i) y[i] += (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i]);
  }
  for (; r < count; ++r)
    for (std::int64_t i = 0; i < columns; ++i) y[i] += weights[r] * rows[r * columns + i];
}

// Scores to their softmax.
template <class T>
CAUTIOUS_CLONES void soften_row(T* __restrict s, std::int64_t count, T scale, T cap) {
  T top = -std::numeric_limits<T>::infinity(), sum = 0;
  if (cap > 0)
    for (std::int64_t j = 0; j < count; ++j) s[j] = cap * fast_tanh(s[j] * scale / cap);
  else
    for (std::int64_t j = 0; j < count; ++j) s[j] *= scale;
#pragma omp simd reduction(max : top)
  for (std::int64_t j = 0; j < count; ++j) top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) {
    s[j] = fast_exp(s[j] - top);
    sum += s[j];
  }
  const T inverse = 1 / sum;
  for (std::int64_t j = 0; j < count; ++j) s[j] *= inverse;
}

// y = x over its root mean square, times offset + scale. Sums are in f64, as in the operations.
template <class T>
CAUTIOUS_CLONES void rms_row(const T* x, const T* __restrict scale, std::int64_t size, T offset, double eps, T* y) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < size; ++i) squares += double(x[i]) * double(x[i]);
  const T inverse = T(1 / std::sqrt(squares / double(size) + eps));
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * inverse * (offset + scale[i]);
}

// The same of the deviations from the mean; scale and bias may be null.
template <class T>
CAUTIOUS_CLONES void layer_row(const T* x, const T* scale, const T* bias, std::int64_t size, double eps, T* y) {
  double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < size; ++i) sum += double(x[i]);
  const double mean = sum / double(size);
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < size; ++i) squares += (double(x[i]) - mean) * (double(x[i]) - mean);
  const T center = T(mean), inverse = T(1 / std::sqrt(squares / double(size) + eps));
  for (std::int64_t i = 0; i < size; ++i) {
    const T y_i = (x[i] - center) * inverse * (scale != nullptr ? scale[i] : T(1));
    y[i] = bias != nullptr ? y_i + bias[i] : y_i;
  }
}

// gate = activation(gate) * up; without `up`, activation(gate).
template <class T>
CAUTIOUS_CLONES void activate(T* __restrict gate, const T* __restrict up, std::int64_t count, bool gelu) {
  constexpr T twice = T(1.5957691216057307), cubic = T(0.044715);  // sqrt(8 / pi): gelu is x sigmoid(2 b), silu x sigmoid(x)
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = gate[i], argument = gelu ? twice * x * (T(1) + cubic * x * x) : x;
    gate[i] = x / (T(1) + fast_exp(-argument)) * (up != nullptr ? up[i] : T(1));
  }
}

template <class T>
CAUTIOUS_CLONES void turn_head(T* head, const T* cosine, const T* sine, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T x1 = head[i], x2 = head[i + half];
    head[i] = x1 * cosine[i] - x2 * sine[i];
    head[i + half] = x2 * cosine[i] + x1 * sine[i];
  }
}

template <class T>
CAUTIOUS_CLONES void cap_all(T* x, std::int64_t count, T cap) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = cap * fast_tanh(x[i] / cap);
}

template <class Matrix>
std::int64_t block_rows(const Matrix& matrix) {
  return std::max<std::int64_t>(1, kBlockBytes / (matrix.columns * std::int64_t{sizeof(*matrix.weight)}));
}
template <class Matrix>
std::int64_t blocks_of(const Matrix& matrix) {
  return (matrix.rows + block_rows(matrix) - 1) / block_rows(matrix);
}

// A block of y = matrix x.
template <class Matrix, class T>
void multiply_block(const Matrix& matrix, std::int64_t block, const T* x, T* y) {
  const std::int64_t first = block * block_rows(matrix), count = std::min(block_rows(matrix), matrix.rows - first);
  rows_times<T>(matrix.weight + first * matrix.columns, x, count, matrix.columns, y + first);
  for (std::int64_t r = first; r < first + count && matrix.bias != nullptr; ++r) y[r] += matrix.bias[r];
}

// The model is written down here a second time, after transformer.cc.
static_assert(std::tuple_size_v<decltype(ModelConfig::fields())> == 34, "a new field of the model: does OneToken know it?");

}  // namespace

template <class T>
OneToken<T>::OneToken(const ModelConfig& config, const Find& find)
    : config_(config),
      embedding_(find("model.embed_tokens.weight")),
      positions_(find("model.position_embeddings.weight")),
      final_norm_{find("model.norm.weight"), find("model.norm.bias")},
      output_{find(config.tied ? "model.embed_tokens.weight" : "lm_head.weight"), find("lm_head.bias"), config.vocab,
              config.width},
      weights_(config.vocab * config.width) {
  const std::int64_t wide = config.heads * config.head_size, narrow = config.kv_heads * config.head_size;
  for (std::int64_t number = 0; number < config.layers; ++number) {
    const auto at = [&](const std::string& name) { return find(fmt::format("model.layers.{}.{}", number, name)); };
    const auto norm = [&](const std::string& name) { return Norm{at(name + ".weight"), at(name + ".bias")}; };
    const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
      weights_ += rows * columns;
      return Matrix{at(name + ".weight"), at(name + ".bias"), rows, columns};
    };
    layers_.push_back({.before_attention = norm("input_layernorm"),
                       .after_attention = norm("post_attention_layernorm"),
                       .before_mlp = norm(config.post_norm ? "pre_feedforward_layernorm" : "post_attention_layernorm"),
                       .after_mlp = norm("post_feedforward_layernorm"),
                       .q = matrix("self_attn.q_proj", wide, config.width),
                       .k = matrix("self_attn.k_proj", narrow, config.width),
                       .v = matrix("self_attn.v_proj", narrow, config.width),
                       .o = matrix("self_attn.o_proj", config.width, wide),
                       .gate = matrix("mlp.gate_proj", config.hidden, config.width),
                       .up = matrix("mlp.up_proj", config.hidden, config.width),
                       .down = matrix("mlp.down_proj", config.width, config.hidden),
                       .q_norm = at("self_attn.q_norm.weight"),
                       .k_norm = at("self_attn.k_norm.weight"),
                       .query_scale = at("self_attn.query_scale")});
  }
  const auto make = [](std::int64_t size, std::initializer_list<std::vector<T>*> rooms) {
    for (std::vector<T>* const room : rooms) room->resize(static_cast<std::size_t>(size));
  };
  make(config.width, {&x_, &normed_, &change_});
  make(wide, {&q_, &mixed_});
  make(narrow, {&k_, &v_});
  make(config.hidden, {&gate_, &up_});
  make(config.head_size, {&cosine_, &sine_, &factor_});
}

template <class T>
void OneToken<T>::prepare(std::int64_t position, const AttentionShape& shape) {
  const int threads = weights_ < kSharedEntries || at::in_parallel_region() ? 1 : at::get_num_threads();
  if (!team_ || team_->size() != threads) team_ = std::make_unique<Team>(threads);
  const auto scores = static_cast<std::size_t>(config_.kv_heads * (position + 1));
  if (scores_.size() < scores) scores_.resize(2 * scores);
  if (shape.rope.base == 0) return;
  if (speeds_.empty()) speeds_ = rope_speeds(shape.rope, shape.head_size);
  for (std::size_t i = 0; i < speeds_.size(); ++i) {
    cosine_[i] = static_cast<T>(std::cos(static_cast<double>(position) * speeds_[i]));
    sine_[i] = static_cast<T>(std::sin(static_cast<double>(position) * speeds_[i]));
  }
}

template <class T>
void OneToken<T>::run(std::int64_t token, std::int64_t position, std::span<const TokenCache<T>> caches, std::span<T> logits) {
  prepare(position, caches.front().shape);
  embed(token, position);
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    attend(layers_[number], caches[number], position);
    feed_forward(layers_[number]);
  }
  normalize(x_, final_norm_);
  multiply({{&output_, logits.data()}}, normed_.data());
  const T cap = static_cast<T>(config_.logit_softcap);
  if (cap > 0) cap_all(logits.data(), static_cast<std::int64_t>(logits.size()), cap);
}

template <class T>
void OneToken<T>::embed(std::int64_t token, std::int64_t position) {
  const T factor = config_.embedding_scale ? static_cast<T>(std::sqrt(static_cast<double>(config_.width))) : T(1);
  for (std::int64_t i = 0; i < config_.width; ++i) {
    x_[i] = embedding_[token * config_.width + i] * factor;
    if (positions_ != nullptr) x_[i] += positions_[position * config_.width + i];
  }
}

template <class T>
void OneToken<T>::normalize(const std::vector<T>& x, const Norm& norm) {
  if (config_.norm == NormKind::layer || config_.norm == NormKind::layer_affine)
    return layer_row(x.data(), norm.scale, norm.bias, config_.width, config_.norm_eps, normed_.data());
  rms_row(x.data(), norm.scale, config_.width, T(config_.norm == NormKind::rms_offset ? 1 : 0), config_.norm_eps,
          normed_.data());
}

// y = matrix x for each.
template <class T>
void OneToken<T>::multiply(std::initializer_list<Product> products, const T* x) {
  std::int64_t blocks = 0;
  for (const Product& product : products) blocks += blocks_of(*product.matrix);
  team_->run(blocks, [&](std::int64_t block) {
    const Product* of = products.begin();
    for (; block >= blocks_of(*of->matrix); ++of) block -= blocks_of(*of->matrix);
    multiply_block(*of->matrix, block, x, of->y);
  });
}

template <class T>
void OneToken<T>::add(const Norm& norm) {
  if (config_.post_norm) normalize(change_, norm);
  const std::vector<T>& change = config_.post_norm ? normed_ : change_;
  for (std::size_t i = 0; i < x_.size(); ++i) x_[i] += change[i];
}

template <class T>
void OneToken<T>::ready_head(T* head, const T* norm, const T* factor) const {
  const std::int64_t size = config_.head_size;
  if (norm != nullptr) rms_row(head, norm, size, T(config_.norm == NormKind::rms_offset ? 1 : 0), config_.norm_eps, head);
  for (std::int64_t i = 0; i < size && factor != nullptr; ++i) head[i] *= factor[i];
  if (config_.rope_base > 0) turn_head(head, cosine_.data(), sine_.data(), size / 2);
}

template <class T>
void OneToken<T>::attend(const Layer& layer, const TokenCache<T>& cache, std::int64_t position) {
  normalize(x_, layer.before_attention);
  multiply({{&layer.q, q_.data()}, {&layer.k, k_.data()}, {&layer.v, v_.data()}}, normed_.data());
  for (std::int64_t i = 0; i < config_.head_size && layer.query_scale != nullptr; ++i)  // softplus, as in the Transformer
    factor_[i] = static_cast<T>(std::log1p(std::exp(static_cast<double>(layer.query_scale[i]))) * std::numbers::log2e);
  team_->run(config_.kv_heads, [&](std::int64_t kv) { attend_group(layer, cache, position, kv); });
  multiply({{&layer.o, change_.data()}}, mixed_.data());
  add(layer.after_attention);
}

// The query heads that look at one head of keys.
template <class T>
void OneToken<T>::attend_group(const Layer& layer, const TokenCache<T>& cache, std::int64_t position, std::int64_t kv) {
  const AttentionShape& shape = cache.shape;
  const std::int64_t size = shape.head_size, group = shape.heads / shape.kv_heads;
  const std::int64_t low = shape.window > 0 ? std::max<std::int64_t>(0, position + 1 - shape.window) : 0;
  const std::int64_t seen = position + 1 - low;
  T *const keys = cache.keys + kv * cache.capacity * size, *const values = cache.values + kv * cache.capacity * size;
  T* const scores = scores_.data() + kv * (position + 1);
  std::copy_n(k_.data() + kv * size, size, keys + position * size);
  std::copy_n(v_.data() + kv * size, size, values + position * size);
  ready_head(keys + position * size, layer.k_norm, nullptr);
  for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    T* const query = q_.data() + head * size;
    ready_head(query, layer.q_norm, layer.query_scale != nullptr ? factor_.data() : nullptr);
    rows_times<T>(keys + low * size, query, seen, size, scores);
    soften_row(scores, seen, static_cast<T>(shape.scale), static_cast<T>(shape.softcap));
    mix_rows<T>(scores, values + low * size, seen, size, mixed_.data() + head * size);
  }
}

template <class T>
void OneToken<T>::feed_forward(const Layer& layer) {
  normalize(x_, layer.before_mlp);
  const bool gelu = config_.activation == Activation::gelu;
  T* const inner = config_.gated ? gate_.data() : up_.data();
  team_->run(blocks_of(layer.up), [&](std::int64_t block) {
    const std::int64_t first = block * block_rows(layer.up), count = std::min(block_rows(layer.up), config_.hidden - first);
    multiply_block(layer.up, block, normed_.data(), up_.data());
    if (config_.gated) multiply_block(layer.gate, block, normed_.data(), gate_.data());
    activate<T>(inner + first, config_.gated ? up_.data() + first : nullptr, count, gelu);
  });
  multiply({{&layer.down, change_.data()}}, inner);
  add(layer.after_mlp);
}

template class OneToken<float>;
template class OneToken<double>;

}  // namespace cautious::model::ops
