// The safetensors reader against files that are wrong: every way to be malformed with its message, truncation, random damage.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <cautious/error.h>
#include "base/safetensors.h"
#include "safetensors_text.h"

namespace cautious::base {
namespace safetensors_malformed_test {

void expect_refused(const std::string& file, const std::string& part) {
  SCOPED_TRACE(file.substr(0, 120));
  try {
    parse(file);
    ADD_FAILURE() << "accepted, though: " << part;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.fault(), Fault::data);
    EXPECT_NE(message.find(part), message.npos) << message;
    EXPECT_TRUE(message.starts_with("f.safetensors: ")) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    EXPECT_LT(message.size(), 1000u) << message;
  }
}

TEST(SafetensorsMalformed, Length) {
  expect_refused("", "0 bytes are too short");
  expect_refused("1234567", "7 bytes are too short");
  expect_refused(std::string(8, '\0'), "the header begins with '', not with '{'");
  expect_refused(std::string(8, '\xff'), "not a safetensors file");
  expect_refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8) + "{}", "not a safetensors file");
  expect_refused(std::string("\x03\0\0\0\0\0\0\0", 8) + "{}", "the header's length is 3, but only 2 bytes follow");
}

TEST(SafetensorsMalformed, Json) {
  expect_refused(file_with("[]"), "the header begins with '[', not with '{'");
  expect_refused(file_with(" {}"), "the header begins with ' ', not with '{'");
  expect_refused(file_with("\xef\xbb\xbf{}"), "the header begins with");
  expect_refused(file_with("{"), "the header is not JSON: at byte 2: syntax error");
  expect_refused(file_with("{} x"), "the header is not JSON: at byte 4");
  expect_refused(file_with("{\"a\n\":1}"), "the header is not JSON");
  expect_refused(file_with("{\"\xff\":{}}"), "ill-formed UTF-8 byte");
  expect_refused(file_with("{\"__metadata__\":{\"a\":\"\xed\xa0\x80\"}}"), "ill-formed UTF-8 byte");
  expect_refused(file_with(R"({"\ud800":{}})"), "surrogate");
  expect_refused(file_with(std::string("{}\0 and more", 12)), "the header has a NUL at byte 2");
  expect_refused(file_with("{\"a\":" + std::string(200000, '[')), "tensor 'a' is an array; expected an object");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  expect_refused(file_with(deep), "tensor 'a' has the unknown key 'a'; keys: dtype, shape, data_offsets");
  expect_refused(file_with("{\"" + std::string(100000, 'n') + "\":1}"), "nnn...' (100000 bytes) is 1; expected an object");
  expect_refused(file_with("{\"a\":{\"shape\":[1e999]}}"), "number overflow parsing '1e999'");
}

