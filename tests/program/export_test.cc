// Which models GGUF can hold, how they are cut into files, and what a tokenizer becomes. What the files mean is in
// tests/cli/export_test.py.
#include "model/export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/gguf.h"
#include "base/safetensors.h"
#include "data/tokenizer/tokenizer_gguf.h"
#include "model/gguf_model.h"
#include "usage_message.h"

namespace cautious::model {
namespace export_test {

namespace fs = std::filesystem;

ModelConfig llama() {
  ModelConfig c;
  c.kv_heads = 1;
  return c;
}

ModelConfig gemma2() {
  ModelConfig c = llama();
  c.norm = NormKind::rms_offset;
  c.embedding_scale = c.post_norm = true;
  c.activation = Activation::gelu;
  c.attention_softcap = 50;
  c.logit_softcap = 30;
  c.window = 32;
  c.full_every = 2;
  return c;
}

ModelConfig gpt2() {
  ModelConfig c;
  c.norm = NormKind::layer_affine;
  c.learned_positions = c.qkv_bias = c.o_bias = c.ffn_bias = true;
  c.gated = false;
  c.activation = Activation::gelu;
  c.rope_base = 0;
  return c;
}

ModelConfig with(ModelConfig c, const std::function<void(ModelConfig&)>& change) {
  change(c);
  return c;
}

TEST(GgufModel, ArchitecturesByWhatTheyHave) {
  EXPECT_EQ(gguf_architecture(llama()), "llama");
  EXPECT_EQ(gguf_architecture(gemma2()), "gemma2");
  EXPECT_EQ(gguf_architecture(gpt2()), "gpt2");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.qkv_bias = true; })), "qwen2");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.qkv_bias = true, c.head_size = 8; })), "llama");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.qkv_bias = c.o_bias = c.ffn_bias = true; })), "llama");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.qk_norm = true; })), "qwen3");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.norm = NormKind::layer; })), "olmo");
  EXPECT_EQ(gguf_architecture(with(gemma2(),
                                   [](auto& c) {
                                     c.post_norm = false;
                                     c.attention_softcap = c.logit_softcap = 0;
                                     c.window = c.full_every = 0;
                                   })),
            "gemma");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.norm = NormKind::rms_offset; })), "llama");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.window = c.context; })), "llama");
  EXPECT_EQ(gguf_architecture(with(llama(), [](auto& c) { c.score_size = static_cast<double>(c.head_size); })), "llama");
}

TEST(GgufModel, WhatNoArchitectureHasIsRefusedByItsName) {
  const std::map<std::string, ModelConfig> models{
      {"query_scale", with(llama(), [](auto& c) { c.query_scale = true; })},
      {"output_bias", with(llama(), [](auto& c) { c.output_bias = true; })},
      {"activation", with(llama(), [](auto& c) { c.activation = Activation::gelu; })},
      {"logit_softcap", with(llama(), [](auto& c) { c.logit_softcap = 30; })},
      {"attention_softcap", with(gemma2(), [](auto& c) { c.attention_softcap = 0; })},
      {"embedding_scale", with(llama(), [](auto& c) { c.embedding_scale = true; })},
      {"rope_base", with(llama(), [](auto& c) { c.rope_base = 0; })},
      {"window", with(llama(), [](auto& c) { c.window = 16; })},
      {"full_every", with(gemma2(), [](auto& c) { c.full_every = 3; })},
      {"score_size", with(llama(), [](auto& c) { c.score_size = 5; })},
      {"gated", with(llama(), [](auto& c) { c.gated = false; })},
      {"norm", with(llama(), [](auto& c) { c.norm = NormKind::layer_affine; })},
      {"tied", with(gemma2(), [](auto& c) { c.tied = false; })},
      {"ffn_bias", with(llama(), [](auto& c) { c.qk_norm = c.ffn_bias = true; })},
      {"head_size", with(llama(), [](auto& c) { c.norm = NormKind::layer, c.head_size = 8; })},
      {"kv_heads", with(gpt2(), [](auto& c) { c.kv_heads = 1; })},
      {"rope_scaling", with(llama(), [](auto& c) { c.qk_norm = true, c.rope_scaling = RopeScaling::llama3; })}};
  for (const auto& [field, model] : models) {
    const std::string line = message([&, &config = model] { gguf_architecture(config); });
    EXPECT_TRUE(line.starts_with(field + " of the model is ")) << field << ": " << line;
    EXPECT_NE(line.find("cannot be written as GGUF"), std::string::npos) << line;
  }
}

