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

// With `norm` layer there is no scale.
at::Tensor normed(const at::Tensor& x, const at::Tensor& scale, const ModelConfig& config, ops::Path path) {
  if (config.norm == NormKind::layer) return at::layer_norm(x, {x.size(-1)}, {}, {}, config.norm_eps);
  return ops::rms_norm(x, scale, config.norm == NormKind::rms_offset ? 1 : 0, config.norm_eps, path);
}

// A single row, in sampling, is a product with a vector that reads a weight once; the general product would copy it first.
bool by_vector(const at::Tensor& x) { return x.size(0) == 1 && !at::GradMode::is_enabled(); }

variable_list products(const at::Tensor& x, at::TensorList weights, ops::Path path) {
  if (!by_vector(x)) return ops::linears(x, weights, path);
  variable_list results;
  for (const at::Tensor& weight : weights) results.push_back(at::mv(weight, x[0]).unsqueeze(0));
  return results;
}

at::Tensor initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape.sides, at::TensorOptions(type));
  const auto size = static_cast<std::size_t>(tensor.numel());
  if (type == at::kFloat) {
    fill_initial(config, shape, seed, std::span(tensor.data_ptr<float>(), size));
  } else {
    fill_initial(config, shape, seed, std::span(tensor.data_ptr<double>(), size));
  }
  return tensor;
}

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

ops::AttentionShape attention_shape(const ModelConfig& c) {
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_size));
  return {c.heads, c.kv_heads, c.head_size, scale, c.attention_softcap, c.rope_base};
}

struct Transformer::Layer {
  Layer(const ModelConfig& of_model, ops::Path by_path, const Parameters& parameters, std::int64_t number);
  at::Tensor run(const at::Tensor& x, std::int64_t batch, std::int64_t sequence) const;
  at::Tensor run(const at::Tensor& x, const Attend& attend) const;

  variable_list parameters;  // all below that are defined

 private:
  at::Tensor attended(const at::Tensor& x, const Attend& attend) const;
  at::Tensor fed_forward(const at::Tensor& x) const;
  at::Tensor headwise(at::Tensor q, const at::Tensor& norm) const;

  ModelConfig config_;
  ops::Path path_;
  std::int64_t number_;
  at::Tensor before_attention_, after_attention_, before_mlp_, after_mlp_;  // scales of the norms
  at::Tensor q_, k_, v_, o_, q_norm_, k_norm_, query_scale_;
  at::Tensor gate_, gate_bias_, up_, up_bias_, down_, down_bias_;
};

