// Weights through a file and back, foreign types, and files of other architectures, which must leave the model alone.
#include "model/weights.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <functional>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "model/family.h"
#include "tiny_models.h"

namespace cautious {
namespace weights_test {

namespace fs = std::filesystem;

class Weights : public ::testing::Test {
 protected:
  Weights() : folder_(fs::temp_directory_path() / fmt::format("cautious_weights_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Weights() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "model.safetensors"; }

  void describe(const std::string& text) const { std::ofstream(folder_ / "config.json") << text; }

  // "checkpoint FILE: " is taken off.
  std::string fault(const std::function<void()>& call) const {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      const std::string what = error.what(), before = fmt::format("checkpoint {}: ", file().string());
      EXPECT_TRUE(what.starts_with(before)) << what;
      return what.substr(std::min(before.size(), what.size()));
    }
    return "";
  }

  fs::path folder_;
};

// Views of the parameters and buffers: f32, and counts.
std::vector<base::TensorToWrite> weights_of(const ::torch::nn::Module& model) {
  std::vector<base::TensorToWrite> list;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    list.push_back({name,
                    tensor.is_floating_point() ? "F32" : "I64",
                    tensor.sizes().vec(),
                    {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}});
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) add(item.key(), item.value());
  return list;
}

bool same(const model::Transformer& a, const model::Transformer& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  bool equal = left.size() == right.size();
  for (std::size_t i = 0; equal && i < left.size(); ++i) {
    equal = left[i].key() == right[i].key() && at::equal(left[i].value(), right[i].value());
  }
  return equal;
}

TEST_F(Weights, TheListIsThatOfTheConfig) {
  for (const auto& [name, config] : tiny::models()) {
    const model::Transformer model(config, 1);
    model::save_weights(model, file());
    const base::Safetensors saved = base::Safetensors::read(file());
    const std::vector<base::TensorInfo>& list = saved.tensors();
    const std::vector<model::Shape> shapes = model::parameter_shapes(config);
    ASSERT_EQ(list.size(), shapes.size()) << name;
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i].name, shapes[i].name);
      EXPECT_EQ(list[i].shape, shapes[i].sides);
      EXPECT_EQ(list[i].type, "F32");
    }
  }
}

TEST_F(Weights, ACheckpointIsTheModelBitByBit) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 1);
    tiny::shake(model);
    model::save_weights(model, file());
    EXPECT_EQ(base::Safetensors::read(file()).find("lm_head.weight") == nullptr, config.tied);
    model::Transformer other(config, 2);
    EXPECT_FALSE(same(model, other));
    model::load_weights(other, file());
    EXPECT_TRUE(same(model, other)) << name;
    EXPECT_TRUE(other.named_parameters()[0].value().requires_grad());
    describe(model::to_config_json(config, 0, 0));
    const std::shared_ptr<model::Transformer> loaded = model::load_model(folder_);
    EXPECT_TRUE(same(model, *loaded)) << name;
    EXPECT_TRUE(at::equal(model.logits(tiny::row({1, 2, 3})), loaded->logits(tiny::row({1, 2, 3})))) << name;
  }
}

TEST_F(Weights, DoublesStayDoubles) {
  const model::ModelConfig config = tiny::models().at("llama");
  model::Transformer model(config, 1, {}, at::kDouble), other(config, 2, {}, at::kDouble);
  model::save_weights(model, file());
  EXPECT_EQ(base::Safetensors::read(file()).tensors().front().type, "F64");
  model::load_weights(other, file());
  EXPECT_TRUE(same(model, other));
}

// The upper half of a float's bits.
std::uint16_t to_bf16(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U); }

// Of a value that f16 holds exactly and is normal there.
std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23U & 0xffU) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | exponent << 10U | (bits >> 13U & 0x3ffU));
}

// Sixteenths of either sign, which all types hold.
float value_at(std::size_t tensor, std::size_t place) {
  return (place % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(1 + (tensor * 31 + place) % 120) / 16;
}

TEST_F(Weights, SmallTypesAreConverted) {
  const model::ModelConfig config = tiny::models().at("llama");
  for (const bool bf16 : {true, false}) {
    model::Transformer model(config, 1);
    std::vector<base::TensorToWrite> list = weights_of(model);
    std::vector<std::vector<std::uint16_t>> values(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t place = 0; place < list[i].data.size() / 4; ++place) {
        values[i].push_back(bf16 ? to_bf16(value_at(i, place)) : to_f16(value_at(i, place)));
      }
      list[i].type = bf16 ? "BF16" : "F16";
      list[i].data = std::as_bytes(std::span(values[i]));
    }
    base::write_safetensors(file(), list, {});
    model::load_weights(model, file());
    const auto parameters = model.named_parameters();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const at::Tensor& tensor = parameters[i].value();
      ASSERT_EQ(tensor.scalar_type(), at::kFloat);
      for (std::size_t place = 0; place < std::size_t(tensor.numel()); ++place) {
        ASSERT_EQ(tensor.data_ptr<float>()[place], value_at(i, place)) << parameters[i].key() << " " << place;
      }
    }
  }
}

