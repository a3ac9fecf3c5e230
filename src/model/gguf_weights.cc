// A model in a GGUF file: the reverse of gguf_model.cc, whose list of tensors the file is held against.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/gguf.h"
#include "base/stored_floats.h"
#include "base/text.h"
#include "model/family.h"
#include "model/gguf_model.h"
#include "model/weight_files.h"

namespace cautious::model {
namespace {

struct LoadableType {
  std::string_view name;
  base::StoredFloat type;
};
constexpr std::array kLoadable{LoadableType{"F32", base::StoredFloat::f32}, LoadableType{"F16", base::StoredFloat::f16},
                               LoadableType{"BF16", base::StoredFloat::bf16}, LoadableType{"Q8_0", base::StoredFloat::q8_0}};

// The values of an architecture. Errors have no file yet.
class GgufKeys {
 public:
  explicit GgufKeys(const base::GgufHeader& header) : header_(header) {
    const base::GgufValue* const found = header.find("general.architecture");
    const auto* const name = found == nullptr ? nullptr : std::get_if<std::string>(found);
    if (name == nullptr) refuse("it has no general.architecture");
    constexpr std::array<std::string_view, 7> known{"llama", "qwen2", "qwen3", "olmo", "gemma", "gemma2", "gpt2"};
    architecture_ = known[base::index_of_name("architecture", *name, known)];
    if (const base::GgufValue* parts = header.find("split.count"); parts != nullptr && whole(*parts) > 1)
      refuse("it is one of several files; join them first");
  }

  std::string_view architecture() const { return architecture_; }
  bool has(std::string_view tensor) const { return this->tensor(tensor) != nullptr; }
  const base::GgufTensor* tensor(std::string_view name) const {
    const auto found = std::ranges::find(header_.tensors, name, &base::GgufTensor::name);
    return found == header_.tensors.end() ? nullptr : &*found;
  }

  std::int64_t count(std::string_view key, std::int64_t usual = -1) {
    const base::GgufValue* const found = find(key);
    if (found == nullptr && usual < 0) refuse(fmt::format("it has no {}.{}", architecture_, key));
    const std::int64_t value = found == nullptr ? usual : whole(*found);
    if (value < 0) refuse(fmt::format("{}.{} is not a whole number", architecture_, key));
    return value;
  }

  // As it was written: 1e-5, not the f32 next to it.
  double number(std::string_view key, double usual) {
    const base::GgufValue* const found = find(key);
    if (found == nullptr) return usual;
    const auto* const value = std::get_if<float>(found);
    if (value == nullptr || !std::isfinite(*value)) refuse(fmt::format("{}.{} is not a number", architecture_, key));
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *value).ptr;
    return base::parsed<double>({text.data(), end}).value_or(*value);
  }

  std::string text(std::string_view key, const std::string& usual) {
    const base::GgufValue* const found = find(key);
    const auto* const value = found == nullptr ? nullptr : std::get_if<std::string>(found);
    return value == nullptr ? usual : *value;
  }

  // What is not known could mean another model.
  void refuse_others() const {
    const std::string before = std::string(architecture_) + ".";
    for (const auto& [key, value] : header_.metadata) {
      const bool empty = (key.ends_with(".expert_count") || key.ends_with(".expert_used_count")) && whole(value) == 0;
      if (key.starts_with(before) && !asked_.contains(key.substr(before.size())) && !empty)
        refuse(fmt::format("it has the key {}, which is not known", base::in_quotes(key)));
    }
  }

  [[noreturn]] static void refuse(const std::string& what) { throw Error(Fault::data, what); }

 private:
  const base::GgufValue* find(std::string_view key) {
    asked_.insert(std::string(key));
    return header_.find(fmt::format("{}.{}", architecture_, key));
  }

  // -1 if it is none.
  static std::int64_t whole(const base::GgufValue& value) {
    if (const auto* const number = std::get_if<std::uint32_t>(&value)) return *number;
    if (const auto* const number = std::get_if<std::uint16_t>(&value)) return *number;
    if (const auto* const number = std::get_if<std::int32_t>(&value)) return *number;
    const auto* const large = std::get_if<std::uint64_t>(&value);
    return large == nullptr || *large > 1'000'000'000 ? -1 : static_cast<std::int64_t>(*large);
  }

