// One token through a whole model, on plain memory: what sampling waits for. There is neither autograd nor an operation per
// product; a token costs little more than reading every weight once.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/ops/ops.h"
#include "model/ops/team.h"

namespace cautious::model::ops {

// Keys, rotated, and values of the tokens before, [kv_heads, capacity, head_size] each.
template <class T>
struct TokenCache {
  AttentionShape shape;
  T *keys, *values;
  std::int64_t capacity;
};

template <class T>
class OneToken {
 public:
  // Where a parameter is, by its name in the Transformer; null if the model does not have it.
  using Find = std::function<const T*(const std::string& name)>;
  OneToken(const ModelConfig& config, const Find& find);

  // The token at `position`, after as many others; adds its keys and values to the caches, which have room, one per layer.
  // Every number is computed the same way whoever computes it: bits do not depend on the number of threads.
  void run(std::int64_t token, std::int64_t position, std::span<const TokenCache<T>> caches, std::span<T> logits);

 private:
  struct Norm {
    const T *scale, *bias;
  };
  struct Matrix {  // [rows, columns], and a bias [rows] or null
    const T *weight, *bias;
    std::int64_t rows, columns;
  };
  struct Layer {
    Norm before_attention, after_attention, before_mlp, after_mlp;
    Matrix q, k, v, o, gate, up, down;
    const T *q_norm, *k_norm, *query_scale;
  };
  struct Product {
    const Matrix* matrix;
    T* y;
  };

  void prepare(std::int64_t position, const AttentionShape& shape);
  void embed(std::int64_t token, std::int64_t position);
  void attend(const Layer& layer, const TokenCache<T>& cache, std::int64_t position);
  void attend_group(const Layer& layer, const TokenCache<T>& cache, std::int64_t position, std::int64_t kv);
  void ready_head(T* head, const T* norm, const T* factor) const;
  void feed_forward(const Layer& layer);
  void add(const Norm& norm);  // the change to x
  void normalize(const std::vector<T>& x, const Norm& norm);
  void multiply(std::initializer_list<Product> products, const T* x);

  ModelConfig config_;
  const T *embedding_, *positions_;
  Norm final_norm_;
  Matrix output_;
  std::vector<Layer> layers_;
  std::int64_t weights_;                                                // entries of all matrices
  std::vector<T> x_, normed_, q_, k_, v_, mixed_, gate_, up_, change_;  // of the token
  std::vector<T> cosine_, sine_, factor_, scores_;                      // scores: [kv_heads, some more than position]
  std::vector<double> speeds_;                                          // of rotary positions
  std::unique_ptr<Team> team_;
};

}  // namespace cautious::model::ops
