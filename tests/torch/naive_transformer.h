// The Transformer again in naive double precision, one sequence, one number at a time. It shares no line with the module or its
// operations; it only knows the names of the parameters.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/config.h"

namespace cautious {

using Tensors = std::map<std::string, at::Tensor>;

class NaiveTransformer {
 public:
  NaiveTransformer(const model::ModelConfig& config, Tensors parameters) : c_(config), p_(std::move(parameters)) {}

  std::vector<std::vector<double>> logits(const std::vector<std::int64_t>& tokens) {
    Rows x;
    for (const std::int64_t token : tokens) {
      const auto position = std::int64_t(x.size());
      x.emplace_back();
      const double factor = c_.embedding_scale ? std::sqrt(double(c_.width)) : 1;
      for (std::int64_t i = 0; i < c_.width; ++i) {
        x.back().push_back(factor * at("model.embed_tokens.weight", token, i));
        if (c_.learned_positions) x.back().back() += at("model.position_embeddings.weight", position, i);
      }
    }
    for (std::int64_t n = 0; n < c_.layers; ++n) {
      full_ = c_.window == 0 || (c_.full_every > 0 && n % c_.full_every == c_.full_every - 1);
      run_layer(x, "model.layers." + std::to_string(n) + ".");
    }
    Rows result;
    for (const Row& row : x) {
      Row out = times(norm(row, "model.norm.weight"), c_.tied ? "model.embed_tokens" : "lm_head");
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (c_.tied && c_.output_bias) out[i] += at("lm_head.bias", i);
        out[i] = cap(out[i], c_.logit_softcap);
      }
      result.push_back(out);
    }
    return result;
  }

 private:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  double at(const std::string& name, std::int64_t i) { return p_.at(name).data_ptr<double>()[i]; }
  double at(const std::string& name, std::int64_t i, std::int64_t j) { return at(name, i * p_.at(name).size(1) + j); }
  static double cap(double x, double by) { return by > 0 ? by * std::tanh(x / by) : x; }

