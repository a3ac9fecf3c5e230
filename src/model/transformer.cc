// The layers, and the recomputation of one in the backward pass.
#include "model/transformer.h"

#include <cmath>
#include <map>
#include <numbers>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/registered.h"

namespace cautious::model {
namespace {

using ::torch::autograd::variable_list;
using Parameters = std::map<std::string, at::Tensor>;

at::Tensor find_or_undefined(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? at::Tensor() : found->second;
}

// What a norm learns; undefined where its kind has none.
struct NormParameters {
  at::Tensor scale, bias;
};

// Which rows belong together.
struct Sequences {
  std::int64_t batch, length;
  at::Tensor starts;  // [batch, length], or undefined
};

at::Tensor normed(const at::Tensor& x, const NormParameters& norm, const ModelConfig& config, ops::Path path) {
  if (config.norm == NormKind::layer) return at::layer_norm(x, {x.size(-1)}, {}, {}, config.norm_eps);
  if (config.norm == NormKind::layer_affine) return ops::layer_norm(x, norm.scale, norm.bias, config.norm_eps, path);
  return ops::rms_norm(x, norm.scale, config.norm == NormKind::rms_offset ? 1 : 0, config.norm_eps, path);
}

// A single row, in sampling, is a product with a vector that reads a weight once; the general product would copy it first.
bool by_vector(const at::Tensor& x) { return x.size(0) == 1 && !at::GradMode::is_enabled(); }

variable_list multiplied(const at::Tensor& x, at::TensorList weights, ops::Path path) {
  if (!by_vector(x)) return ops::linears(x, weights, path);
  variable_list results;
  for (const at::Tensor& weight : weights) results.push_back(at::mv(weight, x[0]).unsqueeze(0));
  return results;
}

// A matrix of a layer, with its bias and its adapter where it has them.
struct Matrix {
  at::Tensor weight, bias;
  const Adapters::Pair* adapter = nullptr;
};

// An Error unless every entry is in [lowest, vocab).
void check_words(const at::Tensor& words, std::string_view what, std::int64_t lowest, std::int64_t vocab) {
  if (words.dim() != 2 || words.scalar_type() != at::kLong) {
    throw Error(Fault::usage, fmt::format("{} has {} sides and type {}; valid: 2 sides [batch, sequence], type Long", what,
                                          words.dim(), c10::toString(words.scalar_type())));
  }
  if (words.size(0) < 1 || words.size(1) < 1) {
    throw Error(Fault::usage,
                fmt::format("{} is [{}, {}]; batch and sequence must be at least 1", what, words.size(0), words.size(1)));
  }
  const auto least = words.min().item<std::int64_t>(), most = words.max().item<std::int64_t>();
  if (least >= lowest && most < vocab) return;
  throw Error(Fault::data, fmt::format("{} has the value {}, but the vocabulary is {}; valid: [{}, {}]", what,
                                       least < lowest ? least : most, vocab, lowest, vocab - 1));
}

}  // namespace

ops::AttentionShape attention_shape(const ModelConfig& c, std::int64_t layer) {
  const bool full = c.full_every > 0 && (layer + 1) % c.full_every == 0;
  return {.heads = c.heads,
          .kv_heads = c.kv_heads,
          .head_size = c.head_size,
          .scale = 1 / std::sqrt(c.score_size > 0 ? c.score_size : static_cast<double>(c.head_size)),
          .softcap = c.attention_softcap,
          .rope = {c.rope_base, c.rope_scaling, c.rope_factor, c.rope_low, c.rope_high, static_cast<double>(c.rope_original)},
          .window = full ? 0 : c.window};
}

struct Transformer::Layer {
  Layer(const ModelConfig& of_model, const RunOptions& options, const Parameters& parameters, std::int64_t number);
  at::Tensor run(const at::Tensor& x, const Sequences& of) const;
  at::Tensor run(const at::Tensor& x, const Attend& attend) const;

  variable_list parameters;  // all below that are defined, and the adapters'

