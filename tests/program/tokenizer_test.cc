// Ids against a tokenizer that merges by the definition, round trips through every layout, any number of threads.
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
  lengths[0] = 0;  // the end of a document is not a byte of its text
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

TEST_F(Files, AddedTokensAreCutOutOfText) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text("{}", R"({"added_tokens": [
      {"id": 265, "content": "<|endoftext|>", "special": true}, {"id": 266, "content": "<th", "special": false},
      {"id": 267, "content": "<the>", "special": false}, {"id": 259, "content": "aa", "special": false}]})")));
  EXPECT_EQ(tokenizer.encode("<the><the<|endoftext|>"),  // the longest first; a special one is bytes
            (std::vector<Token>{267, 266, 101, 60, 124, 101, 110, 100, 111, 102, 116, 101, 120, 116, 124, 62}));
  EXPECT_EQ(tokenizer.encode_marked("<the>a<|endoftext|><th"), (std::vector<Token>{267, 97, 265, 266}));
  EXPECT_EQ(tokenizer.encode("aaab"), (std::vector<Token>{259, 261}));  // before any merge
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("<the>aaab")), "<the>aaab");
  EXPECT_EQ(tokenizer.lengths()[267], 5);
  EXPECT_EQ(tokenizer.special("<the>"), 267u);
  EXPECT_EQ(tokenizer.special("<thee>"), std::nullopt);
  EXPECT_EQ(tokenizer.beginning(), std::nullopt);
  const Tokenizer again = Tokenizer::read(write("again.json", tokenizer.to_json()));
  EXPECT_EQ(again.fingerprint(), tokenizer.fingerprint());
  EXPECT_NE(again.fingerprint(), Tokenizer::read(write("tokenizer.json", json_text())).fingerprint());
  EXPECT_EQ(again.encode("<the>aaab"), tokenizer.encode("<the>aaab"));
  std::mt19937 random(4);
  std::string text;
  while (text.size() < 600'000) text += random_text(random, 50, true) + "<the>";
  EXPECT_EQ(tokenizer.encode(text, 3), tokenizer.encode(text));
}

// What has a cut may be followed by anything: by an added token, one that the cut would halve, a space, the rest of a word.
TEST_F(Files, CutTextsHaveTheSameIds) {
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", json_text("{}", R"({"added_tokens": [
      {"id": 265, "content": "<|endoftext|>", "special": true}, {"id": 266, "content": "e b", "special": false},
      {"id": 267, "content": "the then", "special": false}]})")));
  const std::vector<std::string> words = {"the", "then",   "e b", " ",     "  ",           "\n",
                                          "12",  "\u00e9", "aa",  "don't", "<|endoftext|>"};
  std::mt19937 random(6);
  int cuts = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t count = 3 + random() % 20; count > 0; --count)
      text += words[random() % words.size()] + (random() % 2 == 0 ? " " : "");
    const std::size_t cut = tokenizer.cut(std::string_view(text).substr(0, text.size() - random() % text.size()));
    if (cut == 0) continue;
    ++cuts;
    auto ids = tokenizer.encode(text.substr(0, cut));
    for (const Token id : tokenizer.encode(text.substr(cut), 1, true)) ids.push_back(id);
    EXPECT_EQ(ids, tokenizer.encode(text)) << text << " at " << cut;
  }
  EXPECT_GT(cuts, 100);
  EXPECT_EQ(tokenizer.cut(std::string(1000, 'a')), 0u);
  EXPECT_EQ(Tokenizer::bytes().cut("abc"), 3u);
}

