// The container: a file made by hand reads as what it says, what is written reads back, and nothing malformed is accepted.
#include "base/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <cautious/error.h>

namespace cautious::base {
namespace gguf_test {

namespace fs = std::filesystem;

// The format's own layout, written down once more.
template <class Number>
std::string le(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}
std::string u32(std::uint32_t number) { return le(number); }
std::string u64(std::uint64_t number) { return le(number); }
std::string text(const std::string& value) { return u64(value.size()) + value; }

struct ByHand {
  std::string metadata, tensors, data;
  std::uint64_t keys = 0, count = 0;
  std::uint32_t version = 3, alignment = 32;

  ByHand& key(const std::string& name, std::uint32_t type, const std::string& value) {
    metadata += text(name) + u32(type) + value;
    ++keys;
    return *this;
  }
  // Sides are the file's: the innermost first.
  ByHand& tensor(const std::string& name, const std::vector<std::uint64_t>& sides, std::uint32_t type, std::uint64_t offset) {
    tensors += text(name) + u32(static_cast<std::uint32_t>(sides.size()));
    for (const std::uint64_t side : sides) tensors += u64(side);
    tensors += u32(type) + u64(offset);
    ++count;
    return *this;
  }
  std::string file() const {
    std::string out = "GGUF" + u32(version) + u64(count) + u64(keys) + metadata + tensors;
    while (out.size() % alignment != 0) out += '\0';
    return out + data;
  }
};

GgufHeader parse(const std::string& bytes) { return parse_gguf(std::as_bytes(std::span(bytes)), "file"); }

std::string refusal_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_TRUE(line.starts_with("file: ") && line.find('\n') == line.npos && line.size() < 1000) << line;
    return line;
  }
  return "accepted";
}

void expect_refused(const std::string& bytes, const std::string& words) {
  const std::string line = refusal_of(bytes);
  EXPECT_NE(line.find(words), std::string::npos) << line;
}

