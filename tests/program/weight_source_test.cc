// Weights of others under our names: shards, types, GPT-2's layout, and everything that does not fit. Values are functions of
// the place in the file, so that each tells where it came from. Files of llama2.c are in llama2c_test.cc, losses in
// tests/cli/import_test.py.
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/safetensors.h"
#include "model/family.h"
#include "weight_files_fixture.h"

namespace cautious::model {
namespace weight_source_test {

using Json = nlohmann::ordered_json;

ModelConfig tiny() {
  ModelConfig c;
  c.vocab = 6, c.width = 8, c.layers = 2, c.heads = 2, c.kv_heads = 1, c.head_size = 4, c.hidden = 10, c.context = 5;
  return c;
}

// Small whole numbers, which every type holds.
float value_at(std::size_t tensor, std::size_t place) { return static_cast<float>((tensor * 37 + place * 5) % 251) - 125; }

struct Stored {
  std::string name, type;
  std::vector<std::int64_t> sides;
  std::string bytes;
};

std::string bytes_of(std::string_view type, std::span<const float> values) {
  std::string bytes;
  const auto add = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (type == "F64") add(static_cast<double>(value));
    if (type == "F32") add(value);
    if (type == "BF16") add(static_cast<std::uint16_t>(bits >> 16U));
    if (type == "F16") {  // whole numbers are normal there
      const std::uint32_t exponent = value == 0 ? 0 : (bits >> 23U & 0xffU) - 127 + 15;
      add(static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | exponent << 10U | (bits >> 13U & 0x3ffU)));
    }
  }
  return bytes;
}

