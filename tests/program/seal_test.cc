// The seal of a checkpoint: what was saved passes, anything else is named; and the depth of JSON that is read at all.
#include "run/seal.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "run_fixture.h"

namespace cautious::run {
namespace seal_test {

class Seals : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    store(directory_ / "model.safetensors", "weights");
    store(directory_ / "optimizer.safetensors", "moments");
    store(state(), sealed("{\"step\": 7, \"loss_sum\": 0.1, \"best\": null}", directory_));
  }
  std::filesystem::path state() const { return directory_ / "state.json"; }
  std::string refusal() const {
    return refused(Fault::data, [&] { check_seal(directory_); });
  }
};

TEST_F(Seals, WhatWasSavedPasses) {
  EXPECT_NO_THROW(check_seal(directory_));
  const auto json = nlohmann::json::parse(content(state()));
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["files"]["model.safetensors"], "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c")
      << "sha256sum of 'weights'";
}

TEST_F(Seals, AnyByteOfAnyFile) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string before = content(directory_ / name);
    for (std::size_t i = 0; i < before.size(); ++i) {
      std::string flipped = before;
      flipped[i] = static_cast<char>(flipped[i] ^ 1);
      store(directory_ / name, flipped);
      EXPECT_EQ(refusal(),
                (directory_ / name).string() + ": is not the file that was saved: its SHA-256 is not the one in state.json");
    }
    store(directory_ / name, before);
  }
  std::filesystem::remove(directory_ / "model.safetensors");
  EXPECT_NE(refusal().find("model.safetensors: cannot open"), std::string::npos);
}

TEST_F(Seals, OfTheStateItself) {
  std::string text = content(state());
  text.replace(text.find("0.1"), 3, "0.2");
  store(state(), text);
  EXPECT_EQ(refusal(), state().string() + ": was changed after it was saved: its SHA-256 is not the one inside");
  store(state(), "[1]");
  EXPECT_EQ(refusal(), state().string() + ": not a JSON object");
}

// Whoever can write a checkpoint can write a seal: it is of files beside it, and what it says is one line.
TEST_F(Seals, OfFilesElsewhere) {
  for (const char* name : {"/dev/zero", "../state.json", "two\nlines"}) {
    nlohmann::ordered_json json{{"step", 7}, {"files", {{name, "sum"}}}};
    json["sha256"] = base::sha256_of(json.dump(2) + "\n");
    store(state(), json.dump(2));
    EXPECT_EQ(refusal(),
              fmt::format("{}: 'files' has {}, which is no name of a file beside it", state().string(), base::in_quotes(name)));
  }
}

TEST_F(Seals, OfAnEarlierVersionThereIsNone) {
  store(state(), "{\"step\": 7}\n");
  EXPECT_NO_THROW(check_seal(directory_));
}

TEST(DeepJson, IsNotRead) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(base::parse_json(nested(64)).is_array());
  EXPECT_TRUE(base::parse_json(nested(65)).is_discarded());
  EXPECT_TRUE(base::parse_json("{\"a\":" + nested(1'000'000) + "}").is_discarded());
  EXPECT_TRUE(base::parse_json("[\"" + std::string(1000, '[') + "\\\"[\", \"\\\\\"]").is_array());  // brackets in a string
  EXPECT_TRUE(base::parse_json("[1").is_discarded());
}

}  // namespace seal_test
}  // namespace cautious::run