std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(SafetensorsMalformed, Entries) {
  const std::string ok = tensor("\"U8\"", "[2]", "[0,2]");
  parse(file_with("{\"a\":" + ok + "}", 2));
  const auto refused = [](const std::string& entry, const std::string& part) {
    expect_refused(file_with("{\"a\":" + entry + "}", 2), part);
  };
  refused("null", "tensor 'a' is null; expected an object");
  refused("\"x\"", "tensor 'a' is the string 'x'; expected an object");
  refused("{}", "tensor 'a' has no 'dtype'");
  refused(R"({"dtype":"U8","shape":[2]})", "tensor 'a' has no 'data_offsets'");
  refused(R"({"dtype":"U8","dtype":"U8"})", "tensor 'a' has 'dtype' twice");
  refused(R"({"shape":[2],"shape":[2]})", "tensor 'a' has 'shape' twice");
  refused(R"({"data_offsets":[0,2],"data_offsets":[0,2]})", "tensor 'a' has 'data_offsets' twice");
  refused(R"({"offsets":[0,2]})", "tensor 'a' has the unknown key 'offsets'; keys: dtype, shape, data_offsets");
  refused(tensor("\"U9\"", "[2]", "[0,2]"), "tensor 'a': unknown dtype 'U9'; dtypes: BOOL, U8");
  refused(tensor("\"f32\"", "[2]", "[0,2]"), "unknown dtype 'f32'");
  refused(tensor("8", "[2]", "[0,2]"), "tensor 'a': dtype is 8; expected a string");
  refused(tensor("[\"U8\"]", "[2]", "[0,2]"), "tensor 'a': dtype is an array; expected a string");
  refused(tensor("\"U8\"", "2", "[0,2]"), "tensor 'a': shape is 2; expected an array of integers");
  refused(tensor("\"U8\"", "{}", "[0,2]"), "tensor 'a': shape is an object; expected an array of integers");
  refused(tensor("\"U8\"", "\"2\"", "[0,2]"), "tensor 'a': shape is the string '2'; expected an array");
  refused(tensor("\"U8\"", "[-1]", "[0,2]"), "tensor 'a': shape has -1; expected integers from 0 to 2^63-1");
  refused(tensor("\"U8\"", "[-0]", "[0,2]"), "tensor 'a': shape has -0");
  refused(tensor("\"U8\"", "[2.0]", "[0,2]"), "tensor 'a': shape has '2.0'");
  refused(tensor("\"U8\"", "[[2]]", "[0,2]"), "tensor 'a': shape has an array");
  refused(tensor("\"U8\"", "[true]", "[0,2]"), "tensor 'a': shape has true");
  refused(tensor("\"U8\"", "[9223372036854775808]", "[0,2]"), "tensor 'a': shape has 9223372036854775808");
  refused(tensor("\"U8\"", "[18446744073709551618]", "[0,2]"), "tensor 'a': shape has '18446744073709551618'");
  refused(tensor("\"U8\"", "[4294967296,4294967296]", "[0,2]"), "shape [4294967296, 4294967296] of U8 overflows");
  refused(tensor("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), "shape [0, 4294967296, 4294967296] of U8 overflows");
  refused(tensor("\"F64\"", "[1152921504606846976]", "[0,2]"), "shape [1152921504606846976] of F64 overflows");
  refused(tensor("\"U8\"", "[3]", "[0,2]"), "tensor 'a': shape [3] of U8 takes 3 bytes, not 2");
  refused(tensor("\"F64\"", "[]", "[0,2]"), "tensor 'a': shape [] of F64 takes 8 bytes, not 2");
  refused(tensor("\"F4\"", "[3]", "[0,2]"), "shape [3] of F4 has 12 bits, not whole bytes");
  refused(tensor("\"U8\"", "[2]", "[0]"), "tensor 'a': data_offsets has 1 numbers; expected 2");
  refused(tensor("\"U8\"", "[2]", "[0,2,2]"), "tensor 'a': data_offsets has 2; expected 2 integers");
  refused(tensor("\"U8\"", "[2]", "[0,\"2\"]"), "tensor 'a': data_offsets has the string '2'");
  refused(tensor("\"U8\"", "[2]", "[2,0]"), "tensor 'a': data_offsets [2, 0] end before they begin");
  refused(tensor("\"U8\"", "[2]", "[1,3]"), "tensor 'a': data_offsets [1, 3] reach beyond the 2 bytes of data");
  refused(tensor("\"U8\"", "[2]", "[0,9223372036854775807]"), "reach beyond the 2 bytes of data");
  refused(tensor("\"U8\"", "[2]", "[0,18446744073709551615]"), "data_offsets has 18446744073709551615");
  refused(tensor("\"U8\"", "[1]", "[1,2]"),
          "tensor 'a' begins at 1 and leaves a hole after the bytes before it, which end at 0");
  refused(tensor("\"U8\"", "[1]", "[0,1]"), "1 bytes follow the last tensor");
  refused(ok + ",\"a\":" + ok, "tensor 'a' occurs twice");
  refused(ok + ",\"\\u0061\":" + ok, "tensor 'a' occurs twice");
  refused(ok + ",\"b\":" + ok, "tensor 'b' begins at 0 and overlaps the bytes before it, which end at 2");
  refused(ok + ",\"b\":" + tensor("\"U8\"", "[0]", "[1,1]"), "tensor 'b' begins at 1 and overlaps");
  refused(ok + ",\"\\u001b[31m\\n\":1", "tensor '\\x1b[31m\\x0a' is 1");
  refused(ok + ",\"__metadata__\":{},\"__metadata__\":{}", "tensor '__metadata__' occurs twice");
  refused(ok + ",\"__metadata__\":null", "__metadata__ is null; expected an object");
  refused(ok + ",\"__metadata__\":{\"k\":3}", "metadata 'k' is 3; expected a string");
  refused(ok + ",\"__metadata__\":{\"k\":[]}", "metadata 'k' is an array; expected a string");
  refused(ok + ",\"__metadata__\":{\"k\":{}}", "metadata 'k' is an object; expected a string");
  refused(ok + ",\"__metadata__\":{\"k\":\"\",\"k\":\"\"}", "metadata key 'k' occurs twice");
  expect_refused(file_with("{}", 3), "3 bytes follow the last tensor");
}

TEST(SafetensorsMalformed, EveryTruncationIsRefused) {
  const std::string data(24, 'd');
  std::string file =
      safetensors_header({{"a", "F32", {2, 3}, bytes_of(data)}, {"b", "F32", {}, {bytes_of(data).first(4)}}}, {{"k", "v"}});
  file += data + data.substr(0, 4);
  parse(file);
  for (std::size_t n = 0; n < file.size(); ++n) EXPECT_THROW(parse(file.substr(0, n)), Error) << n;
  EXPECT_THROW(parse(file + "x"), Error);
}

// Any damage is either refused with one short line or leaves a header whose tensors tile the data and can be written again.
TEST(SafetensorsMalformed, RandomDamageIsRefusedOrConsistent) {
  const std::string data(24, 'd');
  std::string intact = safetensors_header(
      {{"a", "F32", {2, 3}, bytes_of(data)}, {"b", "I16", {2, 0}, {}}, {"c", "U8", {4}, bytes_of(data).first(4)}},
      {{"key", "value"}, {"t", "12"}});
  intact += data + data.substr(0, 4);
  const std::string pieces =
      "{}[],:\"0123456789-eE.\\u \xff\x80"
      "dtypeshapedata_offsetsFUIB";
  std::mt19937 random(2);
  int accepted = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string file = intact;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % (random() % 4 == 0 ? file.size() : file.size() - 28);
      const char piece = pieces[random() % pieces.size()];
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(file[at] ^ 1 << random() % 8);
          break;
        case 1:
          file[at] = piece;
          break;
        case 2:
          file.insert(at, 1, piece);
          file[0] = static_cast<char>(file[0] + 1);
          break;
        default:
          file.erase(at, 1);
          file[0] = static_cast<char>(file[0] - 1);
          break;
      }
    }
    try {
      const SafetensorsHeader header = parse(file);
      ++accepted;
      std::uint64_t reached = 0;
      std::vector<TensorToWrite> tensors;
      for (const TensorInfo& t : header.tensors) {
        ASSERT_EQ(t.begin, reached);
        reached = t.end;
        ASSERT_LE(header.data + t.end, file.size());
        tensors.push_back({t.name, t.type, t.shape, bytes_of(file).subspan(header.data + t.begin, t.end - t.begin)});
      }
      ASSERT_EQ(header.data + reached, file.size());
      std::string again = safetensors_header(tensors, header.metadata);
      const SafetensorsHeader same = parse(again + file.substr(header.data));
      ASSERT_EQ(same.tensors, header.tensors);
      ASSERT_EQ(same.metadata, header.metadata);
    } catch (const Error& error) {
      const std::string message = error.what();
      ASSERT_EQ(error.fault(), Fault::data);
      ASSERT_EQ(message.find('\n'), message.npos) << message;
      ASSERT_LT(message.size(), 600u) << message;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace safetensors_malformed_test
}  // namespace cautious::base