 private:
  variable_list products(const at::Tensor& x, std::initializer_list<const Matrix*> matrices) const;
  at::Tensor attended(const at::Tensor& x, const Attend& attend) const;
  at::Tensor fed_forward(const at::Tensor& x) const;
  at::Tensor headwise(at::Tensor q, const at::Tensor& norm) const;

  ModelConfig config_;
  ops::Path path_;
  const Adapters* adapters_;
  std::int64_t number_;
  NormParameters before_attention_, after_attention_, before_mlp_, after_mlp_;
  at::Tensor q_norm_, k_norm_, query_scale_;
  Matrix q_, k_, v_, o_, gate_, up_, down_;
};

Transformer::Layer::Layer(const ModelConfig& of_model, const RunOptions& options, const Parameters& all, std::int64_t number)
    : config_(of_model), path_(options.path), adapters_(options.adapters), number_(number) {
  const auto take = [&](at::Tensor& tensor, const std::string& name) {
    tensor = find_or_undefined(all, fmt::format("model.layers.{}.{}", number, name));
    if (tensor.defined()) parameters.push_back(tensor);
  };
  const auto take_norm = [&](NormParameters& norm, const std::string& name) {
    take(norm.scale, name + ".weight");
    take(norm.bias, name + ".bias");
  };
  const auto take_matrix = [&](Matrix& matrix, const std::string& name) {
    take(matrix.weight, name + ".weight");
    take(matrix.bias, name + ".bias");
    if (adapters_) matrix.adapter = adapters_->find(fmt::format("model.layers.{}.{}.weight", number, name));
    if (matrix.adapter) parameters.insert(parameters.end(), {matrix.adapter->a, matrix.adapter->b});
  };
  take_norm(before_attention_, "input_layernorm");
  if (config_.post_norm) take_norm(after_attention_, "post_attention_layernorm");
  take_norm(before_mlp_, config_.post_norm ? "pre_feedforward_layernorm" : "post_attention_layernorm");
  if (config_.post_norm) take_norm(after_mlp_, "post_feedforward_layernorm");
  take(query_scale_, "self_attn.query_scale");
  take_matrix(q_, "self_attn.q_proj");
  take_matrix(k_, "self_attn.k_proj");
  take_matrix(v_, "self_attn.v_proj");
  take_matrix(o_, "self_attn.o_proj");
  take(q_norm_, "self_attn.q_norm.weight");
  take(k_norm_, "self_attn.k_norm.weight");
  take_matrix(gate_, "mlp.gate_proj");
  take_matrix(up_, "mlp.up_proj");
  take_matrix(down_, "mlp.down_proj");
}

variable_list Transformer::Layer::products(const at::Tensor& x, std::initializer_list<const Matrix*> matrices) const {
  variable_list weights;
  for (const Matrix* matrix : matrices) weights.push_back(matrix->weight);
  variable_list results = multiplied(x, weights, path_);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Matrix& matrix = *matrices.begin()[i];
    if (matrix.bias.defined()) results[i] = results[i] + matrix.bias;
    if (matrix.adapter) results[i] = adapters_->add_to(results[i], x, *matrix.adapter);
  }
  return results;
}

// RMSNorm of each head's chunk of q; its scale is an offset from 1 where that of the other norms is.
at::Tensor Transformer::Layer::headwise(at::Tensor q, const at::Tensor& norm) const {
  if (!norm.defined()) return q;
  const at::Tensor heads = q.view({q.size(0), -1, config_.head_size});
  return ops::rms_norm(heads, norm, config_.norm == NormKind::rms_offset ? 1 : 0, config_.norm_eps, path_).view(q.sizes());
}

at::Tensor Transformer::Layer::attended(const at::Tensor& x, const Attend& attend) const {
  const variable_list rows = products(x, {&q_, &k_, &v_});
  at::Tensor q = headwise(rows[0], q_norm_);
  if (query_scale_.defined()) {  // as in Praxis, but before the rotation; softplus(0) log2(e) is 1
    const at::Tensor factor = at::softplus(query_scale_) * std::numbers::log2e;
    q = (q.view({q.size(0), config_.heads, config_.head_size}) * factor).view(q.sizes());
  }
  return products(attend(number_, q, headwise(rows[1], k_norm_), rows[2]), {&o_}).front();
}

