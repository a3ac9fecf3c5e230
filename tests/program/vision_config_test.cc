// Image classifiers as plain data: published sizes and names, checks, and config.json there and back.
#include "model/vision/config.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

namespace cautious::model {
namespace vision_config_test {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Names names_in(const std::vector<Shape>& shapes) {
  Names names;
  for (const Shape& shape : shapes) names.push_back(shape.name);
  return names;
}

std::map<std::string, std::vector<std::int64_t>> by_name(const ImageModel& model) {
  std::map<std::string, std::vector<std::int64_t>> sides;
  for (const Shape& shape : parameter_shapes(model)) sides[shape.name] = shape.sides;
  return sides;
}

VitConfig vit(const char* name) { return std::get<VitConfig>(image_preset(name)); }
ResNetConfig resnet(const char* name) { return std::get<ResNetConfig>(image_preset(name)); }

TEST(VisionConfig, PresetsHaveTheirPublishedNumberOfParameters) {
  const std::map<std::string, std::int64_t> published{{"vit-s16", 22050664}, {"vit-b16", 86567656}, {"resnet-50", 25557032}};
  for (const auto& [name, count] : published) EXPECT_EQ(size_of(image_preset(name), 1).parameters, count) << name;
}

TEST(VisionConfig, PresetsAreValidAndNamedOnce) {
  const Names names = image_preset_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), 7U);
  for (const std::string& name : names) {
    EXPECT_NO_THROW(check(image_preset(name))) << name;
    EXPECT_TRUE(is_image_preset(name));
  }
  EXPECT_FALSE(is_image_preset("nano-1m"));
  const std::string words = message([] { image_preset("resnet20"); });
  EXPECT_NE(words.find("no model named 'resnet20'; did you mean 'resnet-20'? choices: vit-nano-4"), std::string::npos) << words;
}

// timm's vit_small_patch16_224 as its state dictionary lists it.
TEST(VisionConfig, NamesOfVisionTransformersAreTimms) {
  Names expected{"cls_token", "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias"};
  for (int block = 0; block < 12; ++block)
    for (const char* part : {"norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"})
      for (const char* kind : {"weight", "bias"}) expected.push_back(fmt::format("blocks.{}.{}.{}", block, part, kind));
  for (const char* last : {"norm.weight", "norm.bias", "head.weight", "head.bias"}) expected.emplace_back(last);
  EXPECT_EQ(names_in(parameter_shapes(image_preset("vit-s16"))), expected);
  EXPECT_TRUE(buffer_shapes(image_preset("vit-s16")).empty());
  const auto sides = by_name(image_preset("vit-s16"));
  using Sides = std::vector<std::int64_t>;
  EXPECT_EQ(sides.at("cls_token"), (Sides{1, 1, 384}));
  EXPECT_EQ(sides.at("pos_embed"), (Sides{1, 197, 384}));
  EXPECT_EQ(sides.at("patch_embed.proj.weight"), (Sides{384, 3, 16, 16}));
  EXPECT_EQ(sides.at("blocks.11.attn.qkv.weight"), (Sides{1152, 384}));
  EXPECT_EQ(sides.at("blocks.11.attn.qkv.bias"), (Sides{1152}));
  EXPECT_EQ(sides.at("blocks.0.mlp.fc1.weight"), (Sides{1536, 384}));
  EXPECT_EQ(sides.at("blocks.0.mlp.fc2.weight"), (Sides{384, 1536}));
  EXPECT_EQ(sides.at("head.weight"), (Sides{1000, 384}));
}

TEST(VisionConfig, MeanPoolingHasItsOwnNormAndNoToken) {
  VitConfig c = vit("vit-tiny-4");
  c.pool = Pool::mean;
  auto sides = by_name(c);
  EXPECT_EQ(sides.count("cls_token"), 0U);
  EXPECT_EQ(sides.count("norm.weight"), 0U);
  EXPECT_EQ(sides.at("fc_norm.weight"), (std::vector<std::int64_t>{192}));
  EXPECT_EQ(sides.at("pos_embed"), (std::vector<std::int64_t>{1, 64, 192}));
  c.positions = Positions::sincos;
  EXPECT_EQ(by_name(c).count("pos_embed"), 0U);
}

