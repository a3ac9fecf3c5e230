// The configuration of a run on images: which keys it has, what follows from the data, how long it is, where tensors go.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "run/config_table.h"
#include "run_config_source.h"

namespace cautious::run {
namespace image_config_test {

class ImageConfigTest : public RunConfigTest {};

std::set<std::string> key_names(const RunConfig& config) {
  std::set<std::string> names;
  for (const ConfigKey& key : config_keys(config)) names.insert(key.name);
  return names;
}

const Flags kFashion{{"data.path", "fashion-mnist"}};

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(ImageConfig, APresetDecidesTheTask) {
  EXPECT_EQ(typed({}, "nano-1m").task, TaskKind::text);
  for (const std::string& name : model::image_preset_names()) {
    const RunConfig config = typed({}, name);
    EXPECT_EQ(config.task, TaskKind::image) << name;
    EXPECT_EQ(config.model.preset, name);
  }
  EXPECT_EQ(typed({{"model.preset", "vit-tiny-4"}}).task, TaskKind::image);
}

TEST_F(ImageConfigTest, AFileMaySayItsTask) {
  EXPECT_EQ(read("task = \"image\"\n").model.preset, "resnet-20");
  EXPECT_EQ(read("task = \"text\"\n").model.preset, "nano-300k");
  EXPECT_EQ(read("task = \"image\"\n[model]\npreset = \"vit-tiny-4\"\n").task, TaskKind::image);
  const std::string mixed = refused("task = \"text\"\n[model]\npreset = \"vit-tiny-4\"\n");
  EXPECT_NE(mixed.find("'vit-tiny-4', a model of the task 'image'"), mixed.npos) << mixed;
  const std::string unknown = refused("task = \"images\"\n");
  EXPECT_NE(unknown.find("did you mean 'image'?"), unknown.npos) << unknown;
}

TEST(ImageConfig, KeysAreThoseOfTheTask) {
  const std::set<std::string> text = key_names(typed({})), image = key_names(typed({}, "vit-tiny-4")),
                              resnet = key_names(typed({}, "resnet-20"));
  for (const char* name : {"data.tokenizer", "train.seq_len", "train.tokens", "eval.tokens", "model.vocab"}) {
    EXPECT_TRUE(text.contains(name) && !image.contains(name)) << name;
  }
  for (const char* name : {"augment.mixup", "data.workers", "train.epochs", "eval.images", "model.classes"}) {
    EXPECT_TRUE(image.contains(name) && !text.contains(name)) << name;
  }
  EXPECT_TRUE(image.contains("model.patch") && !resnet.contains("model.patch"));
  EXPECT_TRUE(resnet.contains("model.blocks") && !image.contains("model.blocks"));
  const std::string message = refused_flags({{"train.seq_len", "3"}}, "resnet-20");
  EXPECT_NE(message.find("no key named 'train.seq_len'"), message.npos) << message;
}

TEST_F(ImageConfigTest, WrittenAndReadAgainItIsTheSame) {
  for (const std::string& name : model::image_preset_names()) {
    const RunConfig config =
        typed(with(kFashion, {{"model.image_size", "64"}, {"augment.crop", "resized"}, {"train.ema", "0.9"}}), name);
    EXPECT_EQ(to_toml(read(to_toml(config))), to_toml(config)) << name;
  }
}

TEST(ImageConfig, SmallModelsFollowTheData) {
  const auto shape = [](const RunConfig& config) {
    const model::ImageModel& image = config.model.image;
    return std::vector{model::image_size(image), model::channels(image), model::classes(image)};
  };
  EXPECT_EQ(shape(typed(kFashion, "resnet-20")), (std::vector<std::int64_t>{28, 1, 10}));
  EXPECT_EQ(shape(typed({{"data.path", "cifar10"}}, "vit-tiny-4")), (std::vector<std::int64_t>{32, 3, 10}));
  EXPECT_EQ(shape(typed(with(kFashion, {{"model.image_size", "32"}, {"model.classes", "12"}}), "resnet-20")),
            (std::vector<std::int64_t>{32, 1, 12}))
      << "what the user sets stays";
  EXPECT_EQ(shape(typed(kFashion, "resnet-50")), (std::vector<std::int64_t>{224, 1, 10})) << "made for photographs";
}

TEST(ImageConfig, LengthIsInStepsImagesOrEpochs) {
  EXPECT_EQ(steps_of(typed({{"train.images", "1000"}, {"train.batch_size", "128"}}, "resnet-20")), 8);
  EXPECT_EQ(steps_of(typed(with(kFashion, {{"train.epochs", "1.5"}, {"train.batch_size", "100"}}), "resnet-20")), 900);
  EXPECT_EQ(steps_of(typed(with(kFashion, {{"train.epochs", "2"}, {"data.train_images", "1000"}, {"train.batch_size", "100"}}),
                           "resnet-20")),
            20);
  EXPECT_EQ(steps_of(typed(with(kFashion, {{"train.epochs", "1"}, {"data.val_fraction", "0.1"}, {"train.batch_size", "100"}}),
                           "resnet-20")),
            540);
  const std::string none = refused_flags({{"train.epochs", "2"}}, "resnet-20");
  EXPECT_NE(none.find("train.epochs needs data.path"), none.npos) << none;
  const std::string both = refused_flags({{"train.epochs", "2"}, {"train.images", "5"}}, "resnet-20");
  EXPECT_NE(both.find("set one of: train.steps, train.epochs, train.images"), both.npos) << both;
}

// By their names: the ends of a network, what has no direction, and the rest.
std::string expected_group(const std::string& name, const std::string& ends) {
  const bool vector = name.ends_with("bias") || name.find("norm") != name.npos || name.find("bn") != name.npos ||
                      name.find("downsample.1") != name.npos || name == "cls_token" || name == "pos_embed";
  if (vector) return "vectors";
  const bool end = name == "patch_embed.proj.weight" || name == "head.weight" || name == "fc.weight";
  return end ? ends : "matrices";
}

TEST(ImageConfig, EveryTensorHasItsGroup) {
  for (const char* model : {"vit-s16", "vit-tiny-4", "resnet-20", "resnet-50"}) {
    for (const char* name : {"adamw", "muon"}) {
      const RunConfig config = typed({{"optimizer.name", name}}, model);
      const Routing routing = routing_of(config);
      for (const model::Shape& shape : parameter_shapes(config)) {
        const std::string ends = name == std::string("muon") ? "rest" : "embedding";
        EXPECT_EQ(routing.groups[route(routing, shape.name, shape.sides)].name, expected_group(shape.name, ends)) << shape.name;
      }
    }
  }
}

}  // namespace image_config_test
}  // namespace cautious::run
