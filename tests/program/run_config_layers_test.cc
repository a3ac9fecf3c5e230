// Files and the command line upon one another: what wins, what falls away with a note, what stays open when it is printed, and
// what follows from the rest where nobody sets it.
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/tokenizer/bpe_training.h"
#include "run_config_source.h"

namespace cautious {
namespace run_config_layers_test {
namespace {

class RunConfigLayers : public RunConfigTest {
 protected:
  std::filesystem::path store(const std::string& name, std::string_view text) const {
    std::ofstream(folder() / name, std::ios::binary) << text;
    return folder() / name;
  }

  run::ReadConfig layers(const std::vector<std::string>& texts, Flags flags = {}, std::string preset = "") const {
    run::ConfigSource source{.files = {}, .preset = std::move(preset), .overrides = std::move(flags)};
    for (const std::string& text : texts)
      source.files.push_back(store(std::string(1, static_cast<char>('a' + source.files.size())), text));
    run::ReadConfig read = run::read_layers(source);
    const std::string path = folder().string() + "/";
    for (std::string& note : read.notes) {
      for (std::size_t at; (at = note.find(path)) != note.npos;) note.erase(at, path.size());
    }
    return read;
  }
};

using Notes = std::vector<std::string>;

TEST_F(RunConfigLayers, LaterFilesWin) {
  const run::RunConfig config =
      layers({"[train]\nsteps = 5\nseed = 1\n[eval]\nevery = 7\n", "[train]\nseed = 2\ntokens = 4096\n"}, {{"eval.every", "9"}})
          .config;
  EXPECT_EQ(config.train.seed, 2u);
  EXPECT_EQ(config.train.tokens, 4096);
  EXPECT_EQ(config.train.steps, 0) << "another way to say how long";
  EXPECT_EQ(config.eval.every, 9);
}

TEST_F(RunConfigLayers, HyphensAreUnderscores) {
  const auto config = layers({"[train]\nbatch-size = 4\n", "[optimizer]\nweight-decay = 0.5\n"}).config;
  EXPECT_EQ(config.train.batch_size, 4);
  EXPECT_EQ(config.optimizer.recipe.weight_decay, 0.5);
  try {
    layers({"[train]\nbatch-size = 4\nbatch_size = 8\n"});
    FAIL() << "both were taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a:3: train.batch_size is given twice, first in line 2"), std::string::npos);
  }
}

TEST_F(RunConfigLayers, TooManyKeysAreRefusedBeforeAnyIsLookedUp) {
  std::string text;
  for (int i = 0; i < 10'001; ++i) text += fmt::format("k{} = 1\n", i);
  try {
    layers({text});
    FAIL() << "all were taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a:10001: more than 10000 keys"), std::string::npos) << error.what();
  }
}

TEST_F(RunConfigLayers, AnotherOptimizerStartsAnew) {
  const std::string adamw =
      "[optimizer]\nname = 'adamw'\nlr = 1\nbeta2 = 0.5\neps = 1e-3\nweight_decay = 0.7\ngrad_clip = 3\ndecay = 'cautious'\n";
  const run::ReadConfig lion = layers({adamw}, {{"optimizer.name", "lion"}});
  EXPECT_EQ(to_string(lion.config.optimizer.recipe),
            "lion beta1=0.9 beta2=0.95 decay=cautious mask=direction coupling=plain weight_decay=0.1");
  EXPECT_EQ(lion.config.optimizer.lr, run::usual_lr("lion"));
  EXPECT_EQ(lion.config.optimizer.options.grad_clip, 3) << "it is nobody's own";
  EXPECT_EQ(lion.notes, Notes{"optimizer.lr, optimizer.beta2, optimizer.eps, optimizer.weight_decay of a are not used: "
                              "--optimizer.name is 'lion'"});

  EXPECT_EQ(layers({adamw}, {{"optimizer.name", "adamw"}}).config.optimizer.lr, 1) << "the same one";
  EXPECT_EQ(layers({"[optimizer]\nbeta1 = 0.8\nlr = 1\n"}, {{"optimizer.name", "muon"}}).notes,
            Notes{"optimizer.beta1 of a is not used: --optimizer.name is 'muon'"});
  EXPECT_EQ(layers({"[optimizer]\nname = 'adamw'\ncoupling = 'plain'\n", "[optimizer]\nname = 'adamc'\n"})
                .config.optimizer.recipe.coupling,
            Coupling::corrected);
}

TEST_F(RunConfigLayers, AnotherDecayTakesItsOwnFieldsAway) {
  const run::ReadConfig read =
      layers({"[optimizer]\nname = 'lion'\nbeta1 = 0.7\ndensity = 0.8\ndecay = 'random'\n"}, {{"optimizer.decay", "cautious"}});
  EXPECT_EQ(to_string(read.config.optimizer.recipe),
            "lion beta1=0.7 beta2=0.95 decay=cautious mask=direction coupling=plain weight_decay=0.1");
  EXPECT_EQ(read.notes, Notes{"optimizer.density of a is not used: --optimizer.decay is 'cautious'"});
}

