// Files of llama2.c: values are the places in the file, so that each tells where it came from; and files that are not.
#include <initializer_list>
#include <limits>

#include "weight_files_fixture.h"

namespace cautious::model {
namespace llama2c_test {

class Llama2cFiles : public WeightFiles {};

std::string numbers_in_a_row(std::initializer_list<std::int32_t> numbers) {
  std::string bytes;
  for (const std::int32_t number : numbers) bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  return bytes;
}

std::string floats_from_zero(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

// Of llama2.c: width 8, hidden 10, 2 layers, 2 heads, 1 of keys, 6 tokens, context 5.
constexpr std::size_t kLayerFloats = 8 + 64 + 32 + 32 + 64 + 8 + 3 * 80;

TEST_F(Llama2cFiles, Version0IsInItsOrderAndItsNeighboursAreHalves) {
  const std::size_t floats = 48 + 2 * kLayerFloats + 8 + 5 * 4;
  put("stories.bin", numbers_in_a_row({8, 10, 2, 2, 1, 6, 5}) + floats_from_zero(floats));
  put("tokenizer.bin", "not looked at");
  for (const fs::path& path : {folder_, folder_ / "stories.bin"}) {
    const auto source = open_weights(path);
    EXPECT_TRUE(source->config().tied);
    EXPECT_EQ(source->config().norm_eps, 1e-5);
    EXPECT_EQ(source->config().context, 5);
    EXPECT_EQ(read(*source, "model.embed_tokens.weight")[47], 47);
    EXPECT_EQ(read(*source, "model.layers.1.input_layernorm.weight")[0], 48 + 8);
    EXPECT_EQ(read(*source, "model.norm.weight")[0], static_cast<float>(48 + 2 * kLayerFloats));
    const std::size_t q = 48 + 16, k = q + 128, v = k + 64, o = v + 64, norm = o + 128, gate = norm + 16, down = gate + 160;
    EXPECT_EQ(read(*source, "model.layers.0.self_attn.v_proj.weight")[9], static_cast<float>(v + 9));
    EXPECT_EQ(read(*source, "model.layers.1.self_attn.o_proj.weight")[0], static_cast<float>(o + 64));
    EXPECT_EQ(read(*source, "model.layers.1.mlp.gate_proj.weight")[0], static_cast<float>(gate + 80));
    EXPECT_EQ(read(*source, "model.layers.0.mlp.down_proj.weight")[0], static_cast<float>(down));
    EXPECT_EQ(read(*source, "model.layers.0.mlp.up_proj.weight")[0], static_cast<float>(down + 160));
    // Rows 0 1 2 3 of a head of 4: pairs (0, 1) and (2, 3) there are pairs (0, 2) and (1, 3) here.
    const std::vector<float> rows = read(*source, "model.layers.1.self_attn.q_proj.weight");
    for (std::size_t head = 0; head < 2; ++head) {
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t theirs = i < 2 ? 2 * i : 2 * (i - 2) + 1;
        EXPECT_EQ(rows[(head * 4 + i) * 8], static_cast<float>(q + 64 + (head * 4 + theirs) * 8));
      }
    }
    EXPECT_EQ(read(*source, "model.layers.0.self_attn.k_proj.weight")[8], static_cast<float>(k + 16));
  }
  put("untied.bin", numbers_in_a_row({8, 10, 2, 2, 1, -6, 5}) + floats_from_zero(floats + 48));
  const auto untied = open_weights(folder_ / "untied.bin");
  EXPECT_FALSE(untied->config().tied);
  EXPECT_EQ(read(*untied, "lm_head.weight")[0], static_cast<float>(floats));
  EXPECT_NE(fault_of_folder().find("there are several .bin files"), std::string::npos);
}

TEST_F(Llama2cFiles, Version1HasAHeaderAndAnotherOrder) {
  std::string header = numbers_in_a_row({0x616b3432, 1, 8, 10, 2, 2, 1, 6, 5});
  header.resize(256, '\0');  // the output is not shared
  const std::size_t floats = 2 * kLayerFloats + 8 + 48 + 48;
  put("model.bin", header + floats_from_zero(floats));
  const auto source = open_weights(folder_);
  EXPECT_FALSE(source->config().tied);
  EXPECT_EQ(read(*source, "model.layers.0.input_layernorm.weight")[0], 0);
  EXPECT_EQ(read(*source, "model.layers.0.post_attention_layernorm.weight")[0], 16);
  EXPECT_EQ(read(*source, "model.norm.weight")[0], 32);
  EXPECT_EQ(read(*source, "model.embed_tokens.weight")[0], 40);
  EXPECT_EQ(read(*source, "model.layers.0.self_attn.q_proj.weight")[0], 88);
  EXPECT_EQ(read(*source, "lm_head.weight")[0], static_cast<float>(floats - 48));
  header[36] = 1;
  put("model.bin", header + floats_from_zero(floats - 48));
  EXPECT_TRUE(open_weights(folder_)->config().tied);
}

TEST_F(Llama2cFiles, OthersAreRefused) {
  const auto fault_with = [&](const std::string& bytes) {
    put("model.bin", bytes);
    return fault_of_folder();
  };
  const std::string what = "model.bin: not a model of llama2.c: ";
  EXPECT_EQ(fault_with("short"), what + "5 bytes are too short for its header");
  EXPECT_EQ(fault_with(numbers_in_a_row({0x616b3432, 2, 8, 10, 2, 2, 1, 6, 5})), what + "its version is 2; valid: 0, 1");
  EXPECT_EQ(fault_with(numbers_in_a_row({0x616b3432, 1, 8, 10, 2, 2, 1, 6, 5})),
            what + "36 bytes are too short for its header");
  EXPECT_EQ(fault_with(numbers_in_a_row({8, 10, 2, 3, 1, 6, 5})), what + "its width is 8, which 3 heads do not divide");
  EXPECT_EQ(fault_with(numbers_in_a_row({8, 10, 2, 0, 1, 6, 5})), what + "its width is 8, which 0 heads do not divide");
  EXPECT_EQ(fault_with(numbers_in_a_row({8, 10, -2, 2, 1, 6, 5})), what + "layers of the model is -2; valid: [1, 10000]");
  EXPECT_EQ(fault_with(numbers_in_a_row({8, 10, 2, 2, 1, std::numeric_limits<std::int32_t>::min(), 5})),
            what + "vocab of the model is -2147483648; valid: [1, 1000000000]");
  EXPECT_EQ(
      fault_with(numbers_in_a_row({8, 10, 2, 2, 1, 6, 5}) + "abcd"),
      what + fmt::format("the numbers in its header ask for {} bytes, it has 32", 28 + 4 * (48 + 2 * kLayerFloats + 8 + 20)));
  const std::string huge = fault_with(numbers_in_a_row({900000000, 900000000, 9999, 2, 1, 900000000, 5}));
  EXPECT_NE(huge.find("parameters; valid: at most"), std::string::npos) << huge;
  EXPECT_EQ(fault([&] { open_weights(folder_ / "none.bin"); }), "none.bin: cannot open: No such file or directory");
}

}  // namespace llama2c_test
}  // namespace cautious::model