// torchvision's resnet50 as its state dictionary lists it, parameters and buffers apart.
TEST(VisionConfig, NamesOfResidualNetworksAreTorchvisions) {
  Names parameters, buffers;
  const auto conv = [&](const std::string& name, const std::string& norm) {
    for (const std::string& each : {name + ".weight", norm + ".weight", norm + ".bias"}) parameters.push_back(each);
    for (const char* each : {".running_mean", ".running_var", ".num_batches_tracked"}) buffers.push_back(norm + each);
  };
  conv("conv1", "bn1");
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 1; stage <= 4; ++stage) {
    for (int block = 0; block < blocks[stage - 1]; ++block) {
      const std::string at = fmt::format("layer{}.{}.", stage, block);
      for (int i = 1; i <= 3; ++i) conv(fmt::format("{}conv{}", at, i), fmt::format("{}bn{}", at, i));
      if (block == 0) conv(at + "downsample.0", at + "downsample.1");
    }
  }
  parameters.emplace_back("fc.weight");
  parameters.emplace_back("fc.bias");
  EXPECT_EQ(names_in(parameter_shapes(image_preset("resnet-50"))), parameters);
  EXPECT_EQ(names_in(buffer_shapes(image_preset("resnet-50"))), buffers);
  EXPECT_EQ(buffer_shapes(image_preset("resnet-50"))[2].sides.size(), 0U);
  using Sides = std::vector<std::int64_t>;
  const auto sides = by_name(image_preset("resnet-50"));
  EXPECT_EQ(sides.at("conv1.weight"), (Sides{64, 3, 7, 7}));
  EXPECT_EQ(sides.at("layer1.0.downsample.0.weight"), (Sides{256, 64, 1, 1}));
  EXPECT_EQ(sides.at("layer4.2.conv1.weight"), (Sides{512, 2048, 1, 1}));
  EXPECT_EQ(sides.at("layer2.0.conv2.weight"), (Sides{128, 128, 3, 3}));
  EXPECT_EQ(sides.at("fc.weight"), (Sides{1000, 2048}));
}

TEST(VisionConfig, SmallResidualNetworks) {
  // He et al.'s network for CIFAR has 269722 parameters with plain shortcuts where the width changes; ours are projections.
  EXPECT_EQ(size_of(image_preset("resnet-20"), 1).parameters, 269722 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64);
  EXPECT_EQ(size_of(image_preset("resnet-18-cifar"), 1).parameters, 11173962);
  EXPECT_EQ(by_name(image_preset("resnet-20")).count("layer2.0.downsample.0.weight"), 1U);
  EXPECT_EQ(by_name(image_preset("resnet-20")).count("layer1.0.downsample.0.weight"), 0U);
}

TEST(VisionConfig, SizesByHand) {
  const VitConfig c = vit("vit-tiny-4");
  const ImageModelSize size = size_of(c, 8);
  const double layer = 65 * (3 * 192 * 192 + 192 * 192 + 2 * 192 * 768) + 2 * 65 * 65 * 192;
  EXPECT_EQ(size.flops_per_image, 6 * (64 * 48 * 192 + 12 * layer + 10 * 192));
  EXPECT_EQ(size.parameter_bytes, 16 * size.parameters);
  EXPECT_EQ(size_of(c, 16).activation_bytes, 2 * size.activation_bytes);
  // Published: 40.8 million multiplications for CIFAR's network of 20 layers, 4.09 thousand million for the one of 50.
  EXPECT_NEAR(size_of(image_preset("resnet-20"), 1).flops_per_image / 6, 40.8e6, 0.4e6);
  EXPECT_NEAR(size_of(image_preset("resnet-50"), 1).flops_per_image / 6, 4.09e9, 0.02e9);
  EXPECT_NEAR(size_of(image_preset("vit-b16"), 1).flops_per_image / 6, 17.5e9, 0.2e9);
}