TEST_F(RunConfigLayers, TheRestFallsAwayWithItsRule) {
  const std::string rest = "[optimizer.rest]\nlr_multiplier = 2\n";
  EXPECT_EQ(layers({rest + "[optimizer]\nname = 'muon'\n"}, {{"optimizer.name", "lion"}}).notes,
            Notes{"optimizer.rest.lr_multiplier of a is not used: --optimizer.name is 'lion'"});
  EXPECT_EQ(layers({rest + "[optimizer]\nname = 'lion-k'\nk = 'nuclear'\n"}, {{"optimizer.k", "l2"}}).notes,
            Notes{"optimizer.rest.lr_multiplier of a is not used: --optimizer.k is 'l2'"});
}

// A configuration that is written down complete is as good a base as one of a few lines.
TEST_F(RunConfigLayers, AnotherPresetReplacesTheModel) {
  const std::string whole = to_toml(typed({{"train.steps", "9"}}, "nano-1m"));
  for (const Flags& flags :
       {Flags{{"model.preset", "nano-100k"}}, Flags{{"model.preset", "nano-100k"}, {"model.layers", "9"}}}) {
    const run::RunConfig config = layers({whole}, flags).config;
    EXPECT_EQ(config.model.preset, "nano-100k");
    EXPECT_EQ(config.model.shape.width, model::preset("nano-100k").width);
    EXPECT_EQ(config.model.shape.layers, flags.size() > 1 ? 9 : model::preset("nano-100k").layers);
    EXPECT_EQ(config.train.steps, 9);
  }
  EXPECT_EQ(layers({whole}, {}, "resnet-20").config.task, run::TaskKind::image);
  EXPECT_EQ(layers({"[model]\ncontext = 64\n"}, {}, "nano-1m").config.model.shape.context, 64) << "of any model";
  EXPECT_EQ(layers({whole}, {}, "nano-1m").notes, Notes{}) << "the same one";
}

TEST_F(RunConfigLayers, WhatIsOpenStaysOpenWhenItIsPrinted) {
  for (const Flags& flags : {Flags{}, Flags{{"optimizer.name", "muon"}, {"train.steps", "7"}, {"data.path", "a,b"}}}) {
    const run::ReadConfig read = layers({}, flags, "nano-1m");
    const std::string printed = to_toml(read.config, read.set);
    EXPECT_EQ(to_toml(layers({printed}).config), to_toml(read.config));
    const run::ReadConfig other = layers({printed}, {{"optimizer.name", "lion"}}, "nano-100k");
    EXPECT_EQ(other.config.model.shape.width, model::preset("nano-100k").width);
    EXPECT_EQ(other.config.optimizer.lr, run::usual_lr("lion"));
    EXPECT_EQ(other.notes, Notes{});
  }
}

TEST_F(RunConfigLayers, LearningRatesByOptimizerAndModel) {
  for (const auto& [flags, preset, lr] :
       {std::tuple(Flags{}, "nano-300k", 5e-3), std::tuple(Flags{{"optimizer.name", "sgdm"}}, "nano-1m", 2.0),
        std::tuple(Flags{}, "olmo-1b", 3.1e-4), std::tuple(Flags{}, "resnet-20", 2e-3),
        std::tuple(Flags{{"optimizer.lr", "1"}}, "olmo-1b", 1.0)}) {
    EXPECT_EQ(typed(flags, preset).optimizer.lr, lr) << preset;
  }
  EXPECT_EQ(typed({{"task", "instruct"}, {"lora.rank", "0"}, {"train.steps", "1"}}).optimizer.lr, 2e-4);
  EXPECT_EQ(to_string(typed({{"task", "instruct"}, {"lora.rank", "0"}, {"train.steps", "1"}}).optimizer.recipe),
            to_string(recipe("adamw")));
}

TEST_F(RunConfigLayers, TheVocabularyFollowsTheTokenizer) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word" + std::to_string(i * 7919) + " ";
  const std::string file =
      store("tokenizer.json", data::train_bpe({store("t.txt", text)}, {.vocab = 300}, [](const char*, double) {}).to_json())
          .string();
  EXPECT_EQ(typed({{"data.tokenizer", file}}).model.shape.vocab, 300);
  EXPECT_EQ(typed({{"data.tokenizer", file}, {"model.vocab", "512"}}).model.shape.vocab, 512);
  EXPECT_EQ(typed({{"data.tokenizer", file}}, "olmo-1b").model.shape.vocab, 300);
  EXPECT_EQ(typed({{"data.tokenizer", "no-such.json"}}, "olmo-1b").model.shape.vocab, model::preset("olmo-1b").vocab);
  const std::string run = "data.tokenizer = '" + file + "'\nmodel.vocab = 300\n";  // as a run's config.toml has it
  EXPECT_EQ(layers({run}).config.model.shape.vocab, 300);
  const run::ReadConfig bytes = layers({run}, {{"data.tokenizer", "bytes"}});
  EXPECT_EQ(bytes.config.model.shape.vocab, model::preset("nano-300k").vocab);
  EXPECT_EQ(bytes.notes.size(), 1);
  EXPECT_EQ(layers({"data.tokenizer = 'bytes'\nmodel.vocab = 256\n"}, {{"data.tokenizer", file}}).config.model.shape.vocab,
            300);
}

}  // namespace
}  // namespace run_config_layers_test
}  // namespace cautious
