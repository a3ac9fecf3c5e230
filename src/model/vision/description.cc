// config.json of an image classifier in timm's form. What timm has no word for is under our own key, which it passes over.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/fields.h"
#include "base/text.h"
#include "model/json_keys.h"
#include "model/vision/config.h"

namespace cautious::model {
namespace {

struct KnownVit {
  std::string_view name;
  std::int64_t patch, width, layers, heads;
};
constexpr std::array kVits{
    KnownVit{"vit_tiny_patch16_224", 16, 192, 12, 3},   KnownVit{"vit_small_patch16_224", 16, 384, 12, 6},
    KnownVit{"vit_small_patch32_224", 32, 384, 12, 6},  KnownVit{"vit_base_patch8_224", 8, 768, 12, 12},
    KnownVit{"vit_base_patch16_224", 16, 768, 12, 12},  KnownVit{"vit_base_patch32_224", 32, 768, 12, 12},
    KnownVit{"vit_large_patch16_224", 16, 1024, 24, 16}};

struct KnownResNet {
  std::string_view name;
  std::array<double, 4> blocks;
  Block block;
};
constexpr std::array kResNets{
    KnownResNet{"resnet18", {2, 2, 2, 2}, Block::basic}, KnownResNet{"resnet34", {3, 4, 6, 3}, Block::basic},
    KnownResNet{"resnet50", {3, 4, 6, 3}, Block::bottleneck}, KnownResNet{"resnet101", {3, 4, 23, 3}, Block::bottleneck},
    KnownResNet{"resnet152", {3, 8, 36, 3}, Block::bottleneck}};

// Models that timm does not have.
constexpr std::string_view kOwnVit = "cautious_vit", kOwnResNet = "cautious_resnet";
constexpr const char* kOwnKey = "cautious";
constexpr double kTimmEps = 1e-6;

constexpr auto kArchitectures = [] {
  std::array<std::string_view, kVits.size() + kResNets.size() + 2> names{};
  std::size_t next = 0;
  for (const KnownVit& known : kVits) names[next++] = known.name;
  for (const KnownResNet& known : kResNets) names[next++] = known.name;
  names[next++] = kOwnVit;
  names[next++] = kOwnResNet;
  return names;
}();

std::string_view architecture_of(const VitConfig& c) {
  const double ratio = static_cast<double>(c.hidden) / static_cast<double>(c.width);
  const bool same_hidden = std::floor(static_cast<double>(c.width) * ratio) == static_cast<double>(c.hidden);
  if (c.positions != Positions::learned || c.norm_eps != kTimmEps || !same_hidden) return kOwnVit;
  for (const KnownVit& known : kVits) {
    if (known.patch == c.patch && known.width == c.width && known.layers == c.layers && known.heads == c.heads)
      return known.name;
  }
  return kVits.front().name;  // model_args say what is different
}

bool is_known(const ResNetConfig& c, const KnownResNet& known) {
  return c.stem == Stem::imagenet && c.width == 64 && c.block == known.block &&
         std::equal(c.blocks.begin(), c.blocks.end(), known.blocks.begin(), known.blocks.end());
}

std::string_view architecture_of(const ResNetConfig& c) {
  const auto* const found =
      std::find_if(kResNets.begin(), kResNets.end(), [&](const auto& known) { return is_known(c, known); });
  return found == kResNets.end() ? kOwnResNet : found->name;
}

// The names by which timm's models are called with other numbers.
Json arguments_of(const VitConfig& c) {
  return {{"img_size", c.image_size},
          {"patch_size", c.patch},
          {"in_chans", c.channels},
          {"embed_dim", c.width},
          {"depth", c.layers},
          {"num_heads", c.heads},
          {"mlp_ratio", static_cast<double>(c.hidden) / static_cast<double>(c.width)},
          {"class_token", c.pool == Pool::token},
          {"global_pool", c.pool == Pool::token ? "token" : "avg"},
          {"drop_path_rate", c.drop_path}};
}

Json arguments_of(const ResNetConfig& c) { return {{"in_chans", c.channels}}; }

std::string_view first_layer(const VitConfig&) { return "patch_embed.proj"; }
std::string_view first_layer(const ResNetConfig&) { return "conv1"; }
std::string_view last_layer(const VitConfig&) { return "head"; }
std::string_view last_layer(const ResNetConfig&) { return "fc"; }

void read_pool(const Keys& keys, const Keys& arguments, VitConfig& c) {
  std::string pool = "token";
  bool token = true;
  keys.maybe("global_pool", pool);
  arguments.maybe("global_pool", pool);
  arguments.maybe("class_token", token);
  if (pool != "token" && pool != "avg") Keys::unsupported("global_pool", pool, "token, avg");
  c.pool = pool == "token" ? Pool::token : Pool::mean;
  if (token != (c.pool == Pool::token))
    Keys::unsupported("class_token", token, pool == "token" ? "true with global_pool token" : "false with global_pool avg");
}

void read_arguments(const Keys& keys, const Keys& arguments, VitConfig& c) {
  constexpr std::array<std::string_view, 11> kKeys{"img_size",    "patch_size",     "in_chans",   "embed_dim",
                                                   "depth",       "num_heads",      "mlp_ratio",  "class_token",
                                                   "global_pool", "drop_path_rate", "num_classes"};
  arguments.all_among(kKeys);
  arguments.maybe("img_size", c.image_size);
  arguments.maybe("patch_size", c.patch);
  arguments.maybe("embed_dim", c.width);
  arguments.maybe("depth", c.layers);
  arguments.maybe("num_heads", c.heads);
  arguments.maybe("drop_path_rate", c.drop_path);
  double ratio = 4;
  arguments.maybe("mlp_ratio", ratio);
  const double hidden = std::floor(static_cast<double>(c.width) * ratio);
  if (!VitConfig::kSize.contains(hidden)) Keys::wrong("mlp_ratio", ratio, "a hidden width in " + to_string(VitConfig::kSize));
  c.hidden = static_cast<std::int64_t>(hidden);
  read_pool(keys, arguments, c);
}

void read_arguments(const Keys&, const Keys& arguments, ResNetConfig&) {
  constexpr std::array<std::string_view, 2> kKeys{"in_chans", "num_classes"};
  arguments.all_among(kKeys);
}

// What timm's default of the name is, with what the file says is different.
template <class Config>
Config read_timm(const Keys& keys, Config c) {
  const Json none = Json::object(), *const given = keys.find("model_args");
  const Keys arguments(given == nullptr ? none : *given);
  c.classes = 1000;
  keys.maybe("num_classes", c.classes);
  arguments.maybe("num_classes", c.classes);
  arguments.maybe("in_chans", c.channels);
  read_arguments(keys, arguments, c);
  return c;
}

ImageModel read_timm(const Keys& keys, std::string_view architecture, std::int64_t size) {
  for (const KnownVit& known : kVits) {
    if (known.name != architecture) continue;
    VitConfig c;
    c.image_size = size;
    c.patch = known.patch, c.width = known.width, c.layers = known.layers, c.heads = known.heads;
    return read_timm(keys, c);
  }
  for (const KnownResNet& known : kResNets) {
    if (known.name != architecture) continue;
    ResNetConfig c;
    c.image_size = size;
    c.width = 64;
    c.blocks.assign(known.blocks.begin(), known.blocks.end());
    c.block = known.block;
    c.stem = Stem::imagenet;
    return read_timm(keys, c);
  }
  Keys::refuse(fmt::format("there is no key '{}', which '{}' needs", kOwnKey, architecture));
}

template <class Config>
Config read_own(const Keys& own) {
  Config c;
  std::vector<std::string_view> names;
  base::each_field(c, [&](auto& of, const auto& field) {
    names.push_back(field.name);
    own.require(std::string(field.name).c_str(), of.*field.member);
  });
  own.all_among(names);
  return c;
}

void check_channels(const char* key, const std::vector<float>& values, std::int64_t count, bool positive) {
  const auto fits = [&](float value) { return std::isfinite(value) && (!positive || value > 0); };
  if (static_cast<std::int64_t>(values.size()) == count && std::all_of(values.begin(), values.end(), fits)) return;
  Keys::wrong(key, Json(values), fmt::format("{} {}numbers, one per channel", count, positive ? "positive " : ""));
}

ImageModelFile read_image_model(const Keys& keys) {
  std::string architecture;
  keys.require("architecture", architecture);
  (void)base::index_of_name("architecture", architecture, kArchitectures);
  const Json* const data = keys.find("pretrained_cfg");
  if (data == nullptr) Keys::refuse("there is no key 'pretrained_cfg'");
  const Keys seen(*data);
  ImageModelFile file;
  std::vector<double> size;
  seen.require("input_size", size);
  if (size.size() != 3 || !VitConfig::kSize.contains(size[1]) || size[1] != size[2])
    Keys::wrong("input_size", Json(size), "[channels, size, size]");
  if (const Json* const own = keys.find(kOwnKey)) {
    const bool vit = architecture == kOwnVit || architecture.starts_with("vit_");
    file.model = vit ? ImageModel(read_own<VitConfig>(Keys(*own))) : ImageModel(read_own<ResNetConfig>(Keys(*own)));
  } else {
    file.model = read_timm(keys, architecture, static_cast<std::int64_t>(size[1]));
  }
  check(file.model);
  seen.require("mean", file.mean);
  seen.require("std", file.deviation);
  check_channels("mean", file.mean, channels(file.model), false);
  check_channels("std", file.deviation, channels(file.model), true);
  keys.maybe("label_names", file.labels);
  if (!file.labels.empty() && static_cast<std::int64_t>(file.labels.size()) > classes(file.model))
    Keys::refuse(fmt::format("'label_names' has {} names, but the model {} classes", file.labels.size(), classes(file.model)));
  return file;
}

}  // namespace

std::string to_config_json(const ImageModelFile& described) {
  check(described.model);
  const std::int64_t size = image_size(described.model), number = classes(described.model), depth = channels(described.model);
  Json json, own;
  std::visit(
      [&](const auto& c) {
        base::each_field(c, [&](auto& of, const auto& field) { own[std::string(field.name)] = to_json(of.*field.member); });
        json = {{"architecture", architecture_of(c)},
                {"num_classes", number},
                {"model_args", arguments_of(c)},
                {"pretrained_cfg",
                 {{"input_size", {depth, size, size}},
                  {"mean", described.mean},
                  {"std", described.deviation},
                  {"num_classes", number},
                  {"first_conv", first_layer(c)},
                  {"classifier", last_layer(c)}}},
                {"label_names", described.labels},
                {kOwnKey, own}};
      },
      described.model);
  return json.dump(2) + "\n";
}

ImageModelFile image_model_from_json(std::string_view text, const std::string& file) {
  return read_described<ImageModelFile>(text, file, read_image_model);
}

}  // namespace cautious::model
