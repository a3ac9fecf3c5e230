// Runs that start from a model: its shape and tokenizer are the configuration's, written down so that it is not needed again.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/safetensors.h"
#include "model/family.h"
#include "run/checkpoint.h"
#include "run/config.h"

namespace cautious::run {
namespace run_model_test {

namespace fs = std::filesystem;

class RunModel : public ::testing::Test {
 protected:
  RunModel() : folder_(fs::temp_directory_path() / fmt::format("cautious_run_model_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model");
    shape_ = model::preset("nano-100k");
    shape_.layers = 1, shape_.vocab = 77, shape_.qkv_bias = true;
    put("model/config.json", model::to_config_json(shape_, 0, 0));
    std::vector<base::TensorToWrite> list;
    const std::vector<std::byte> zeros(1 << 20);
    for (const model::Shape& shape : model::parameter_shapes(shape_)) {
      const auto bytes = static_cast<std::size_t>(4 * model::entries(shape));
      list.push_back({shape.name, "F32", shape.sides, std::span(zeros).first(bytes)});
    }
    base::write_safetensors(folder_ / "model" / "model.safetensors", list, {});
  }
  ~RunModel() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string model() const { return (folder_ / "model").string(); }

  fs::path folder_;
  model::ModelConfig shape_;
};

ConfigSource typed(std::vector<std::pair<std::string, std::string>> overrides) {
  ConfigSource source;
  source.overrides = std::move(overrides);
  return source;
}

ConfigSource of_file(const fs::path& file) {
  ConfigSource source;
  source.files = {file};
  return source;
}

std::string fields(const model::ModelConfig& c) { return base::to_line(base::fields_of(c)); }

TEST_F(RunModel, ShapeAndTokenizerAreTheModels) {
  const RunConfig config = read_config(typed({{"model.from", model()}}));
  EXPECT_EQ(fields(config.model.shape), fields(shape_));
  EXPECT_EQ(config.data.tokenizer, model());
  const RunConfig changed = read_config(typed({{"data.tokenizer", "bytes"}, {"model.context", "64"}, {"model.from", model()}}));
  EXPECT_EQ(changed.data.tokenizer, "bytes");
  EXPECT_EQ(changed.model.shape.context, 64);
  EXPECT_EQ(changed.model.shape.vocab, 77);
  EXPECT_EQ(read_config({}).model.from, "");
}

TEST_F(RunModel, WhatIsWrittenDownDoesNotNeedTheModel) {
  const RunConfig config = read_config(typed({{"model.from", model()}}));
  put("config.toml", to_toml(config));
  fs::remove_all(folder_ / "model");
  const RunConfig again = read_config(of_file(folder_ / "config.toml"));
  EXPECT_EQ(to_toml(again), to_toml(config));
  EXPECT_EQ(again.model.from, model());
}

TEST_F(RunModel, AModelThatIsNotThereIsNamedWithItsKey) {
  const auto begins_with = [](const std::string& what, const std::string& start) { return what.starts_with(start); };
  const auto fault = [](const ConfigSource& source) {
    try {
      read_config(source);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_PRED2(begins_with, fault(typed({{"model.from", "nowhere"}})), "--model.from: 'nowhere' does not exist");
  put("run.toml", "[model]\nfrom = \"nowhere\"\n");
  EXPECT_PRED2(begins_with, fault(of_file(folder_ / "run.toml")),
               (folder_ / "run.toml").string() + ":2: model.from: 'nowhere' does not exist");
  EXPECT_PRED2(begins_with, fault(typed({{"model.from", "gcide"}})), "--model.from: 'gcide' is a set of");
  fs::remove(folder_ / "model" / "model.safetensors");
  EXPECT_NE(fault(typed({{"model.from", model()}})).find("holds no checkpoint"), std::string::npos);
}

TEST_F(RunModel, FilesOfLlama2cAreModelsButRunsAreNot) {
  put("model.bin", "");
  put("tokenizer.bin", "");
  EXPECT_EQ(find_checkpoint(folder_), folder_);
  EXPECT_EQ(find_checkpoint(folder_ / "model.bin"), folder_ / "model.bin");
  EXPECT_EQ(tokenizer_beside(folder_ / "model.bin"), folder_);
  put("config.toml", "");  // of a run, whose decay_trace.bin is not a model
  EXPECT_THROW(find_checkpoint(folder_), Error);
}

}  // namespace run_model_test
}  // namespace cautious::run