Stored stored(std::size_t number, const Shape& shape, std::string type = "F32") {
  std::vector<float> values(static_cast<std::size_t>(entries(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(number, i);
  return {shape.name, type, shape.sides, bytes_of(type, values)};
}

std::vector<Stored> stored_all(const std::vector<Shape>& shapes, const std::string& type = "F32") {
  std::vector<Stored> all;
  for (const Shape& shape : shapes) all.push_back(stored(all.size(), shape, type));
  return all;
}

class WeightSources : public WeightFiles {
 protected:
  void put_tensors(const std::string& name, const std::vector<Stored>& all) const {
    std::vector<base::TensorToWrite> list;
    for (const Stored& each : all) list.push_back({each.name, each.type, each.sides, std::as_bytes(std::span(each.bytes))});
    base::write_safetensors(folder_ / name, list, {});
  }
};

TEST_F(WeightSources, EveryTypeIsReadExactly) {
  put("config.json", to_config_json(tiny(), 0, 0));
  const std::vector<Shape> shapes = parameter_shapes(tiny());
  for (const char* type : {"F32", "BF16", "F16", "F64"}) {
    put_tensors("model.safetensors", stored_all(shapes, type));
    const auto source = open_weights(folder_);
    EXPECT_EQ(source->path(), folder_);
    EXPECT_EQ(source->config().kv_heads, 1);
    for (std::size_t n = 0; n < shapes.size(); ++n) {
      const std::vector<float> values = read(*source, shapes[n].name);
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value_at(n, i)) << type << " " << shapes[n].name;
    }
  }
}

TEST_F(WeightSources, ShardsAreOneModel) {
  const std::vector<Stored> all = stored_all(parameter_shapes(tiny()));
  const auto put_shards = [&](const std::function<void(Json&)>& change) {
    Json index{{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
    std::vector<std::vector<Stored>> shards(2);
    for (std::size_t i = 0; i < all.size(); ++i) {
      shards[i % 2].push_back(all[i]);
      index["weight_map"][all[i].name] = fmt::format("part-{}.safetensors", i % 2);
    }
    for (std::size_t i = 0; i < 2; ++i) put_tensors(fmt::format("part-{}.safetensors", i), shards[i]);
    change(index);
    put("model.safetensors.index.json", index.dump());
  };
  put("config.json", to_config_json(tiny(), 0, 0));
  put_shards([](Json&) {});
  const std::vector<float> values = read(*open_weights(folder_), all.back().name);
  EXPECT_EQ(values[3], value_at(all.size() - 1, 3));

  for (const char* outside : {"../part-0.safetensors", "/etc/passwd", "sub/part-0.safetensors", "..", ""}) {
    put_shards([&](Json& index) { index["weight_map"]["model.norm.weight"] = outside; });
    EXPECT_EQ(fault_of_folder(),
              fmt::format("model.safetensors.index.json: tensor 'model.norm.weight' is in '\"{}\"'; valid: the name of a file "
                          "in this folder",
                          outside));
  }
  put_shards([](Json& index) { index["weight_map"]["model.extra"] = "part-1.safetensors"; });
  EXPECT_EQ(fault_of_folder(),
            "checkpoint part-1.safetensors: no tensor 'model.extra', which model.safetensors.index.json has there");
  put_shards([](Json& index) { index["weight_map"].erase("model.norm.weight"); });
  EXPECT_TRUE(fault_of_folder().ends_with("tensor 'model.norm.weight' is not in model.safetensors.index.json"))
      << fault_of_folder();
  put_shards([](Json& index) { index["weight_map"]["model.norm.weight"] = 7; });
  EXPECT_NE(fault_of_folder().find("is in '7'"), std::string::npos);
  put_shards([](Json& index) { index.erase("weight_map"); });
  EXPECT_EQ(fault_of_folder(), "model.safetensors.index.json: there is no key 'weight_map'");
  put_shards([](Json&) {});
  fs::remove(folder_ / "part-1.safetensors");
  EXPECT_EQ(fault_of_folder(), "checkpoint model.safetensors.index.json: the shard part-1.safetensors is missing");
}

TEST_F(WeightSources, ATiedOutputMayBeStoredIfItIsTheEmbedding) {
  put("config.json", to_config_json(tiny(), 0, 0));
  std::vector<Stored> all = stored_all(parameter_shapes(tiny()));
  all.push_back({"lm_head.weight", "F32", {6, 8}, all.front().bytes});
  all.push_back({"model.layers.1.self_attn.rotary_emb.inv_freq", "F32", {2}, std::string(8, '\0')});
  put_tensors("model.safetensors", all);
  EXPECT_EQ(fault_of_folder(), "");
  all[all.size() - 2].bytes[5] ^= 1;
  put_tensors("model.safetensors", all);
  EXPECT_EQ(fault_of_folder(),
            "checkpoint model.safetensors: tensor 'lm_head.weight' is not equal to the embedding 'model.embed_tokens.weight', "
            "but config.json ties them; set tie_word_embeddings to false there");
}

TEST_F(WeightSources, WhatDoesNotFitIsNamed) {
  put("config.json", to_config_json(tiny(), 0, 0));
  const auto fault_with = [&](const std::function<void(std::vector<Stored>&)>& change) {
    std::vector<Stored> all = stored_all(parameter_shapes(tiny()));
    change(all);
    put_tensors("model.safetensors", all);
    return fault_of_folder();
  };
  EXPECT_EQ(fault_with([](auto& all) { all.pop_back(); }),
            "checkpoint model.safetensors: no tensor 'model.norm.weight', which the model has as [8]; it has another "
            "architecture");
  EXPECT_EQ(
      fault_with([](auto& all) {
        all.back().sides = {2, 4};
      }),
      "checkpoint model.safetensors: tensor 'model.norm.weight' is [2, 4], the model has [8]; it has another architecture");
  EXPECT_EQ(fault_with([](auto& all) { all.back().type = "I32"; }),
            "checkpoint model.safetensors: tensor 'model.norm.weight' has the type I32; valid: F32, BF16, F16, F64");
  EXPECT_EQ(fault_with([](auto& all) {
              all.push_back({"score.weight", "F32", {1}, "abcd"});
            }),
            "checkpoint model.safetensors: tensor 'score.weight' [1] is not in the model; it has another architecture");
  EXPECT_EQ(fault_with([](auto& all) {
              all.push_back({"h.0.attn.bias", "F32", {1}, "abcd"});
            }),
            "checkpoint model.safetensors: tensor 'h.0.attn.bias' [1] is not in the model; it has another architecture");
  fs::remove(folder_ / "model.safetensors");
  EXPECT_EQ(fault_of_folder(), "model.safetensors: cannot open: No such file or directory");
  fs::remove(folder_ / "config.json");
  EXPECT_NE(fault_of_folder().find("there is no model in this folder; expected config.json with model.safetensors"),
            std::string::npos);
}

TEST_F(WeightSources, ValuesAreFinite) {
  put("config.json", to_config_json(tiny(), 0, 0));
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<Stored> all = stored_all(parameter_shapes(tiny()));
    std::memcpy(all.back().bytes.data() + 12, &wrong, sizeof wrong);
    put_tensors("model.safetensors", all);
    const auto source = open_weights(folder_);
    EXPECT_EQ(fault([&] { read(*source, all.back().name); }),
              fmt::format("checkpoint model.safetensors: value 3 of tensor 'model.norm.weight' is {}; weights must be finite",
                          wrong));
  }
}

TEST_F(WeightSources, AveragedWeightsComeFirst) {
  put("config.json", to_config_json(tiny(), 0, 0));
  std::vector<Stored> all = stored_all(parameter_shapes(tiny()));
  put_tensors("model.safetensors", all);
  for (Stored& each : all) each.bytes.assign(each.bytes.size(), '\0');
  put_tensors(kAveraged, all);
  EXPECT_EQ(read(*open_weights(folder_), "model.norm.weight"), std::vector<float>(8));
}

TEST_F(WeightSources, Gpt2HasOtherNamesAndLayouts) {
  put("config.json", R"({"model_type": "gpt2", "vocab_size": 6, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 5,
                         "n_inner": 10})");
  for (const std::string prefix : {"transformer.", ""}) {
    std::vector<Stored> all;
    const auto add = [&](const std::string& name, std::vector<std::int64_t> sides) {
      all.push_back(stored(all.size(), {prefix + name, std::move(sides)}));
    };
    add("wte.weight", {6, 8}), add("wpe.weight", {5, 8});
    for (const std::string layer : {"h.0.", "h.1."}) {
      add(layer + "ln_1.weight", {8}), add(layer + "ln_1.bias", {8});
      add(layer + "attn.c_attn.weight", {8, 24}), add(layer + "attn.c_attn.bias", {24});
      add(layer + "attn.c_proj.weight", {8, 8}), add(layer + "attn.c_proj.bias", {8});
      add(layer + "ln_2.weight", {8}), add(layer + "ln_2.bias", {8});
      add(layer + "mlp.c_fc.weight", {8, 10}), add(layer + "mlp.c_fc.bias", {10});
      add(layer + "mlp.c_proj.weight", {10, 8}), add(layer + "mlp.c_proj.bias", {8});
      add(layer + "attn.bias", {1, 1, 5, 5}), add(layer + "attn.masked_bias", {});
    }
    add("ln_f.weight", {8}), add("ln_f.bias", {8});
    put_tensors("model.safetensors", all);
    const auto source = open_weights(folder_);
    const auto number_of = [&](const std::string& name) {
      for (std::size_t n = 0; n < all.size(); ++n) {
        if (all[n].name == prefix + name) return n;
      }
      return all.size();
    };
    const auto place_in = [&](const std::string& theirs, const std::function<std::size_t(std::size_t, std::size_t)>& place) {
      return [n = number_of(theirs), place](std::size_t row, std::size_t column) { return value_at(n, place(row, column)); };
    };
    const auto expect = [&](const std::string& ours, std::size_t columns, const auto& expected) {
      const std::vector<float> values = read(*source, ours);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], expected(i / columns, i % columns)) << prefix << " " << ours << " " << i;
      }
    };
    for (std::size_t third = 0; third < 3; ++third) {
      const std::string ours = fmt::format("model.layers.1.self_attn.{}_proj.", "qkv"[third]);
      expect(ours + "weight", 8,
             place_in("h.1.attn.c_attn.weight", [&](auto out, auto in) { return in * 24 + 8 * third + out; }));
      expect(ours + "bias", 8, place_in("h.1.attn.c_attn.bias", [&](auto, auto out) { return 8 * third + out; }));
    }
    expect("model.layers.0.mlp.up_proj.weight", 8,
           place_in("h.0.mlp.c_fc.weight", [](auto out, auto in) { return in * 10 + out; }));
    expect("model.layers.0.mlp.down_proj.weight", 10,
           place_in("h.0.mlp.c_proj.weight", [](auto out, auto in) { return in * 8 + out; }));
    expect("model.layers.1.self_attn.o_proj.weight", 8,
           place_in("h.1.attn.c_proj.weight", [](auto out, auto in) { return in * 8 + out; }));
    expect("model.embed_tokens.weight", 8, place_in("wte.weight", [](auto row, auto column) { return row * 8 + column; }));
    expect("model.position_embeddings.weight", 8,
           place_in("wpe.weight", [](auto row, auto column) { return row * 8 + column; }));
    expect("model.layers.1.post_attention_layernorm.bias", 8, place_in("h.1.ln_2.bias", [](auto, auto i) { return i; }));
    expect("model.norm.weight", 8, place_in("ln_f.weight", [](auto, auto i) { return i; }));
    std::erase_if(all, [&](const Stored& each) { return each.name == prefix + "h.1.mlp.c_fc.bias"; });
    put_tensors("model.safetensors", all);
    EXPECT_EQ(fault_of_folder(),
              fmt::format("checkpoint model.safetensors: no tensor '{}h.1.mlp.c_fc.bias', which the model has "
                          "as [10]; it has another architecture",
                          prefix));
  }
}

}  // namespace weight_source_test
}  // namespace cautious::model