  Row rms(Row x, const std::string& scale) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double root = std::sqrt(squares / double(x.size()) + c_.norm_eps);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= ((c_.norm == model::NormKind::rms_offset ? 1 : 0) + at(scale, i)) / root;
    return x;
  }

  Row norm(Row x, const std::string& scale) {
    const bool affine = c_.norm == model::NormKind::layer_affine;
    if (c_.norm != model::NormKind::layer && !affine) return rms(x, scale);
    double mean = 0, squares = 0;
    for (const double v : x) mean += v / double(x.size());
    for (const double v : x) squares += (v - mean) * (v - mean);
    for (double& v : x) v = (v - mean) / std::sqrt(squares / double(x.size()) + c_.norm_eps);
    const std::string bias = scale.substr(0, scale.rfind('.')) + ".bias";
    for (std::size_t i = 0; i < x.size() && affine; ++i) x[i] = x[i] * at(scale, i) + at(bias, i);
    return x;
  }

  Row times(const Row& x, const std::string& name) {
    Row y;
    for (std::int64_t o = 0; o < p_.at(name + ".weight").size(0); ++o) {
      y.push_back(p_.count(name + ".bias") ? at(name + ".bias", o) : 0);
      for (std::size_t i = 0; i < x.size(); ++i) y.back() += at(name + ".weight", o, i) * x[i];
    }
    return y;
  }

  // Of rotary positions, by wavelengths as Llama 3.1 was published.
  double speed(double unscaled) const {
    if (c_.rope_scaling == model::RopeScaling::none) return unscaled;
    if (c_.rope_scaling == model::RopeScaling::linear) return unscaled / c_.rope_factor;
    const double length = 2 * std::numbers::pi / unscaled, original = double(c_.rope_original);
    if (length < original / c_.rope_high) return unscaled;
    if (length > original / c_.rope_low) return unscaled / c_.rope_factor;
    const double smooth = (original / length - c_.rope_low) / (c_.rope_high - c_.rope_low);
    return (1 - smooth) * unscaled / c_.rope_factor + smooth * unscaled;
  }

  // The heads of one token's queries or keys, ready for the products.
  Rows heads(const Row& x, const std::string& norm_name, const std::string& scale_name, std::size_t position) {
    Rows result;
    const std::size_t size = c_.head_size;
    for (std::size_t begin = 0; begin < x.size(); begin += size) {
      Row head(x.begin() + begin, x.begin() + begin + size);
      if (p_.count(norm_name)) head = rms(head, norm_name);
      for (std::size_t i = 0; i < size && p_.count(scale_name); ++i) head[i] *= std::log2(1 + std::exp(at(scale_name, i)));
      for (std::size_t i = 0; i < size / 2 && c_.rope_base > 0; ++i) {
        const double angle = double(position) * speed(std::pow(c_.rope_base, -2.0 * double(i) / double(size)));
        const double a = head[i], b = head[i + size / 2];
        head[i] = a * std::cos(angle) - b * std::sin(angle);
        head[i + size / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
      result.push_back(head);
    }
    return result;
  }

  Row attended(const std::vector<Rows>& q, const std::vector<Rows>& k, const Rows& v, std::size_t t) {
    Row out(c_.heads * c_.head_size);
    for (std::int64_t h = 0; h < c_.heads; ++h) {
      const std::int64_t g = h / (c_.heads / c_.kv_heads);
      Row weight;
      double sum = 0;
      const std::size_t first = full_ || t + 1 < std::size_t(c_.window) ? 0 : t + 1 - std::size_t(c_.window);
      for (std::size_t s = first; s <= t; ++s) {
        double score = 0;
        for (std::int64_t i = 0; i < c_.head_size; ++i) score += q[t][h][i] * k[s][g][i];
        weight.push_back(
            std::exp(cap(score / std::sqrt(c_.score_size > 0 ? c_.score_size : double(c_.head_size)), c_.attention_softcap)));
        sum += weight.back();
      }
      for (std::size_t s = first; s <= t; ++s) {
        for (std::int64_t i = 0; i < c_.head_size; ++i)
          out[h * c_.head_size + i] += weight[s - first] / sum * v[s][g * c_.head_size + i];
      }
    }
    return out;
  }

  Row fed_forward(const Row& x, const std::string& mlp) {
    const Row up = times(x, mlp + "up_proj");
    Row gate = c_.gated ? times(x, mlp + "gate_proj") : up;
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i], inner = std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
      gate[i] = (c_.gated ? up[i] : 1) *
                (c_.activation == model::Activation::silu ? g / (1 + std::exp(-g)) : g / 2 * (1 + std::tanh(inner)));
    }
    return times(gate, mlp + "down_proj");
  }

  void add(Row& x, const Row& change, const std::string& norm_name) {
    const Row y = c_.post_norm ? norm(change, norm_name) : change;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  void run_layer(Rows& x, const std::string& layer) {
    const std::string attn = layer + "self_attn.", post = layer + "post_attention_layernorm.weight";
    std::vector<Rows> q, k;
    Rows v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row y = norm(x[t], layer + "input_layernorm.weight");
      q.push_back(heads(times(y, attn + "q_proj"), attn + "q_norm.weight", attn + "query_scale", t));
      k.push_back(heads(times(y, attn + "k_proj"), attn + "k_norm.weight", "none", t));
      v.push_back(times(y, attn + "v_proj"));
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      add(x[t], times(attended(q, k, v, t), attn + "o_proj"), post);
      const Row y = norm(x[t], c_.post_norm ? layer + "pre_feedforward_layernorm.weight" : post);
      add(x[t], fed_forward(y, layer + "mlp."), layer + "post_feedforward_layernorm.weight");
    }
  }

  model::ModelConfig c_;
  Tensors p_;
  bool full_ = true;  // the layer sees all tokens before one
};

}  // namespace cautious