Transformer::Layer::Layer(const ModelConfig& of_model, ops::Path by_path, const Parameters& all, std::int64_t number)
    : config_(of_model), path_(by_path), number_(number) {
  const auto take = [&](at::Tensor& tensor, const char* name) {
    tensor = find_or_undefined(all, fmt::format("model.layers.{}.{}", number, name));
    if (tensor.defined()) parameters.push_back(tensor);
  };
  take(before_attention_, "input_layernorm.weight");
  if (config_.post_norm) take(after_attention_, "post_attention_layernorm.weight");
  take(before_mlp_, config_.post_norm ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight");
  if (config_.post_norm) take(after_mlp_, "post_feedforward_layernorm.weight");
  take(query_scale_, "self_attn.query_scale");
  take(q_, "self_attn.q_proj.weight");
  take(k_, "self_attn.k_proj.weight");
  take(v_, "self_attn.v_proj.weight");
  take(o_, "self_attn.o_proj.weight");
  take(q_norm_, "self_attn.q_norm.weight");
  take(k_norm_, "self_attn.k_norm.weight");
  take(gate_, "mlp.gate_proj.weight");
  take(gate_bias_, "mlp.gate_proj.bias");
  take(up_, "mlp.up_proj.weight");
  take(up_bias_, "mlp.up_proj.bias");
  take(down_, "mlp.down_proj.weight");
  take(down_bias_, "mlp.down_proj.bias");
}

// RMSNorm of each head's chunk of q; its scale is an offset from 1 where that of the other norms is.
at::Tensor Transformer::Layer::headwise(at::Tensor q, const at::Tensor& norm) const {
  if (!norm.defined()) return q;
  const at::Tensor heads = q.view({q.size(0), -1, config_.head_size});
  return ops::rms_norm(heads, norm, config_.norm == NormKind::rms_offset ? 1 : 0, config_.norm_eps, path_).view(q.sizes());
}

at::Tensor Transformer::Layer::attended(const at::Tensor& x, const Attend& attend) const {
  const variable_list rows = products(x, {q_, k_, v_}, path_);
  at::Tensor q = headwise(rows[0], q_norm_);
  if (query_scale_.defined()) {  // as in Praxis, but before the rotation; softplus(0) log2(e) is 1
    const at::Tensor factor = at::softplus(query_scale_) * std::numbers::log2e;
    q = (q.view({q.size(0), config_.heads, config_.head_size}) * factor).view(q.sizes());
  }
  return products(attend(number_, q, headwise(rows[1], k_norm_), rows[2]), {o_}, path_).front();
}

at::Tensor Transformer::Layer::fed_forward(const at::Tensor& x) const {
  const auto biased = [](const at::Tensor& rows, const at::Tensor& bias) { return bias.defined() ? rows + bias : rows; };
  const variable_list both = products(x, {gate_, up_}, path_);
  const at::Tensor inner = ops::gated(biased(both[0], gate_bias_), biased(both[1], up_bias_), config_.activation, path_);
  return biased(products(inner, {down_}, path_).front(), down_bias_);
}

at::Tensor Transformer::Layer::run(const at::Tensor& x, std::int64_t batch, std::int64_t sequence) const {
  return run(x, [&](std::int64_t, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const auto by_batch = [&](const at::Tensor& all) { return all.view({batch, sequence, all.size(1)}); };
    return ops::attention(by_batch(q), by_batch(k), by_batch(v), attention_shape(config_), path_).reshape(q.sizes());
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
    Kept(std::shared_ptr<const Layer> of, std::int64_t sequences, std::int64_t tokens)
        : layer(std::move(of)), batch(sequences), sequence(tokens) {}
    std::shared_ptr<const Layer> layer;
    std::int64_t batch, sequence;
  };

  static at::Tensor forward(::torch::autograd::AutogradContext* context, const at::Tensor& x, at::TensorList parameters,
                            const c10::intrusive_ptr<Kept>& kept) {
    variable_list inputs{x};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(inputs));
    context->saved_data["layer"] = at::IValue::make_capsule(kept);
    return kept->layer->run(x, kept->batch, kept->sequence);
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
    const at::Tensor again = kept->layer->run(inputs[0], kept->batch, kept->sequence);
    const variable_list found = ::torch::autograd::grad({again}, wanted, gradient);
    for (std::size_t input = 0, next = 0; input < inputs.size(); ++input) {
      if (inputs[input].requires_grad()) result[input] = found[next++];
    }
    return result;
  }
};

Transformer::Transformer(const ModelConfig& config, std::uint64_t seed, RunOptions options, at::ScalarType type)
    : config_(config), options_(options) {
  if (type != at::kFloat && type != at::kDouble) {
    throw Error(Fault::usage, fmt::format("model's type is {}; choices: Float, Double", c10::toString(type)));
  }
  Parameters all;
  for (const Shape& shape : parameter_shapes(config)) {
    all[shape.name] = registered_parameter(*this, shape.name, initial(config, shape, seed, type));
  }
  embedding_ = all.at("model.embed_tokens.weight");
  output_ = config.tied ? embedding_ : all.at("lm_head.weight");
  output_bias_ = find_or_undefined(all, "lm_head.bias");
  final_norm_ = find_or_undefined(all, "model.norm.weight");
  for (std::int64_t number = 0; number < config.layers; ++number) {
    layers_.push_back(std::make_shared<const Layer>(config, options.path, all, number));
  }
}

at::Tensor Transformer::embedded(const at::Tensor& tokens) const {
  check_words(tokens, "tokens", 0, config_.vocab);
  const at::Tensor x = at::embedding(embedding_, tokens.reshape({-1}));
  return config_.norm == NormKind::rms_offset ? x * std::sqrt(static_cast<double>(config_.width)) : x;  // as Gemma
}

at::Tensor Transformer::hidden(const at::Tensor& tokens) const {
  at::Tensor x = embedded(tokens);
  const std::int64_t batch = tokens.size(0), sequence = tokens.size(1);
  for (const auto& layer : layers_) {
    if (options_.recompute && at::GradMode::is_enabled()) {
      const at::TensorList parameters = layer->parameters;
      x = Recomputed::apply(x, parameters, c10::make_intrusive<Recomputed::Kept>(layer, batch, sequence));
    } else {
      x = layer->run(x, batch, sequence);
    }
  }
  return normed(x, final_norm_, config_, options_.path);
}

at::Tensor Transformer::loss(const at::Tensor& tokens, const at::Tensor& target) {
  check_words(target, "target", -1, config_.vocab);
  if (tokens.sizes() != target.sizes()) {
    throw Error(Fault::usage, fmt::format("target is [{}], but tokens is [{}]; their shapes must be equal",
                                          fmt::join(target.sizes(), ", "), fmt::join(tokens.sizes(), ", ")));
  }
  return ops::cross_entropy(hidden(tokens), output_, output_bias_, target.reshape({-1}), config_.logit_softcap, options_.path);
}

at::Tensor Transformer::hidden(const at::Tensor& tokens, const Attend& attend) const {
  at::Tensor x = embedded(tokens);
  for (const auto& layer : layers_) x = layer->run(x, attend);
  return normed(x, final_norm_, config_, options_.path);
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