TEST_F(Files, TablesHoldEverything) {
  const TokenizerTables tables = Tokenizer::read(write("tokenizer.json", json_text())).tables();
  EXPECT_EQ(tables.kind, TokenizerKind::byte_level);
  EXPECT_EQ(tables.pattern, kGpt2Pattern);
  ASSERT_EQ(tables.tokens.size(), 266u);
  EXPECT_EQ(tables.tokens[258].text, to_letters(" the"));
  EXPECT_EQ(tables.tokens[258].kind, TokenKind::normal);
  EXPECT_EQ(tables.tokens[265].text, "<|endoftext|>");
  EXPECT_EQ(tables.tokens[265].kind, TokenKind::special);
  EXPECT_EQ(tables.merges[1], "th e");
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

TEST_F(Files, SplitsOneWithinTheOther) {
  // The digit is cut out first, so that the space before it ends a text of its own.
  const char* const split = R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]}})";
  const Tokenizer tokenizer =
      Tokenizer::read(write("tokenizer.json", json_text(R"({"merges": ["1 2", "t h", "th e"]})", split)));
  EXPECT_EQ(tokenizer.encode("the 12"), (std::vector<Token>{257, 32, 49, 50}));
  const Tokenizer again = Tokenizer::read(write("again.json", tokenizer.to_json()));
  EXPECT_EQ(again.fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(tokenizer.tables().pattern, "\\p{N}\n" + std::string(kGpt2Pattern));
  std::mt19937 random(5);
  const std::string text = random_text(random, 400'000, true);
  EXPECT_EQ(tokenizer.encode(text, 3), again.encode(text));
}

TEST_F(Files, PiecesThatAreTokensNeedNoMerge) {
  const Tokenizer tokenizer =
      Tokenizer::read(write("tokenizer.json", json_text(R"({"merges": ["t h"], "ignore_merges": true})")));
  EXPECT_EQ(tokenizer.encode("the the thea"), (std::vector<Token>{257, 258, 32, 256, 101, 97}));
  EXPECT_EQ(Tokenizer::read(write("again.json", tokenizer.to_json())).encode("the the"), (std::vector<Token>{257, 258}));
  const std::string usual = Tokenizer::read(write("tokenizer.json", json_text())).fingerprint();
  EXPECT_EQ(Tokenizer::read(write("tokenizer.json", json_text(R"({"ignore_merges": true})"))).fingerprint(), usual);
}

TEST_F(Files, ComposesCharacters) {
  const Tokenizer plain = Tokenizer::read(write("tokenizer.json", json_text()));
  const Tokenizer nfc = Tokenizer::read(write("tokenizer.json", json_text("{}", R"({"normalizer": {"type": "NFC"}})")));
  EXPECT_EQ(nfc.decode(nfc.encode("e\u0301 \xff e\u0301\u0300")), "\u00e9 \xff \u00e9\u0300");
  EXPECT_EQ(nfc.decode(nfc.encode("\u1100\u1161\u212b")), "\uac00\u00c5");
  EXPECT_EQ(nfc.encode("the 中 aab"), plain.encode("the 中 aab"));
  EXPECT_NE(nfc.fingerprint(), plain.fingerprint());
  EXPECT_EQ(Tokenizer::read(write("again.json", nfc.to_json())).fingerprint(), nfc.fingerprint());
}

TEST_F(Files, TheConfigBesideItNamesTheEnds) {
  write("tokenizer.json", json_text("{}", R"({"added_tokens": [{"id": 265, "content": "<|endoftext|>", "special": true},
      {"id": 266, "content": "<|im_end|>", "special": true}, {"id": 267, "content": "<s>", "special": true}]})"));
  const auto with = [&](const std::string& config) {
    write("tokenizer_config.json", config);
    return Tokenizer::read(folder_);
  };
  EXPECT_EQ(with("{}").document_end(), 265u);
  EXPECT_EQ(with(R"({"bos_token": "<s>"})").beginning(), std::nullopt);
  const Tokenizer both = with(R"({"bos_token": "<s>", "add_bos_token": true, "eos_token": {"content": "<|im_end|>"}})");
  EXPECT_EQ(both.document_end(), 266u);
  EXPECT_EQ(both.beginning(), 267u);
  EXPECT_NE(both.fingerprint(), with("{}").fingerprint());
  const Tokenizer again = Tokenizer::read(write("again/tokenizer.json", both.to_json()));  // without a config
  EXPECT_EQ(again.fingerprint(), both.fingerprint());
  EXPECT_EQ(again.beginning(), 267u);
  write("again/tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_EQ(Tokenizer::read(folder_ / "again").beginning(), std::nullopt);

  const auto message = [&](const char* config) { return data_message([&] { with(config); }); };
  EXPECT_TRUE(has(message("[]"), "tokenizer_config.json: not an object"));
  EXPECT_TRUE(has(message(R"({"eos_token": "</s>"})"), "tokenizer_config.json: '</s>' ends a text, but is not among"));
  EXPECT_TRUE(has(message(R"({"eos_token": 3})"), "eos_token is '3'; valid:"));
  EXPECT_TRUE(has(message(R"({"add_bos_token": true})"), "add_bos_token is on, but there is no bos_token"));
  EXPECT_TRUE(has(message(R"({"add_bos_token": 1})"), "add_bos_token is '1'; valid: true, false"));
}

}  // namespace tokenizer_test
}  // namespace cautious::data