TEST_F(Weights, AnotherArchitectureIsRefusedAndChangesNothing) {
  const model::ModelConfig config = tiny::models().at("llama");
  model::Transformer model(config, 1);
  const model::Transformer before(config, 1);
  const auto fault_with = [&](const std::function<void(model::ModelConfig&)>& change) {
    model::ModelConfig other = config;
    change(other);
    const model::Transformer wrong(other, 7);
    base::write_safetensors(file(), weights_of(wrong), {});
    return fault([&] { model::load_weights(model, file()); });
  };
  EXPECT_EQ(fault_with([](model::ModelConfig& c) { c.hidden = 32; }),
            "tensor 'model.layers.0.mlp.gate_proj.weight' is [32, 16], the model has [24, 16]; it has another architecture");
  EXPECT_EQ(fault_with([](model::ModelConfig& c) { c.layers = 1; }),
            "no tensor 'model.layers.1.input_layernorm.weight', which the model has as [16]; it has another architecture");
  EXPECT_EQ(fault_with([](model::ModelConfig& c) { c.layers = 3; }),
            "tensor 'model.layers.2.input_layernorm.weight' [16] is not in the model; it has another architecture");
  EXPECT_EQ(fault_with([](model::ModelConfig& c) { c.tied = false; }),
            "tensor 'lm_head.weight' [50, 16] is not in the model; it has another architecture");
  std::vector<base::TensorToWrite> list = weights_of(before);
  list.back().type = "I32";
  base::write_safetensors(file(), list, {});
  EXPECT_EQ(fault([&] { model::load_weights(model, file()); }),
            "tensor 'model.norm.weight' has the type I32; valid: F32, BF16, F16, F64");
  EXPECT_TRUE(same(model, before));
}

TEST_F(Weights, ACheckpointIsHeldAgainstItsDescriptionBeforeAnythingIsAllocated) {
  model::ModelConfig config = tiny::models().at("llama");
  const model::Transformer model(config, 1);
  base::write_safetensors(file(), weights_of(model), {});
  config.vocab = config.hidden = 900'000'000;
  describe(model::to_config_json(config, 0, 0));
  EXPECT_EQ(fault([&] { model::load_model(folder_); }),
            "tensor 'model.embed_tokens.weight' is [50, 16], the model has [900000000, 16]; it has another architecture");
}

TEST_F(Weights, WhatIsMissingIsNamed) {
  const auto what = [&] {
    try {
      model::load_model(folder_);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(what().starts_with(folder_.string() + ": there is no model in this folder; expected config.json")) << what();
  describe(model::to_config_json(tiny::models().at("llama"), 0, 0));
  EXPECT_TRUE(what().starts_with(fmt::format("{}: cannot open", file().string()))) << what();
}

model::ImageModelFile tiny_resnet() {
  model::ResNetConfig config;
  config.image_size = 8, config.channels = 1, config.classes = 2, config.width = 4, config.blocks = {1, 1};
  return {config, {0.5F}, {0.25F}, {"a", "b"}};
}

TEST_F(Weights, BuffersBelongToAClassifier) {
  const model::ImageModelFile described = tiny_resnet();
  const auto model = model::make_classifier(described.model, 1), other = model::make_classifier(described.model, 2);
  const at::Tensor images = at::arange(3 * 64, at::kFloat).mul(0.7).sin().view({3, 1, 8, 8});
  for (int i = 0; i < 2; ++i) model->logits(images);  // moves the running statistics
  model::save_weights(*model, file());
  const base::Safetensors stored = base::Safetensors::read(file());
  EXPECT_EQ(stored.tensors().size(),
            model::parameter_shapes(described.model).size() + model::buffer_shapes(described.model).size());
  EXPECT_EQ(stored.require("bn1.num_batches_tracked").type, "I64");
  EXPECT_EQ(stored.require("bn1.num_batches_tracked").shape.size(), 0U);
  model::load_weights(*other, file());
  for (const auto& item : model->named_buffers())
    EXPECT_TRUE(at::equal(item.value(), *other->named_buffers().find(item.key())));
  describe(model::to_config_json(described));
  const model::LoadedClassifier loaded = model::load_classifier(folder_);
  EXPECT_EQ(loaded.described.labels, described.labels);
  model->eval();
  EXPECT_FALSE(loaded.model->is_training());
  EXPECT_TRUE(at::equal(model->logits(images), loaded.model->logits(images)));
}

TEST_F(Weights, ClassifiersOfOtherArchitecturesAreRefused) {
  const model::ImageModelFile described = tiny_resnet();
  const auto model = model::make_classifier(described.model, 1);
  const auto with = [&](const std::function<void(std::vector<base::TensorToWrite>&)>& change) {
    std::vector<base::TensorToWrite> list = weights_of(*model);
    change(list);
    base::write_safetensors(file(), list, {});
    describe(model::to_config_json(described));
    const std::string of_load = fault([&] { model::load_weights(*model, file()); });
    EXPECT_EQ(fault([&] { model::load_classifier(folder_); }), of_load);
    return of_load;
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_EQ(with([](auto& list) { std::erase_if(list, [](const auto& t) { return t.name == "bn1.running_var"; }); }),
            "no tensor 'bn1.running_var', which the model has as [4]; it has another architecture");
  EXPECT_EQ(with([](auto& list) {
              for (auto& t : list)
                if (t.name == "bn1.bias") t.name = "bn1.offset";
            }),
            "no tensor 'bn1.bias', which the model has as [4]; it has another architecture");
  const std::vector<std::byte> zeros(4 * 8);
  EXPECT_EQ(with([&](auto& list) {
              list.push_back({"layer9.0.conv1.weight", "F32", {4}, std::span(zeros).first(16)});
            }),
            "tensor 'layer9.0.conv1.weight' [4] is not in the model; it has another architecture");
  const auto typed = [&](const char* name, const char* type, std::size_t bytes) {
    return with([&](auto& list) {
      for (auto& t : list)
        if (t.name == name) t.type = type, t.data = std::span(zeros).first(bytes);
    });
  };
  EXPECT_EQ(typed("bn1.num_batches_tracked", "F32", 4), "tensor 'bn1.num_batches_tracked' has the type F32; valid: I64");
  EXPECT_EQ(typed("bn1.running_mean", "I64", 32), "tensor 'bn1.running_mean' has the type I64; valid: F32, BF16, F16, F64");
}

}  // namespace weights_test
}  // namespace cautious
