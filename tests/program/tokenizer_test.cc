// Ids against a tokenizer that merges by the definition, round trips through every layout, and any number of threads.
#include "data/tokenizer/tokenizer.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer/split_pattern.h"
#include "tokenizer_fixture.h"

namespace cautious::data {
namespace tokenizer_test {

// The definition: among all neighbours that a merge names, the first merge's leftmost.
std::vector<Token> encode_slowly(std::string_view text) {
  std::map<std::string, Token> ids;
  const auto tokens = some_tokens();
  for (std::size_t id = 0; id < tokens.size(); ++id) ids[tokens[id]] = static_cast<Token>(id);
  std::vector<Token> out;
  SplitPattern(std::string(kGpt2Pattern)).each_piece(text, [&](std::string_view piece) {
    std::vector<std::string> parts;
    for (const char c : piece) parts.emplace_back(1, c);
    for (;;) {
      std::size_t best = some_merges().size(), at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        for (std::size_t rank = 0; rank < best; ++rank) {
          if (some_merges()[rank] == std::pair(parts[i], parts[i + 1])) best = rank, at = i;
        }
      }
      if (best == some_merges().size()) break;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    for (const std::string& part : parts) out.push_back(ids.at(part));
  });
  return out;
}

TEST(Bytes, AreTheirOwnIds) {
  const Tokenizer bytes = Tokenizer::named("bytes");
  EXPECT_EQ(bytes.vocab(), 256);
  EXPECT_EQ(bytes.document_end(), 0u);
  const std::string text("a\0\xff\xc3(", 5);
  EXPECT_EQ(bytes.encode(text, 2), (std::vector<Token>{97, 0, 255, 195, 40}));
  EXPECT_EQ(bytes.decode(bytes.encode(text)), text);
  std::vector<std::uint16_t> lengths(256, 1);
  lengths[0] = 0;  // the end of a document is no byte of its text
  EXPECT_EQ(bytes.lengths(), lengths);
  EXPECT_TRUE(bytes.encode("").empty());
}

using Files = TokenizerFiles;

TEST_F(Files, BytesSurviveTheirJson) {
  const Tokenizer bytes = Tokenizer::bytes(), again = Tokenizer::read(write("tokenizer.json", bytes.to_json()));
  EXPECT_EQ(again.fingerprint(), bytes.fingerprint());
  EXPECT_EQ(again.document_end(), 0u);
  EXPECT_EQ(again.encode("a b"), bytes.encode("a b"));
  EXPECT_EQ(again.to_json(), bytes.to_json());
}

TEST_F(Files, EncodesByTheDefinition) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text()));
  EXPECT_EQ(tokenizer.vocab(), 266);
  EXPECT_EQ(tokenizer.document_end(), 265u);
  EXPECT_EQ(tokenizer.encode("the the aaaaaab"), (std::vector<Token>{257, 258, 32, 260, 259, 98}));
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, 40, true);
    ASSERT_EQ(tokenizer.encode(text), encode_slowly(text));
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST_F(Files, ThreadsDoNotChangeIds) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text()));
  std::mt19937 random(3);
  const std::string text = random_text(random, 1'000'000, true);
  const auto one = tokenizer.encode(text, 1);
  EXPECT_EQ(tokenizer.encode(text, 2), one);
  EXPECT_EQ(tokenizer.encode(text, 5), one);
  EXPECT_EQ(tokenizer.decode(one), text);
}

TEST_F(Files, LongPiecesTakeNoSquareOfTheirLength) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text()));
  EXPECT_EQ(tokenizer.encode(std::string(2'000'000, 'a')), std::vector<Token>(500'000, 260));
}

TEST_F(Files, SpecialTokensNeitherComeOutOfTextNorGoIntoIt) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text()));
  for (const Token id : tokenizer.encode("x<|endoftext|>y")) EXPECT_NE(id, tokenizer.document_end());
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{97, 265, 98}), "ab");
  EXPECT_EQ(tokenizer.lengths()[265], 0);
  EXPECT_EQ(tokenizer.lengths()[258], 4);
  EXPECT_EQ(data_message([&] {
              tokenizer.decode(std::vector<Token>{97, 266});
            }),
            "token 2 of 2 is 266; this tokenizer has ids in [0, 266)");
}

TEST_F(Files, OneTokenizerInAllLayouts) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text()));
  EXPECT_EQ(tokenizer.fingerprint().size(), 64u);
  EXPECT_EQ(Tokenizer::read(write("again/tokenizer.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(Tokenizer::read(folder_ / "again").fingerprint(), tokenizer.fingerprint());

  nlohmann::json arrays = nlohmann::json::parse(json_text()), encoder = arrays["model"]["vocab"];
  std::string lines = "#version: 0.2\n";
  for (auto& merge : arrays["model"]["merges"]) {
    const auto words = merge.get<std::string>();
    lines += words + "\n";
    merge = {words.substr(0, words.find(' ')), words.substr(words.find(' ') + 1)};
  }
  EXPECT_EQ(Tokenizer::read(write("arrays.json", arrays.dump())).fingerprint(), tokenizer.fingerprint());
  encoder["<|endoftext|>"] = 265;
  write("gpt2/encoder.json", encoder.dump());
  write("gpt2/vocab.bpe", lines);
  EXPECT_EQ(Tokenizer::read(folder_ / "gpt2").fingerprint(), tokenizer.fingerprint());
}

TEST_F(Files, WhatDecidesIdsDecidesTheFingerprint) {
  const std::string usual = Tokenizer::read(write("tokenizer.json", json_text())).fingerprint();
  for (const auto& [model, root] :
       {std::pair(R"({"merges": ["t h"]})", "{}"),
        std::pair("{}", R"({"added_tokens": [{"id": 266, "content": "<|endoftext|>", "special": true}]})"),
        std::pair("{}", R"({"pre_tokenizer": {"use_regex": false}})")}) {
    const Tokenizer other = Tokenizer::read(write("other.json", json_text(model, root)));
    EXPECT_NE(other.fingerprint(), usual);
    EXPECT_EQ(Tokenizer::read(write("again.json", other.to_json())).fingerprint(), other.fingerprint());
  }
}

TEST_F(Files, SplitsByAPatternOfTheFile) {
  const char* const split = R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s|th"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}})";
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text("{}", split)));
  EXPECT_EQ(tokenizer.encode("a the"), (std::vector<Token>{97, 32, 256, 101}));
  EXPECT_EQ(Tokenizer::read(write("again.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
}

}  // namespace tokenizer_test
}  // namespace cautious::data