TEST(VisionConfig, NonsenseIsOneLineWithFieldAndValue) {
  const auto of_vit = [](const std::function<void(VitConfig&)>& change) {
    VitConfig c;
    change(c);
    return message([&] { check(c); });
  };
  EXPECT_EQ(of_vit([](VitConfig& c) { c.patch = 5; }), "patch of the model is 5, which does not divide image_size 32");
  EXPECT_EQ(of_vit([](VitConfig& c) { c.heads = 5; }), "heads of the model is 5, which does not divide width 192");
  EXPECT_EQ(of_vit([](VitConfig& c) { c.channels = 4; }), "channels of the model is 4; valid: [1, 3]");
  EXPECT_EQ(of_vit([](VitConfig& c) { c.drop_path = 1; }), "drop_path of the model is 1; valid: [0, 1)");
  EXPECT_EQ(of_vit([](VitConfig& c) { c.width = 6, c.positions = Positions::sincos; }),
            "width of the model is 6; positions sincos need a multiple of 4");
  EXPECT_EQ(of_vit([](VitConfig& c) { c.width = c.hidden = 999999, c.layers = 10000; }),
            "the model would have 6e+16 parameters; valid: at most 1e+15");
  const auto of_resnet = [](const std::function<void(ResNetConfig&)>& change) {
    ResNetConfig c;
    change(c);
    return message([&] { check(c); });
  };
  EXPECT_EQ(of_resnet([](ResNetConfig& c) { c.blocks = {}; }),
            "the number of stages in blocks of the model is 0; valid: [1, 8]");
  EXPECT_EQ(of_resnet([](ResNetConfig& c) {
              c.blocks = {2, 1.5};
            }),
            "blocks of the model has the number 1.5; valid: whole numbers in [1, 1000]");
  EXPECT_EQ(of_resnet([](ResNetConfig& c) { c.width = 0; }), "width of the model is 0; valid: [1, 1000000]");
  EXPECT_EQ(message([] { size_of(VitConfig{}, 0); }), "batch is 0; valid: [1, 1000000000]");
}

ImageModelFile described(const ImageModel& model) {
  ImageModelFile file{model, {}, {}, {}};
  for (std::int64_t i = 0; i < channels(model); ++i) {
    file.mean.push_back(0.4F + 0.1F * static_cast<float>(i));
    file.deviation.push_back(0.25F);
  }
  for (std::int64_t i = 0; i < classes(model); ++i) file.labels.push_back(fmt::format("class {}", i));
  return file;
}

TEST(VisionConfig, DescriptionsThereAndBack) {
  std::vector<ImageModel> models;
  for (const std::string& name : image_preset_names()) models.push_back(image_preset(name));
  VitConfig own = vit("vit-nano-4");
  own.image_size = 28, own.channels = 1, own.pool = Pool::mean, own.positions = Positions::sincos, own.drop_path = 0.1;
  models.emplace_back(own);
  for (const ImageModel& model : models) {
    const ImageModelFile file = described(model);
    const std::string text = to_config_json(file);
    const ImageModelFile back = image_model_from_json(text, "f");
    EXPECT_EQ(to_config_json(back), text);
    EXPECT_EQ(back.mean, file.mean);
    EXPECT_EQ(back.labels, file.labels);
    EXPECT_EQ(back.model.index(), model.index());
    EXPECT_EQ(names_in(parameter_shapes(back.model)), names_in(parameter_shapes(model)));
    // Without our own key the rest says the same, where timm has such a model.
    Json json = Json::parse(text);
    json.erase("cautious");
    if (json["architecture"].get<std::string>().starts_with("cautious_")) {
      EXPECT_NE(message([&] { image_model_from_json(json.dump(), "f"); }).find("there is no key 'cautious'"),
                std::string::npos);
    } else {
      EXPECT_EQ(to_config_json(image_model_from_json(json.dump(), "f")), text);
    }
  }
}