ByHand sample() {
  ByHand hand;
  hand.key("u8", 0, le<std::uint8_t>(200)).key("i8", 1, le<std::int8_t>(-5)).key("u16", 2, le<std::uint16_t>(60000));
  hand.key("i16", 3, le<std::int16_t>(-300)).key("u32", 4, u32(4'000'000'000)).key("i32", 5, le<std::int32_t>(-7));
  hand.key("f32", 6, le(1.5f)).key("yes", 7, "\x01").key("text", 8, text("a b"));
  hand.key("list", 9, u32(8) + u64(2) + text("x") + text(""));
  hand.key("nested", 9, u32(9) + u64(2) + (u32(4) + u64(1) + u32(3)) + (u32(7) + u64(2) + std::string("\x01\x00", 2)));
  hand.key("u64", 10, u64(1ull << 60)).key("i64", 11, le<std::int64_t>(-1)).key("f64", 12, le(0.1));
  hand.tensor("a", {3, 2}, 0, 0).tensor("b", {32}, 8, 32);
  hand.data = std::string(24, 'a') + std::string(8, '\0') + std::string(34, 'b');
  return hand;
}

TEST(Gguf, AFileMadeByHandReadsAsWhatItSays) {
  for (const std::uint32_t version : {2u, 3u}) {
    ByHand hand = sample();
    hand.version = version;
    const std::string bytes = hand.file();
    const GgufHeader header = parse(bytes);
    const auto value = [&](const char* key) { return *header.find(key); };
    EXPECT_EQ(std::get<std::uint8_t>(value("u8")), 200);
    EXPECT_EQ(std::get<std::int8_t>(value("i8")), -5);
    EXPECT_EQ(std::get<std::uint16_t>(value("u16")), 60000);
    EXPECT_EQ(std::get<std::int16_t>(value("i16")), -300);
    EXPECT_EQ(std::get<std::uint32_t>(value("u32")), 4'000'000'000);
    EXPECT_EQ(std::get<std::int32_t>(value("i32")), -7);
    EXPECT_EQ(std::get<float>(value("f32")), 1.5f);
    EXPECT_EQ(std::get<bool>(value("yes")), true);
    EXPECT_EQ(std::get<std::string>(value("text")), "a b");
    EXPECT_EQ(std::get<std::vector<std::string>>(std::get<GgufArray>(value("list")).items),
              (std::vector<std::string>{"x", ""}));
    const auto nested = std::get<std::vector<GgufArray>>(std::get<GgufArray>(value("nested")).items);
    EXPECT_EQ(std::get<std::vector<std::uint32_t>>(nested.at(0).items), std::vector<std::uint32_t>{3});
    EXPECT_EQ(std::get<std::vector<bool>>(nested.at(1).items), (std::vector<bool>{true, false}));
    EXPECT_EQ(std::get<std::uint64_t>(value("u64")), 1ull << 60);
    EXPECT_EQ(std::get<std::int64_t>(value("i64")), -1);
    EXPECT_EQ(std::get<double>(value("f64")), 0.1);
    EXPECT_EQ(header.find("none"), nullptr);
    ASSERT_EQ(header.tensors.size(), 2u);
    EXPECT_EQ(header.tensors[0].sides, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(header.tensors[1].type->name, "Q8_0");
    EXPECT_EQ(bytes.substr(header.data + header.tensors[1].begin), std::string(34, 'b'));
  }
}

// The file's end may lack the last tensor's padding, and no more.
TEST(Gguf, EveryTruncationIsRefused) {
  const std::string whole = sample().file();
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal_of(whole.substr(0, size)), "accepted") << size;
  const std::string padding(30, '\0');
  parse(whole + padding);
  expect_refused(whole + padding + "x", "1 bytes follow the last tensor");
}

TEST(Gguf, WhatIsMalformedIsNamed) {
  const auto one = [](std::uint32_t type, const std::string& value) { return ByHand().key("k", type, value).file(); };
  expect_refused("GGML" + std::string(100, '\0'), "does not begin with GGUF");
  expect_refused("GGUF" + u32(4) + std::string(100, '\0'), "GGUF version 4; valid: 2, 3");
  expect_refused("GGUF" + u32(3) + u64(1ull << 63) + u64(1ull << 63), "truncated");
  expect_refused(one(13, ""), "a value has the type 13; valid: 0 to 12");
  expect_refused(one(7, "\x02"), "a truth value is 2");
  expect_refused(one(8, u64(1ull << 62)), "a text of 4611686018427387904 bytes");
  expect_refused(one(9, u32(12) + u64(1ull << 62)), "an array of 4611686018427387904 values");
  expect_refused(one(9, u32(9) + u64(100) + std::string(200, '\0')), "an array of 100 values");
  std::string deep;
  for (int i = 0; i < 9; ++i) deep += u32(9) + u64(1);
  expect_refused(one(9, deep + u32(0) + u64(0)), "arrays are nested deeper than 8");
  expect_refused(ByHand().key("k", 0, "x").key("k", 0, "x").file(), "the key 'k' occurs twice");
  expect_refused(ByHand().key("", 0, "x").file(), "a key of the metadata is empty");
}

TEST(Gguf, TensorsThatDoNotLieBehindEachOtherAreRefused) {
  const auto with = [](ByHand hand, std::size_t bytes) {
    hand.data = std::string(bytes, 'x');
    return hand.file();
  };
  expect_refused(with(ByHand().tensor("t", {1, 1, 1, 1, 1}, 0, 0), 64), "it has 5 sides");
  expect_refused(with(ByHand().tensor("t", {2}, 5, 0), 64), "unknown type 5");
  expect_refused(with(ByHand().tensor("t", {31}, 8, 0), 64), "its rows have 31 numbers; Q8_0 takes blocks of 32");
  expect_refused(with(ByHand().tensor("t", {1ull << 49}, 0, 0), 64), "a side is");
  expect_refused(with(ByHand().tensor("t", {1ull << 40, 1ull << 40}, 0, 0), 64), "its size overflows");
  expect_refused(with(ByHand().tensor("t", {100}, 0, 0), 64), "truncated");
  expect_refused(with(ByHand().tensor("t", {2}, 0, ~0ull), 64), "beyond the end of the file");
  expect_refused(with(ByHand().tensor("t", {2}, 0, 32), 64), "it begins at 32; expected 0");
  expect_refused(with(ByHand().tensor("t", {2}, 0, 0).tensor("s", {2}, 0, 0), 64), "it begins at 0; expected 32");
  expect_refused(with(ByHand().tensor("t", {2}, 0, 0).tensor("t", {2}, 0, 32), 64), "it occurs twice");
  for (const std::string& alignment : {u32(0), u32(24), u32(1u << 17)})
    expect_refused(ByHand().key("general.alignment", 4, alignment).file(), "'general.alignment' is not a power of two");
  expect_refused(ByHand().key("general.alignment", 8, text("8")).file(), "'general.alignment' is not a power of two");
}

TEST(Gguf, TheFilesOwnAlignmentCounts) {
  ByHand hand;
  hand.alignment = 128;
  hand.key("general.alignment", 4, u32(128)).tensor("a", {2}, 0, 0).tensor("b", {2}, 0, 128);
  hand.data = std::string(136, 'x');
  const GgufHeader header = parse(hand.file());
  EXPECT_EQ(header.data % 128, 0u);
  EXPECT_EQ(header.tensors[1].begin, 128u);
}

class GgufFile : public testing::Test {
 protected:
  GgufFile() : folder_(fs::path(testing::TempDir()) / ("gguf_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~GgufFile() override { fs::remove_all(folder_); }

  std::string content() const {
    std::ifstream in(folder_ / "x.gguf", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path folder_;
};

TEST_F(GgufFile, WhatIsWrittenHasTheBytesOfAFileMadeByHand) {
  const std::string hand = sample().file();
  const GgufHeader header = parse(hand);
  write_gguf(folder_ / "x.gguf", header.metadata, header.tensors,
             [](std::size_t i, std::span<std::byte> bytes) { std::memset(bytes.data(), i == 0 ? 'a' : 'b', bytes.size()); });
  EXPECT_EQ(content(), hand + std::string(30, '\0'));
}

TEST_F(GgufFile, AFailureLeavesNothing) {
  const std::vector<GgufTensor> tensors{{"t", &ggml_type("F32"), {4}}};
  const auto fail = [](std::size_t, std::span<std::byte>) { throw Error(Fault::data, "no"); };
  EXPECT_THROW(write_gguf(folder_ / "x.gguf", {}, tensors, fail), Error);
  EXPECT_THROW(write_gguf(folder_ / "x.gguf", {}, {{"t", &ggml_type("Q8_0"), {4}}}, fail), Error);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_THROW(ggml_type("F31"), Error);
}

}  // namespace gguf_test
}  // namespace cautious::base