at::Tensor Transformer::Layer::fed_forward(const at::Tensor& x) const {
  at::Tensor inner;
  if (config_.gated) {
    const variable_list both = products(x, {&gate_, &up_});
    inner = ops::gated(both[0], both[1], config_.activation, path_);
  } else {
    inner = products(x, {&up_}).front();
    inner = config_.activation == Activation::silu ? at::silu(inner) : at::gelu(inner, "tanh");
  }
  return products(inner, {&down_}).front();
}

at::Tensor Transformer::Layer::run(const at::Tensor& x, const Sequences& of) const {
  return run(x, [&](std::int64_t, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const auto by_batch = [&](const at::Tensor& all) { return all.view({of.batch, of.length, all.size(1)}); };
    const ops::AttentionShape shape = attention_shape(config_, number_);
    return ops::attention(by_batch(q), by_batch(k), by_batch(v), shape, path_, of.starts).reshape(q.sizes());
  });
}

at::Tensor Transformer::Layer::run(const at::Tensor& x, const Attend& attend) const {
  at::Tensor change = attended(normed(x, before_attention_, config_, path_), attend);
  if (config_.post_norm) change = normed(change, after_attention_, config_, path_);
  const at::Tensor sum = x + change;
  change = fed_forward(normed(sum, before_mlp_, config_, path_));
  if (config_.post_norm) change = normed(change, after_mlp_, config_, path_);
  return sum + change;
}

// A layer as one autograd function that keeps its input alone. The layer's parameters are inputs too, so that their gradients
// go where autograd sends them.
struct Transformer::Recomputed : ::torch::autograd::Function<Recomputed> {
  struct Kept : ::torch::CustomClassHolder {
    Kept(std::shared_ptr<const Layer> of, Sequences rows) : layer(std::move(of)), sequences(std::move(rows)) {}
    std::shared_ptr<const Layer> layer;
    Sequences sequences;
  };

  static at::Tensor forward(::torch::autograd::AutogradContext* context, const at::Tensor& x, at::TensorList parameters,
                            const c10::intrusive_ptr<Kept>& kept) {
    variable_list inputs{x};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(inputs));
    context->saved_data["layer"] = at::IValue::make_capsule(kept);
    return kept->layer->run(x, kept->sequences);
  }

  static variable_list backward(::torch::autograd::AutogradContext* context, const variable_list& gradient) {
    variable_list inputs = context->get_saved_variables();  // throws if one was changed since
    const auto kept = c10::static_intrusive_pointer_cast<Kept>(context->saved_data["layer"].toCapsule());
    inputs[0] = inputs[0].detach().requires_grad_(inputs[0].requires_grad());
    variable_list wanted, result(inputs.size() + 1);  // one more, undefined, for `kept`
    for (const at::Tensor& input : inputs) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    const at::AutoGradMode with_gradients(true);
    const at::Tensor again = kept->layer->run(inputs[0], kept->sequences);
    const variable_list found = ::torch::autograd::grad({again}, wanted, gradient);
    for (std::size_t input = 0, next = 0; input < inputs.size(); ++input) {
      if (inputs[input].requires_grad()) result[input] = found[next++];
    }
    return result;
  }
};

Transformer::Transformer(const ModelConfig& config, std::uint64_t seed, RunOptions options, at::ScalarType type)
    : Transformer(config, initial_values(config, seed, type), options) {}

Transformer::Transformer(const WeightSource& source, const ModelConfig& config, RunOptions options)
    : Transformer(config, stored_values(source, config), options) {}

