// A folder of config.json and safetensors: where each of our tensors is in it, under whose name and in which layout.
#include "model/weight_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/stored_floats.h"
#include "base/text.h"
#include "model/family.h"
#include "model/json_keys.h"
#include "model/lora.h"
#include "model/weight_files.h"

namespace cautious::model {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr base::Reading kDescription{.most = std::size_t{1} << 26U};

std::string sides_text(const std::vector<std::int64_t>& sides) { return fmt::format("[{}]", fmt::join(sides, ", ")); }

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// GPT-2 stores matrices as [in, out], and queries, keys and values side by side.
struct Gpt2Name {
  std::string_view ours, theirs;
  bool product = false;  // of a matrix and perhaps a bias
  std::size_t part = 0, parts = 1;
};
constexpr std::array kGpt2Ends{Gpt2Name{"model.embed_tokens.", "wte."}, Gpt2Name{"model.position_embeddings.", "wpe."},
                               Gpt2Name{"model.norm.", "ln_f."}};
constexpr std::array kGpt2Layer{Gpt2Name{"input_layernorm.", "ln_1."},
                                Gpt2Name{"self_attn.q_proj.", "attn.c_attn.", true, 0, 3},
                                Gpt2Name{"self_attn.k_proj.", "attn.c_attn.", true, 1, 3},
                                Gpt2Name{"self_attn.v_proj.", "attn.c_attn.", true, 2, 3},
                                Gpt2Name{"self_attn.o_proj.", "attn.c_proj.", true},
                                Gpt2Name{"post_attention_layernorm.", "ln_2."},
                                Gpt2Name{"mlp.up_proj.", "mlp.c_fc.", true},
                                Gpt2Name{"mlp.down_proj.", "mlp.c_proj.", true}};

// Which stored tensor one of ours is, or is a part of.
struct Wanted {
  Shape stored;
  bool transposed = false;
  std::int64_t first = 0;  // of the stored rows' entries
};

Wanted renamed(const Shape& shape, std::string_view rest, const std::string& before, std::span<const Gpt2Name> names) {
  for (const Gpt2Name& name : names) {
    if (!rest.starts_with(name.ours)) continue;
    Wanted wanted{{before + std::string(name.theirs) + std::string(rest.substr(name.ours.size())), shape.sides}};
    if (!name.product) return wanted;
    wanted.transposed = shape.sides.size() == 2;
    if (wanted.transposed) std::swap(wanted.stored.sides[0], wanted.stored.sides[1]);
    wanted.first = static_cast<std::int64_t>(name.part) * shape.sides[0];
    wanted.stored.sides.back() *= static_cast<std::int64_t>(name.parts);
    return wanted;
  }
  return {shape};
}

Wanted of_gpt2(const Shape& shape, const std::string& prefix) {
  constexpr std::string_view kLayers = "model.layers.";
  const std::string_view name = shape.name;
  if (!name.starts_with(kLayers)) return renamed(shape, name, prefix, kGpt2Ends);
  const std::size_t dot = name.find('.', kLayers.size());
  const std::string_view number = name.substr(kLayers.size(), dot - kLayers.size());
  return renamed(shape, name.substr(dot + 1), fmt::format("{}h.{}.", prefix, number), kGpt2Layer);
}

// Tables that are computed, which older files store beside the weights.
bool is_table(std::string_view name, bool gpt2) {
  if (gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return name.ends_with(".rotary_emb.inv_freq");
}

struct Shards {
  std::map<std::string, std::filesystem::path> of_tensor;
  std::set<std::filesystem::path> files;
};

Shards read_index(const std::filesystem::path& file) {
  return read_described<Shards>(base::read_file(file, kDescription), file.string(), [&](const Keys& keys) {
    const Json* const map = keys.find("weight_map");
    if (map == nullptr) Keys::refuse("there is no key 'weight_map'");
    Shards shards;
    for (const auto& [tensor, name] : Keys(*map).items()) {
      const std::filesystem::path shard = name.is_string() ? name.get<std::string>() : std::string();
      if (shard.empty() || shard != shard.filename() || shard == "." || shard == "..") {
        Keys::refuse(fmt::format("tensor {} is in {}; valid: the name of a file in this folder", base::in_quotes(tensor),
                                 base::in_quotes(name.dump())));
      }
      shards.of_tensor[tensor] = file.parent_path() / shard;
      shards.files.insert(file.parent_path() / shard);
    }
    return shards;
  });
}

class StoredModel : public WeightSource {
 public:
  explicit StoredModel(const std::filesystem::path& folder);
  const ModelConfig& config() const override { return config_; }
  const std::filesystem::path& path() const override { return folder_; }
  void read(const Shape& shape, std::span<float> values) const override;

 private:
  struct Opened {
    std::filesystem::path path;
    base::Safetensors file;
  };
  struct Origin {
    const Opened* from;
    const base::TensorInfo* tensor;
    bool transposed;
    std::int64_t first;
  };

  void open_shards(const std::filesystem::path& index);
  const Opened& with(const std::string& tensor) const;
  std::optional<std::string> gpt2_prefix() const;
  void check_output(const Opened& from, const base::TensorInfo& output) const;
  void find_all();

  std::filesystem::path folder_;
  ModelConfig config_;
  std::vector<Opened> opened_;
  std::map<std::string, Origin> origins_;
};

StoredModel::StoredModel(const std::filesystem::path& folder) : folder_(folder) {
  const std::filesystem::path description = folder / "config.json", file = weights_in(folder), index = folder / kIndex;
  config_ = from_config_json(base::read_file(description, kDescription), description.string());
  if (!is_file(file) && is_file(index)) {
    open_shards(index);
  } else {
    opened_.push_back({file, base::Safetensors::read(file)});
  }
  find_all();
}

// Every tensor is where the index says, and there is no other.
void StoredModel::open_shards(const std::filesystem::path& index) {
  const Shards shards = read_index(index);
  for (const std::filesystem::path& file : shards.files) {
    if (!is_file(file)) refuse_weights(index, fmt::format("the shard {} is missing", file.string()));
    opened_.push_back({file, base::Safetensors::read(file)});
    for (const base::TensorInfo& tensor : opened_.back().file.tensors()) {
      const auto listed = shards.of_tensor.find(tensor.name);
      if (listed == shards.of_tensor.end() || listed->second != file) {
        refuse_weights(file, fmt::format("tensor {} is not in {}", base::in_quotes(tensor.name), index.string()));
      }
    }
  }
  for (const auto& [name, file] : shards.of_tensor) {
    const auto at = std::ranges::find(opened_, file, &Opened::path);
    if (at->file.find(name) == nullptr) {
      refuse_weights(file, fmt::format("no tensor {}, which {} has there", base::in_quotes(name), index.string()));
    }
  }
}

// The file that has it; the first one if none does.
const StoredModel::Opened& StoredModel::with(const std::string& tensor) const {
  const auto found = std::ranges::find_if(opened_, [&](const Opened& each) { return each.file.find(tensor) != nullptr; });
  return found == opened_.end() ? opened_.front() : *found;
}

// What is before the names of GPT-2, if they are that.
std::optional<std::string> StoredModel::gpt2_prefix() const {
  for (const std::string prefix : {"transformer.", ""}) {
    const std::string name = prefix + "wte.weight";
    if (with(name).file.find(name) != nullptr) return prefix;
  }
  return std::nullopt;
}

// A tied output that is stored again must be the embedding.
void StoredModel::check_output(const Opened& from, const base::TensorInfo& output) const {
  const Origin& embedding = origins_.at("model.embed_tokens.weight");
  const auto ours = embedding.from->file.data(*embedding.tensor), theirs = from.file.data(output);
  if (output.type == embedding.tensor->type && std::ranges::equal(ours, theirs)) return;
  refuse_weights(from.path, fmt::format("tensor '{}' is not equal to the embedding '{}', but config.json ties them; set "
                                        "tie_word_embeddings to false there",
                                        output.name, embedding.tensor->name));
}

void StoredModel::find_all() {
  const std::optional<std::string> prefix = gpt2_prefix();
  std::set<std::string> used;
  for (const Shape& shape : parameter_shapes(config_)) {
    const Wanted wanted = prefix ? of_gpt2(shape, *prefix) : Wanted{shape};
    const Opened& from = with(wanted.stored.name);
    const base::TensorInfo& tensor = held_against(from.file, wanted.stored, kRealTypes, from.path);
    origins_[shape.name] = {&from, &tensor, wanted.transposed, wanted.first};
    used.insert(tensor.name);
  }
  for (const Opened& each : opened_) {
    for (const base::TensorInfo& tensor : each.file.tensors()) {
      if (used.contains(tensor.name) || is_table(tensor.name, prefix.has_value())) continue;
      if (tensor.name != "lm_head.weight" || !config_.tied) refuse_left_over(tensor, each.path);
      check_output(each, tensor);
    }
  }
}

void StoredModel::read(const Shape& shape, std::span<float> values) const {
  const Origin& origin = origins_.at(shape.name);
  const base::Safetensors& file = origin.from->file;
  const auto first = static_cast<std::size_t>(origin.first);
  if (!origin.transposed) {
    read_stored(file, *origin.tensor, first, values);
  } else {
    const auto out = static_cast<std::size_t>(shape.sides[0]), in = static_cast<std::size_t>(shape.sides[1]);
    const auto stride = static_cast<std::size_t>(origin.tensor->shape[1]);
    std::vector<float> row(out);
    for (std::size_t i = 0; i < in; ++i) {
      read_stored(file, *origin.tensor, i * stride + first, row);
      for (std::size_t o = 0; o < out; ++o) values[o * in + i] = row[o];
    }
  }
  check_finite(shape, values, origin.from->path);
}

// The one file of llama2.c in a folder, beside its tokenizer.
std::filesystem::path bin_in(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : base::entries_of(folder, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".bin" && path.filename() != "tokenizer.bin") found.insert(path);
  }
  if (found.size() == 1) return *found.begin();
  constexpr const char* kExpected = "config.json with model.safetensors or its index, or one .bin of llama2.c";
  throw Error(Fault::data,
              fmt::format("{}: {}; expected {}", folder.string(),
                          found.empty() ? "there is no model in this folder" : "there are several .bin files", kExpected));
}

std::unique_ptr<const WeightSource> open_adapted(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kAdapterConfig;
  const std::string base = from_adapter_json(base::read_file(file, kDescription), file.string()).base;
  std::error_code error;
  if (base.empty() || !std::filesystem::exists(base, error)) {
    throw Error(Fault::data, fmt::format("{}: base_model_name_or_path is {}, which is not here; set it to the folder of the "
                                         "model that the adapter was trained on",
                                         file.string(), base::in_quotes(base)));
  }
  return with_adapters(open_weights(base), folder);
}

}  // namespace

