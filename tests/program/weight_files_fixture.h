// A folder of weights for a test, what open_weights() says about it, and tensors by name.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "model/weight_source.h"

namespace cautious::model {

namespace fs = std::filesystem;

class WeightFiles : public ::testing::Test {
 protected:
  WeightFiles() : folder_(fs::temp_directory_path() / fmt::format("cautious_weight_files_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~WeightFiles() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name, std::ios::binary) << text; }
  // What is wrong, without the folder's name.
  std::string fault(const std::function<void()>& call) const {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      std::string what = error.what();
      for (std::size_t at; (at = what.find(folder_.string())) != what.npos;) what.erase(at, folder_.string().size() + 1);
      EXPECT_EQ(what.find('\n'), what.npos);
      return what;
    }
    return "";
  }
  std::string fault_of_folder() const {
    return fault([&] { open_weights(folder_); });
  }
  static std::vector<float> read(const WeightSource& source, const std::string& name) {
    for (const Shape& shape : parameter_shapes(source.config())) {
      if (shape.name != name) continue;
      std::vector<float> values(static_cast<std::size_t>(entries(shape)));
      source.read(shape, values);
      return values;
    }
    throw Error(Fault::usage, "no " + name);
  }

  fs::path folder_;
};

}  // namespace cautious::model