// Rows of a head in the order in which pairs become neighbours: 0 4 1 5 2 6 3 7.
TEST(GgufModel, RowsOfAHeadBecomeNeighbours) {
  std::vector<float> values;
  for (int row = 0; row < 16; ++row) values.insert(values.end(), 3, static_cast<float>(row));
  const std::vector<float> before = values;
  rotate_rows(values, 16, 2, Rotation::there);
  const std::vector<int> expected{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(expected[i / 3])) << i;
  rotate_rows(values, 16, 2, Rotation::back);
  EXPECT_EQ(values, before);
}

// Every weight is a number of its own.
class Counted : public WeightSource {
 public:
  explicit Counted(ModelConfig config) : config_(std::move(config)) {}
  const ModelConfig& config() const override { return config_; }
  const fs::path& path() const override { return path_; }
  void read(const Shape& shape, std::span<float> values) const override {
    float next = 0;
    for (const Shape& other : parameter_shapes(config_)) {
      if (other.name == shape.name) break;
      next += static_cast<float>(entries(other));
    }
    for (float& value : values) value = next++;
  }

 private:
  ModelConfig config_;
  fs::path path_;
};

class Exported : public testing::Test {
 protected:
  Exported() : folder_(fs::path(testing::TempDir()) / ("export_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Exported() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

TEST_F(Exported, ShardsHoldEveryTensorOnceAndTheIndexSaysWhere) {
  const Counted weights(llama());
  const data::Tokenizer tokenizer = data::Tokenizer::bytes();
  export_hf({weights, tokenizer, base::StoredFloat::f32, "x", "", [](double) {}}, folder_ / "x", 100'000);
  const auto index = nlohmann::json::parse(base::read_file(folder_ / "x/model.safetensors.index.json"));
  double total = 0;
  std::map<std::string, std::size_t> files;
  for (const Shape& shape : parameter_shapes(weights.config())) {
    const std::string file = index["weight_map"][shape.name];
    const base::Safetensors shard = base::Safetensors::read(folder_ / "x" / file);
    const auto bytes = shard.data(shard.require(shape.name));
    std::vector<float> expected(static_cast<std::size_t>(entries(shape)));
    weights.read(shape, expected);
    EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(expected)))) << shape.name;
    files[file] = shard.tensors().size();
    total += 4 * entries(shape);
  }
  std::size_t count = 0;
  for (const auto& [file, tensors] : files) {
    count += tensors;
    EXPECT_TRUE(file.ends_with("-of-0000" + std::to_string(files.size()) + ".safetensors")) << file;
  }
  EXPECT_GT(files.size(), 2u);
  EXPECT_EQ(count, parameter_shapes(weights.config()).size());
  EXPECT_EQ(index["metadata"]["total_size"], total);
  EXPECT_FALSE(fs::exists(folder_ / "x/model.safetensors"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing is left aside";
}

template <class Value>
Value value_of(const base::GgufMetadata& metadata, const std::string& key) {
  for (const auto& [name, value] : metadata)
    if (name == key) return std::get<Value>(value);
  ADD_FAILURE() << key;
  return {};
}

TEST_F(Exported, BytesAreABpeWithoutMerges) {
  const base::GgufMetadata metadata = data::to_gguf(data::Tokenizer::bytes(), 300);
  const auto tokens = std::get<std::vector<std::string>>(value_of<base::GgufArray>(metadata, "tokenizer.ggml.tokens").items);
  const auto merges = std::get<std::vector<std::string>>(value_of<base::GgufArray>(metadata, "tokenizer.ggml.merges").items);
  ASSERT_EQ(tokens.size(), 300u);
  EXPECT_EQ(tokens['a'], "a");
  EXPECT_EQ(tokens[' '], "\u0120");
  EXPECT_EQ(tokens[299], "[PAD299]");
  EXPECT_TRUE(merges.empty());
  EXPECT_EQ(value_of<std::uint32_t>(metadata, "tokenizer.ggml.eos_token_id"), 0u);
  EXPECT_FALSE(value_of<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_NE(line_of(Fault::data, [] { data::to_gguf(data::Tokenizer::bytes(), 255); }), "");
}

// A tokenizer.bin of llama2.c with these pieces behind its bytes, the first of the highest score.
fs::path write_pieces(const fs::path& file, const std::vector<std::string>& pieces) {
  std::vector<std::string> tokens{"<unk>", "\n<s>\n", "\n</s>\n"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  std::string bytes(4, '\0');
  bytes[0] = 16;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const float score = -static_cast<float>(id);
    const auto size = static_cast<std::uint32_t>(tokens[id].size());
    bytes.append(reinterpret_cast<const char*>(&score), 4).append(reinterpret_cast<const char*>(&size), 4) += tokens[id];
  }
  base::write_atomically(file, bytes);
  return file;
}

TEST_F(Exported, TokenizersComeBackFromGguf) {
  const std::vector<data::Tokenizer> tokenizers{
      data::Tokenizer::bytes(),
      data::Tokenizer::read(write_pieces(folder_ / "x.bin", {"ab", " a", " ab", "bb", "  ", " ", "a", "b", "\u00e9"}))};
  for (const data::Tokenizer& tokenizer : tokenizers) {
    base::write_gguf(folder_ / "x.gguf", data::to_gguf(tokenizer, 300), {}, {});
    const data::Tokenizer back = data::Tokenizer::read(folder_ / "x.gguf");
    EXPECT_EQ(back.fingerprint(), tokenizer.fingerprint());
    EXPECT_EQ(back.beginning(), tokenizer.beginning());
    EXPECT_EQ(back.document_end(), tokenizer.document_end());
    for (const char* text : {"ab abab  b", "   a\u00e9\u4e2d", "<s>ab</s>"})
      EXPECT_EQ(back.encode(text), tokenizer.encode(text)) << text;
  }
}

TEST_F(Exported, AByteTokenizerHasNoNameThatTextsCouldContain) {
  const Counted weights(llama());
  const data::Tokenizer tokenizer = data::Tokenizer::bytes();
  export_hf({weights, tokenizer, base::StoredFloat::bf16, "x", "", [](double) {}}, folder_ / "x");
  const auto read = [&](const char* name) { return nlohmann::json::parse(base::read_file(folder_ / "x" / name)); };
  EXPECT_TRUE(read("special_tokens_map.json").empty());
  EXPECT_FALSE(read("tokenizer_config.json").contains("eos_token"));
  EXPECT_EQ(read("generation_config.json")["eos_token_id"], 0);
}

TEST_F(Exported, AFailureInTheMiddleLeavesNothing) {
  const Counted weights(llama());
  const data::Tokenizer tokenizer = data::Tokenizer::bytes();
  const auto stop = [](double fraction) {
    if (fraction > 0.2) throw Error(Fault::failure, "enough");
  };
  const Export job{weights, tokenizer, base::StoredFloat::f32, "x", "", stop};
  EXPECT_THROW(export_gguf(job, folder_ / "x.gguf"), Error);
  EXPECT_THROW(export_hf(job, folder_ / "x", 100'000), Error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace export_test
}  // namespace cautious::model
