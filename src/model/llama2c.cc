// Files of llama2.c (https://github.com/karpathy/llama2.c): seven numbers, then f32 tensors in a fixed order. Version 0 has
// nothing else, version 1 begins with a mark and pads its header to 256 bytes. Pairs of neighbours are rotated there, halves of
// a head here: rows of queries and keys change places, so that the same pairs meet.
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "model/weight_files.h"

namespace cautious::model {
namespace {

constexpr std::uint32_t kMark = 0x616b3432;  // "ak42"
constexpr std::size_t kHeader1 = 256;
constexpr double kEps = 1e-5;  // part of its program

[[noreturn]] void refuse_llama2c(const std::filesystem::path& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: not a model of llama2.c: {}", file.string(), what));
}

struct SevenNumbers {
  std::int32_t width, hidden, layers, heads, kv_heads, vocab, context;
};
constexpr std::size_t kHeader0 = sizeof(SevenNumbers);

struct BinHeader {
  int version;
  std::size_t bytes;
  SevenNumbers numbers;
  bool tied;
};

// `at` is inside the file.
template <class Value>
Value value_at(std::span<const std::byte> bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

BinHeader read_header(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  if (bytes.size() < kHeader0) refuse_llama2c(file, fmt::format("{} bytes are too short for its header", bytes.size()));
  if (value_at<std::uint32_t>(bytes, 0) != kMark) {
    BinHeader header{0, kHeader0, value_at<SevenNumbers>(bytes, 0), true};
    header.tied = header.numbers.vocab > 0;
    if (!header.tied && header.numbers.vocab > -1'000'000'000) header.numbers.vocab = -header.numbers.vocab;
    return header;
  }
  const auto version = value_at<std::int32_t>(bytes, 4);
  if (version != 1) refuse_llama2c(file, fmt::format("its version is {}; valid: 0, 1", version));
  if (bytes.size() < kHeader1) refuse_llama2c(file, fmt::format("{} bytes are too short for its header", bytes.size()));
  const auto shared = value_at<std::uint8_t>(bytes, 8 + sizeof(SevenNumbers));
  if (shared > 1) refuse_llama2c(file, fmt::format("its mark of a shared output is {}; valid: 0, 1", shared));
  return {1, kHeader1, value_at<SevenNumbers>(bytes, 8), shared == 1};
}

ModelConfig config_of_header(const BinHeader& header, const std::filesystem::path& file) {
  const SevenNumbers& n = header.numbers;
  if (n.heads < 1 || n.width % n.heads != 0) {
    refuse_llama2c(file, fmt::format("its width is {}, which {} heads do not divide", n.width, n.heads));
  }
  ModelConfig c;
  c.vocab = n.vocab;
  c.width = n.width;
  c.layers = n.layers;
  c.heads = n.heads;
  c.kv_heads = n.kv_heads;
  c.head_size = n.width / n.heads;
  c.hidden = n.hidden;
  c.context = n.context;
  c.tied = header.tied;
  c.norm_eps = kEps;
  try {
    check(c);
  } catch (const Error& error) {
    refuse_llama2c(file, error.what());
  }
  return c;
}

// In the order of the file; all layers of one kind follow each other. `tables` are cosines and sines, which we compute.
constexpr std::string_view kTables = "tables";
constexpr std::array<std::string_view, 13> kOrder0{"model.embed_tokens",
                                                   "input_layernorm",
                                                   "self_attn.q_proj",
                                                   "self_attn.k_proj",
                                                   "self_attn.v_proj",
                                                   "self_attn.o_proj",
                                                   "post_attention_layernorm",
                                                   "mlp.gate_proj",
                                                   "mlp.down_proj",
                                                   "mlp.up_proj",
                                                   "model.norm",
                                                   kTables,
                                                   "lm_head"};
constexpr std::array<std::string_view, 12> kOrder1{"input_layernorm",  "post_attention_layernorm",
                                                   "model.norm",       "model.embed_tokens",
                                                   "self_attn.q_proj", "self_attn.k_proj",
                                                   "self_attn.v_proj", "self_attn.o_proj",
                                                   "mlp.gate_proj",    "mlp.down_proj",
                                                   "mlp.up_proj",      "lm_head"};

class Llama2c : public WeightSource {
 public:
  explicit Llama2c(const std::filesystem::path& file);
  const ModelConfig& config() const override { return config_; }
  const std::filesystem::path& path() const override { return path_; }
  void read(const Shape& shape, std::span<float> values) const override;

 private:
  std::filesystem::path path_;
  base::MappedFile mapped_;
  ModelConfig config_;
  std::map<std::string, std::size_t> begins_;  // of each tensor's bytes
};

Llama2c::Llama2c(const std::filesystem::path& file) : path_(file), mapped_(file) {
  const BinHeader header = read_header(mapped_.bytes(), file);
  config_ = config_of_header(header, file);
  std::map<std::string, double> bytes_of;
  for (const Shape& shape : parameter_shapes(config_)) bytes_of[shape.name] = 4 * entries(shape);
  double at = static_cast<double>(header.bytes);
  const auto take = [&](const std::string& name) {
    const auto found = bytes_of.find(name);
    if (found == bytes_of.end()) return;
    begins_[name] = static_cast<std::size_t>(at);
    at += found->second;
  };
  const std::span<const std::string_view> order =
      header.version == 0 ? std::span<const std::string_view>(kOrder0) : std::span<const std::string_view>(kOrder1);
  for (const std::string_view part : order) {
    if (part == kTables) at += 4 * static_cast<double>(config_.context) * static_cast<double>(config_.head_size);
    take(fmt::format("{}.weight", part));
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) take(fmt::format("model.layers.{}.{}.weight", layer, part));
  }
  if (at != static_cast<double>(mapped_.bytes().size())) {
    refuse_llama2c(file, fmt::format("the numbers in its header ask for {:.0f} bytes, it has {}", at, mapped_.bytes().size()));
  }
}

void Llama2c::read(const Shape& shape, std::span<float> values) const {
  const std::byte* from = mapped_.bytes().data() + begins_.at(shape.name);
  const bool rotated = shape.name.ends_with(".q_proj.weight") || shape.name.ends_with(".k_proj.weight");
  if (!rotated) {
    std::memcpy(values.data(), from, values.size_bytes());
  } else {
    const auto size = static_cast<std::size_t>(config_.head_size), half = size / 2;
    const auto rows = static_cast<std::size_t>(shape.sides[0]), width = static_cast<std::size_t>(shape.sides[1]);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t pair = row % size / 2, second = row % 2;
      const std::size_t to = row - row % size + second * half + pair;
      std::memcpy(values.data() + to * width, from + row * width * sizeof(float), width * sizeof(float));
    }
  }
  check_finite(shape, values, path_);
}

}  // namespace

std::unique_ptr<const WeightSource> open_llama2c(const std::filesystem::path& file) {
  return std::make_unique<const Llama2c>(file);
}

}  // namespace cautious::model