// As on the hub.
TEST(VisionConfig, TimmsOwnFilesAreRead) {
  const std::string text = R"({"architecture": "vit_small_patch16_224", "num_classes": 1000, "num_features": 384,
    "global_pool": "token", "pretrained_cfg": {"tag": "augreg_in21k_ft_in1k", "custom_load": true,
    "input_size": [3, 224, 224], "fixed_input_size": true, "interpolation": "bicubic", "crop_pct": 0.9,
    "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "num_classes": 1000, "pool_size": null,
    "first_conv": "patch_embed.proj", "classifier": "head"}})";
  const ImageModelFile file = image_model_from_json(text, "f");
  EXPECT_EQ(to_config_json(described(file.model)), to_config_json(described(image_preset("vit-s16"))));
  EXPECT_EQ(file.deviation, (std::vector<float>{0.5F, 0.5F, 0.5F}));
  Json json = Json::parse(text);
  json["architecture"] = "resnet50";
  json.erase("global_pool");
  EXPECT_EQ(to_config_json(described(image_model_from_json(json.dump(), "f").model)),
            to_config_json(described(image_preset("resnet-50"))));
}

TEST(VisionConfig, WhatIsNotOursIsRefused) {
  const auto refused = [](const std::function<void(Json&)>& change) {
    Json json = Json::parse(to_config_json(described(image_preset("vit-nano-4"))));
    change(json);
    try {
      image_model_from_json(json.dump(), "config.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused([](Json&) {}), "");
  EXPECT_EQ(refused([](Json& j) { j = 3; }), "config.json: it is '3', not an object");
  EXPECT_NE(refused([](Json& j) { j["architecture"] = "resnet5"; }).find("config.json: no architecture named 'resnet5'; did"),
            std::string::npos);
  EXPECT_EQ(refused([](Json& j) { j.erase("architecture"); }), "config.json: there is no key 'architecture'");
  EXPECT_EQ(refused([](Json& j) { j.erase("pretrained_cfg"); }), "config.json: there is no key 'pretrained_cfg'");
  EXPECT_EQ(refused([](Json& j) {
              j["pretrained_cfg"]["std"] = {0.5, 0, 0.5};
            }),
            "config.json: 'std' is '[0.5,0.0,0.5]'; valid: 3 positive numbers, one per channel");
  EXPECT_EQ(refused([](Json& j) { j["pretrained_cfg"]["mean"] = "0.5"; }),
            "config.json: 'mean' is '\"0.5\"'; valid: a list of numbers");
  EXPECT_EQ(refused([](Json& j) {
              j["pretrained_cfg"]["input_size"] = {3, 32};
            }),
            "config.json: 'input_size' is '[3.0,32.0]'; valid: [channels, size, size]");
  EXPECT_EQ(refused([](Json& j) { j["cautious"]["width"] = 65; }),
            "config.json: heads of the model is 4, which does not divide width 65");
  EXPECT_EQ(refused([](Json& j) { j["cautious"].erase("width"); }), "config.json: there is no key 'width'");
  EXPECT_NE(refused([](Json& j) { j["cautious"]["widht"] = 65; }).find("no key named 'widht'; did you mean 'width'"),
            std::string::npos);
  EXPECT_EQ(refused([](Json& j) { j["label_names"] = Json::array({1}); }),
            "config.json: 'label_names' is '[1]'; valid: a list of texts");
  EXPECT_EQ(refused([](Json& j) { j["label_names"].push_back("one more"); }),
            "config.json: 'label_names' has 11 names, but the model 10 classes");
  const auto timm = [&](const std::function<void(Json&)>& change) {
    return refused([&](Json& j) {
      j.erase("cautious");
      change(j["model_args"]);
    });
  };
  EXPECT_NE(timm([](Json& j) { j["qk_norm"] = true; }).find("no key named 'qk_norm'"), std::string::npos);
  EXPECT_EQ(timm([](Json& j) { j["class_token"] = false; }),
            "config.json: 'class_token' is 'false', which our models do not have; valid: true with global_pool token");
  EXPECT_EQ(timm([](Json& j) { j["global_pool"] = "map"; }),
            "config.json: 'global_pool' is '\"map\"', which our models do not have; valid: token, avg");
  EXPECT_EQ(timm([](Json& j) { j["depth"] = 1.5; }), "config.json: 'depth' is '1.5'; valid: a whole number in [1, 1000000000]");
  EXPECT_NE(timm([](Json& j) { j["mlp_ratio"] = 1e300; }).find("'mlp_ratio' is '1e+300'"), std::string::npos);
}

}  // namespace vision_config_test
}  // namespace cautious::model
