// A configuration out of a text and flags, as a run reads it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "run/config.h"
#include "usage_message.h"

namespace cautious {

using Flags = std::vector<std::pair<std::string, std::string>>;

// A folder of the running test, which starts and ends empty.
class RunConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string(test->test_suite_name()) + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  run::RunConfig read(std::string_view text, Flags flags = {}, std::string preset = "") const {
    std::ofstream(file(), std::ios::binary) << text;
    return run::read_config({{file()}, std::move(preset), std::move(flags)});
  }

  // The Error's line, with the file's folder taken away.
  std::string refused(std::string_view text, Flags flags = {}, std::string preset = "") const {
    std::string line = message([&] { read(text, std::move(flags), std::move(preset)); });
    const std::string folder = folder_.string() + "/";
    for (std::size_t at; (at = line.find(folder)) != std::string::npos;) line.erase(at, folder.size());
    return line;
  }

  std::filesystem::path file() const { return folder_ / "run.toml"; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

inline run::RunConfig typed(Flags flags, std::string preset = "") {
  return run::read_config({{}, std::move(preset), std::move(flags)});
}

inline std::string refused_flags(Flags flags, std::string preset = "") {
  return message([&] { typed(std::move(flags), std::move(preset)); });
}

}  // namespace cautious
