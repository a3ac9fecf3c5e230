// The safetensors reader and writer: round trips, order, alignment, and what the writer refuses.
#include "base/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <cautious/error.h>
#include "safetensors_text.h"

namespace cautious::base {
namespace safetensors_test {

class SafetensorsFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path scratch(const std::string& name) const { return directory_ / name; }

  const std::filesystem::path directory_ =
      std::filesystem::path(testing::TempDir()) / ("safetensors_" + std::to_string(::getpid()));
};

void expect_usage(const std::vector<TensorToWrite>& tensors, const Metadata& metadata, const std::string& part) {
  try {
    safetensors_header(tensors, metadata);
    ADD_FAILURE() << "accepted, though: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(SafetensorsFiles, RoundTripOfEveryTypeAndShape) {
  const std::vector<std::string> types = {
      "BOOL", "U8",  "I8",  "U16",     "I16",     "U32", "I32",     "U64",     "I64",     "F16",         "BF16",
      "F32",  "F64", "C64", "F8_E4M3", "F8_E5M2", "F4",  "F8_E8M0", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};
  const std::vector<std::vector<std::int64_t>> shapes = {{},  {0},    {3, 0, 2},    {1},
                                                         {4}, {3, 4}, {2, 1, 2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 8}};
  std::mt19937 random(1);
  std::vector<std::string> contents;
  std::vector<TensorToWrite> tensors;
  contents.reserve(types.size() * shapes.size());
  for (const auto& type : types) {
    for (const auto& shape : shapes) {
      std::size_t bits = bits_of_type(type);
      for (const auto size : shape) bits *= static_cast<std::size_t>(size);
      if (bits % 8 != 0) continue;  // a scalar of 4 or 6 bits does not exist
      std::string& content = contents.emplace_back(bits / 8, '\0');
      for (char& c : content) c = static_cast<char>(random());
      tensors.push_back({type + " " + std::to_string(tensors.size()), type, shape, bytes_of(content)});
    }
  }
  ASSERT_GT(tensors.size(), 160u);
  const Metadata metadata = {{"", ""}, {"recipe", "adamw\nlr = 1e-3"}, {"quote\"\\", "\x01 \xc3\xa9 \xf0\x9f\x98\x80"}};
  const auto path = scratch("all.safetensors");
  write_safetensors(path, tensors, metadata);
  const Safetensors file = Safetensors::read(path);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& got = file.require(tensors[i].name);
    EXPECT_EQ(got.type, tensors[i].type);
    EXPECT_EQ(got.shape, tensors[i].shape);
    EXPECT_EQ(got.elements() * static_cast<std::int64_t>(bits_of_type(got.type)),
              static_cast<std::int64_t>(tensors[i].data.size() * 8));
    const auto data = file.data(got);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), tensors[i].data.begin(), tensors[i].data.end()));
  }
}

TEST_F(SafetensorsFiles, EmptyFileAndNames) {
  const auto path = scratch("empty.safetensors");
  write_safetensors(path, {}, {});
  EXPECT_EQ(std::filesystem::file_size(path), 16u);
  EXPECT_TRUE(Safetensors::read(path).tensors().empty());
  write_safetensors(path, {{"", "F32", {0}, {}}, {"a/b \"c\"\n", "F64", {0}, {}}}, {});
  const Safetensors file = Safetensors::read(path);
  EXPECT_NE(file.find(""), nullptr);
  EXPECT_NE(file.find("a/b \"c\"\n"), nullptr);
  EXPECT_EQ(file.find("a"), nullptr);
}

TEST(Safetensors, HeaderIsPaddedToEightBytes) {
  for (std::size_t n = 0; n < 9; ++n) {
    const std::string header = safetensors_header({{std::string(n, 'x'), "U8", {0}, {}}}, {});
    EXPECT_EQ(header.size() % 8, 0u);
    EXPECT_EQ(parse(header).data, header.size());
  }
}

TEST_F(SafetensorsFiles, DataIsFoundAfterAnyHeader) {
  const auto path = scratch("shifted.safetensors");
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    const std::string json = R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})" + std::string(spaces, ' ');
    std::string text = file_with(json, 3);
    text.replace(text.size() - 3, 3, "abc");
    std::ofstream(path, std::ios::binary) << text;
    const Safetensors file = Safetensors::read(path);
    const auto data = file.data(file.require("x"));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data()), data.size()), "abc");
  }
}

TEST(Safetensors, TensorsComeInTheOrderOfTheirBytes) {
  const auto header =
      parse(file_with(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"empty":{"dtype":"F32","shape":[0],)"
                      R"("data_offsets":[3,3]},"a":{"shape":[3],"data_offsets":[0,3],"dtype":"I8"}}   )",
                      5));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0], (TensorInfo{"a", "I8", {3}, 0, 3}));
  EXPECT_EQ(header.tensors[1], (TensorInfo{"empty", "F32", {0}, 3, 3}));
  EXPECT_EQ(header.tensors[2], (TensorInfo{"b", "U8", {2}, 3, 5}));
}

TEST_F(SafetensorsFiles, MissingTensorAndMissingFile) {
  const auto path = scratch("xy.safetensors");
  write_safetensors(path, {{"x", "F32", {0}, {}}, {"y", "F32", {0}, {}}}, {});
  const Safetensors file = Safetensors::read(path);
  EXPECT_EQ(file.find("g"), nullptr);
  for (const auto& [action, part] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { file.require("g"); }, path.string() + ": no tensor 'g'; tensors: 'x', 'y'"},
           {[&] { Safetensors::read(scratch("none")); }, "none: cannot open: No such file or directory"},
           {[&] { Safetensors::read(path.parent_path()); }, "cannot open: Is a directory"},
           {[&] { Safetensors::read("/dev/zero"); }, "/dev/zero: cannot open: not a regular file"}}) {
    try {
      action();
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(Safetensors, WriterRefusesWhatTheReaderWould) {
  const std::string data = "12345678";
  const auto bytes = bytes_of(data);
  expect_usage({{"a", "F64", {1}, bytes}, {"b", "U8", {8}, bytes}, {"a", "U8", {8}, bytes}}, {}, "tensor 'a' occurs twice");
  expect_usage({{"__metadata__", "F64", {1}, bytes}}, {}, "tensor '__metadata__' has a reserved name");
  expect_usage({{"a", "f64", {1}, bytes}}, {}, "tensor 'a': unknown dtype 'f64'");
  expect_usage({{"a", "F64", {2}, bytes}}, {}, "tensor 'a': shape [2] of F64 takes 16 bytes, not 8");
  expect_usage({{"a", "U8", {-2, -4}, bytes}}, {}, "tensor 'a': shape [-2, -4] has the negative size -2");
  expect_usage({{"\xff", "U8", {8}, bytes}}, {}, "not UTF-8; its bytes in hexadecimal: ff");
  expect_usage({}, {{"k", "\xc3"}}, "not UTF-8");
  expect_usage({}, {{"k", std::string(100'000'001, 'x')}}, "at most 100000000");
}

}  // namespace safetensors_test
}  // namespace cautious::base