Transformer::Transformer(const ModelConfig& config, const std::vector<at::Tensor>& values, RunOptions options)
    : config_(config), options_(options) {
  Parameters all;
  const std::vector<Shape> shapes = parameter_shapes(config);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    all[shapes[i].name] = registered_parameter(*this, shapes[i].name, values[i], options.place);
  }
  embedding_ = all.at("model.embed_tokens.weight");
  output_ = config.tied ? embedding_ : all.at("lm_head.weight");
  output_bias_ = find_or_undefined(all, "lm_head.bias");
  final_norm_ = find_or_undefined(all, "model.norm.weight");
  final_norm_bias_ = find_or_undefined(all, "model.norm.bias");
  positions_ = find_or_undefined(all, "model.position_embeddings.weight");
  for (std::int64_t number = 0; number < config.layers; ++number) {
    layers_.push_back(std::make_shared<const Layer>(config, options, all, number));
  }
  if (!options.adapters) return;
  for (at::Tensor& parameter : parameters()) parameter.requires_grad_(false);
}

at::Tensor Transformer::embedded(const at::Tensor& tokens, const at::Tensor& positions) const {
  check_words(tokens, "tokens", 0, config_.vocab);
  at::Tensor x = at::embedding(embedding_, tokens.reshape({-1}));
  if (config_.embedding_scale) x = x * std::sqrt(static_cast<double>(config_.width));
  if (!positions_.defined()) return x;
  const std::int64_t most = positions.max().item<std::int64_t>() + 1;
  if (most > config_.context) {
    throw Error(Fault::usage, fmt::format("{} tokens, but the model has learned positions for {} only; give fewer tokens", most,
                                          config_.context));
  }
  return x + at::embedding(positions_, positions.expand(tokens.sizes()).reshape({-1}));
}

at::Tensor Transformer::hidden(const at::Tensor& tokens, const at::Tensor& starts) const {
  const at::Tensor in_window = at::arange(tokens.size(1), tokens.options());
  at::Tensor x = embedded(tokens, starts.defined() ? in_window - starts : in_window);
  const Sequences all{tokens.size(0), tokens.size(1), starts};
  for (const auto& layer : layers_) {
    if (options_.recompute && at::GradMode::is_enabled()) {
      const at::TensorList parameters = layer->parameters;
      x = Recomputed::apply(x, parameters, c10::make_intrusive<Recomputed::Kept>(layer, all));
    } else {
      x = layer->run(x, all);
    }
  }
  return normed(x, {final_norm_, final_norm_bias_}, config_, options_.path);
}

at::Tensor Transformer::loss(const at::Tensor& tokens, const at::Tensor& target, const at::Tensor& starts) {
  check_words(target, "target", -1, config_.vocab);
  if (tokens.sizes() != target.sizes()) {
    throw Error(Fault::usage, fmt::format("target is [{}], but tokens is [{}]; their shapes must be equal",
                                          fmt::join(target.sizes(), ", "), fmt::join(tokens.sizes(), ", ")));
  }
  return ops::cross_entropy(hidden(tokens, starts), output_, output_bias_, target.reshape({-1}), config_.logit_softcap,
                            options_.path);
}

at::Tensor Transformer::hidden(const at::Tensor& tokens, const at::Tensor& positions, const Attend& attend) const {
  at::Tensor x = embedded(tokens, positions);
  for (const auto& layer : layers_) x = layer->run(x, attend);
  return normed(x, {final_norm_, final_norm_bias_}, config_, options_.path);
}

at::Tensor Transformer::logits_of(const at::Tensor& rows) const {
  at::Tensor logits;
  if (by_vector(rows)) {
    logits = at::mv(output_, rows[0]).unsqueeze(0);
    if (output_bias_.defined()) logits += output_bias_;
  } else {
    logits = at::linear(rows, output_, output_bias_);
  }
  return config_.logit_softcap > 0 ? (logits / config_.logit_softcap).tanh() * config_.logit_softcap : logits;
}

at::Tensor Transformer::logits(const at::Tensor& tokens) {
  return logits_of(hidden(tokens)).view({tokens.size(0), tokens.size(1), config_.vocab});
}

}  // namespace cautious::model