std::filesystem::path weights_in(const std::filesystem::path& folder) {
  const std::filesystem::path averaged = folder / kAveraged;
  return is_file(averaged) ? averaged : folder / "model.safetensors";
}

void refuse_weights(const std::filesystem::path& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("checkpoint {}: {}", file.string(), what));
}

const base::TensorInfo& held_against(const base::Safetensors& stored, const Shape& wanted, std::string_view types,
                                     const std::filesystem::path& file) {
  const base::TensorInfo* const found = stored.find(wanted.name);
  if (found == nullptr) {
    refuse_weights(file, fmt::format("no tensor '{}', which the model has as {}; it has another architecture", wanted.name,
                                     sides_text(wanted.sides)));
  }
  if (found->shape != wanted.sides) {
    refuse_weights(file, fmt::format("tensor '{}' is {}, the model has {}; it has another architecture", wanted.name,
                                     sides_text(found->shape), sides_text(wanted.sides)));
  }
  if (types.find(found->type) == types.npos) {
    refuse_weights(file, fmt::format("tensor '{}' has the type {}; valid: {}", wanted.name, found->type, types));
  }
  return *found;
}

void read_stored(const base::Safetensors& file, const base::TensorInfo& tensor, std::size_t first, std::span<float> to) {
  const std::size_t size = base::bits_of_type(tensor.type) / 8;
  const std::span<const std::byte> from = file.data(tensor).subspan(first * size, to.size() * size);
  if (tensor.type == "F64") {
    for (std::size_t i = 0; i < to.size(); ++i) {
      double value = 0;
      std::memcpy(&value, from.data() + i * size, size);
      to[i] = static_cast<float>(value);
    }
    return;
  }
  using base::StoredFloat;
  const auto type = tensor.type == "F32" ? StoredFloat::f32 : tensor.type == "F16" ? StoredFloat::f16 : StoredFloat::bf16;
  base::load_stored(from, type, to);
}

void refuse_left_over(const base::TensorInfo& tensor, const std::filesystem::path& file) {
  refuse_weights(file, fmt::format("tensor {} {} is not in the model; it has another architecture",
                                   base::in_quotes(tensor.name), sides_text(tensor.shape)));
}

void check_finite(const Shape& shape, std::span<const float> values, const std::filesystem::path& file) {
  const auto wrong = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (wrong == values.end()) return;
  refuse_weights(
      file, fmt::format("value {} of tensor '{}' is {}; weights must be finite", wrong - values.begin(), shape.name, *wrong));
}

std::unique_ptr<const WeightSource> open_weights(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path.extension() == ".gguf" ? open_gguf(path) : open_llama2c(path);
  if (is_file(path / kAdapterConfig)) return open_adapted(path);
  if (is_file(path / "config.json")) return std::make_unique<const StoredModel>(path);
  return open_llama2c(bin_in(path));
}

}  // namespace cautious::model