  const base::GgufHeader& header_;
  std::string_view architecture_;
  std::set<std::string> asked_;
};

void gguf_sizes(GgufKeys& keys, ModelConfig& c) {
  c.context = keys.count("context_length");
  c.width = keys.count("embedding_length");
  c.layers = keys.count("block_count");
  c.hidden = keys.count("feed_forward_length");
  c.heads = keys.count("attention.head_count");
  c.kv_heads = keys.count("attention.head_count_kv", c.heads);
  if (c.heads == 0) GgufKeys::refuse("it has no attention heads");
  c.head_size = keys.count("attention.key_length", c.width / c.heads);
  if (keys.count("attention.value_length", c.head_size) != c.head_size ||
      keys.count("rope.dimension_count", c.head_size) != c.head_size)
    GgufKeys::refuse("attention.key_length, attention.value_length and rope.dimension_count differ");
  const base::GgufTensor* const embedding = keys.tensor("token_embd.weight");
  if (embedding == nullptr || embedding->sides.size() != 2) GgufKeys::refuse("it has no tensor token_embd.weight");
  c.vocab = embedding->sides.front();
  (void)keys.count("vocab_size", c.vocab);  // some files count tokens, others rows
  c.tied = !keys.has("output.weight");
  c.qkv_bias = keys.has("blk.0.attn_q.bias");
  c.o_bias = keys.has("blk.0.attn_output.bias");
  c.ffn_bias = keys.has("blk.0.ffn_up.bias");
}

void gguf_rotation(GgufKeys& keys, ModelConfig& c) {
  c.rope_base = keys.number("rope.freq_base", 10000);
  if (c.rope_base <= 0) GgufKeys::refuse(fmt::format("rope.freq_base is {}; valid: a number > 0", c.rope_base));
  const std::string scaling = keys.text("rope.scaling.type", "none");
  const double factor = keys.number("rope.scaling.factor", 1);
  if (scaling != "none" && scaling != "linear")
    GgufKeys::refuse(fmt::format("rope.scaling.type is {}; valid: none, linear", base::in_quotes(scaling)));
  if (scaling == "none") return;
  c.rope_scaling = RopeScaling::linear;
  c.rope_factor = factor;
}

void gguf_gemma2(GgufKeys& keys, ModelConfig& c) {
  c.post_norm = true;
  c.attention_softcap = keys.number("attn_logit_softcapping", 50);
  c.logit_softcap = keys.number("final_logit_softcapping", 30);
  c.window = keys.count("attention.sliding_window", 4096);
  c.full_every = kGemma2FullEvery;
  if (c.layers == 46) c.score_size = static_cast<double>(c.width / c.heads);
}

ModelConfig gguf_config(GgufKeys& keys) {
  const std::string_view architecture = keys.architecture();
  ModelConfig c;
  gguf_sizes(keys, c);
  const bool layer_norm = architecture == "olmo" || architecture == "gpt2";
  c.norm_eps = keys.number(layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
  c.qk_norm = architecture == "qwen3";
  if (architecture == "olmo") c.norm = NormKind::layer;
  if (architecture == "gpt2") {
    c.norm = NormKind::layer_affine;
    c.learned_positions = c.qkv_bias = c.o_bias = c.ffn_bias = true;
    c.gated = false;
    c.activation = Activation::gelu;
    c.rope_base = 0;
  } else {
    gguf_rotation(keys, c);
  }
  if (architecture.starts_with("gemma")) {
    c.norm = NormKind::rms_offset;
    c.embedding_scale = true;
    c.activation = Activation::gelu;
  }
  if (architecture == "gemma2") gguf_gemma2(keys, c);
  keys.refuse_others();
  return c;
}

class GgufModel : public WeightSource {
 public:
  explicit GgufModel(const std::filesystem::path& file) : file_(file), mapped_(file) {
    header_ = base::parse_gguf(mapped_.bytes(), file.string());
    try {
      GgufKeys keys(header_);
      config_ = gguf_config(keys);
      check(config_);
      if (const base::GgufTensor* factors = keys.tensor("rope_freqs.weight")) read_factors(*factors);
      if (gguf_architecture(config_) != keys.architecture())
        GgufKeys::refuse(fmt::format("its tensors are not those of the architecture {}", keys.architecture()));
      find_all();
    } catch (const Error& error) {
      throw Error(Fault::data, fmt::format("{}: {}", file.string(), error.what()));
    }
  }

  const ModelConfig& config() const override { return config_; }
  const std::filesystem::path& path() const override { return file_; }

  void read(const Shape& shape, std::span<float> values) const override {
    const Origin& origin = origins_.at(shape.name);
    load(*origin.tensor, origin.first, values);
    if (origin.rotated_heads > 0) rotate_rows(values, shape.sides.front(), origin.rotated_heads, Rotation::back);
    for (float& value : values) value -= origin.added;
    check_finite(shape, values, file_);
  }

 private:
  struct Origin {
    const base::GgufTensor* tensor;
    std::size_t first;  // of its numbers
    std::int64_t rotated_heads;
    float added;
  };

  void load(const base::GgufTensor& tensor, std::size_t first, std::span<float> values) const {
    const base::StoredFloat type = std::ranges::find(kLoadable, tensor.type->name, &LoadableType::name)->type;
    const std::size_t begin = base::stored_bytes(type, first), size = base::stored_bytes(type, values.size());
    base::load_stored(mapped_.bytes().subspan(header_.data + tensor.begin + begin, size), type, values);
  }

  static void check_type(const base::GgufTensor& tensor) {
    if (std::ranges::find(kLoadable, tensor.type->name, &LoadableType::name) == kLoadable.end()) {
      GgufKeys::refuse(fmt::format("tensor '{}' has the type {}; valid: F32, F16, BF16, Q8_0; get the model in one of these",
                                   tensor.name, tensor.type->name));
    }
  }

  // Llama 3's scaling is there as its factors alone; they must be those of its own numbers.
  void read_factors(const base::GgufTensor& tensor) {
    check_type(tensor);
    if (tensor.sides != std::vector<std::int64_t>{config_.head_size / 2}) GgufKeys::refuse("rope_freqs.weight has other sides");
    std::vector<float> factors(static_cast<std::size_t>(config_.head_size / 2));
    load(tensor, 0, factors);
    config_.rope_scaling = RopeScaling::llama3;
    config_.rope_factor = *std::ranges::max_element(factors);
    const std::vector<float> expected = config_.rope_factor > 0 ? rotation_factors(config_) : std::vector<float>{};
    if (!std::ranges::equal(factors, expected, [](float a, float b) { return std::abs(a - b) <= 1e-4f * b; }))
      GgufKeys::refuse("rope_freqs.weight has other factors than Llama 3");
  }

  void find_all() {
    std::map<std::string_view, const base::GgufTensor*> left;
    for (const base::GgufTensor& tensor : header_.tensors) left.emplace(tensor.name, &tensor);
    for (const GgufPart& part : gguf_parts(config_)) {
      const auto found = left.find(part.name);
      if (found == left.end()) GgufKeys::refuse(fmt::format("there is no tensor '{}'", part.name));
      const base::GgufTensor& tensor = *found->second;
      if (tensor.sides != part.sides) {
        GgufKeys::refuse(fmt::format("tensor '{}' is [{}], the model has [{}]", part.name, fmt::join(tensor.sides, ", "),
                                     fmt::join(part.sides, ", ")));
      }
      check_type(tensor);
      std::size_t first = 0;
      for (const Shape& shape : part.from) {
        origins_[shape.name] = {&tensor, first, part.rotated_heads, part.added};
        first += static_cast<std::size_t>(entries(shape));
      }
      left.erase(found);
    }
    if (!left.empty()) GgufKeys::refuse(fmt::format("tensor {} is not in the model", base::in_quotes(left.begin()->first)));
  }

  std::filesystem::path file_;
  base::MappedFile mapped_;
  base::GgufHeader header_;
  ModelConfig config_;
  std::map<std::string, Origin> origins_;
};

}  // namespace

std::unique_ptr<const WeightSource> open_gguf(const std::filesystem::path& file) {
  return std::make_unique<const GgufModel>(file);
}

}  // namespace cautious::model
