// A folder of its own for a test's files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/error.h>

#include "usage_message.h"

namespace cautious::data {

class DataFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "_" + std::to_string(::getpid()));
};

inline bool has(const std::string& line, std::string_view part) { return line.find(part) != line.npos; }

// Little-endian bytes of each number, `width` of them.
inline std::string bytes_of(const std::vector<std::int64_t>& numbers, int width) {
  std::string bytes;
  for (const std::int64_t number : numbers) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace cautious::data
