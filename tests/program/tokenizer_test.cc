// Ids against a tokenizer that merges by the definition, round trips through every layout, any number of threads; and files
// that hold no tokenizer we can use: one line with the file, the position in it and what is wrong.
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

class TokenizerErrors : public TokenizerFiles {
 protected:
  std::string message(const std::filesystem::path& path) const {
    return data_message([&] { Tokenizer::read(path); });
  }
  std::string json_message(const std::string& text) const { return message(write("tokenizer.json", text)); }
  // The model's or the root's JSON merge patch.
  std::string model_message(const std::string& change) const { return json_message(json_text(change)); }
  std::string root_message(const std::string& change) const { return json_message(json_text("{}", change)); }

  // The line of that number replaced, or with nothing left out.
  std::string ranks_message(std::size_t number, const std::string& line) const {
    std::string text;
    const auto tokens = some_tokens();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string usual = fmt::format("{} {}", to_base64(tokens[i]), i);
      const std::string& chosen = i + 1 == number ? line : usual;
      if (!chosen.empty()) text += chosen + "\n";
    }
    return message(write("r50k_base.tiktoken", text));
  }

  static std::string to_base64(std::string bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t padding = (3 - bytes.size() % 3) % 3;
    bytes.append(padding, '\0');
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
      unsigned bits = 0;
      for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | static_cast<unsigned char>(bytes[i + j]);
      for (int shift = 18; shift >= 0; shift -= 6) out += digits[bits >> shift & 63];
    }
    return out.replace(out.size() - padding, padding, padding, '=');
  }
};

TEST_F(TokenizerErrors, Paths) {
  EXPECT_TRUE(has(data_message([] { Tokenizer::named("byte"); }), "'byte': no such tokenizer", "'bytes'"));
  EXPECT_TRUE(has(message(folder_), "this folder has no tokenizer: neither tokenizer.json nor encoder.json with vocab.bpe"));
  EXPECT_TRUE(has(message(write("x.model", "")), "x.model: the name does not say"));
  EXPECT_TRUE(has(message(write("r50k_bass.tiktoken", "")), "did you mean 'r50k_base'?", "o200k_base"));
}

TEST_F(TokenizerErrors, TiktokenRanks) {
  EXPECT_EQ(ranks_message(0, ""), "");
  const auto at = [&](int line) {
    return (folder_ / "r50k_base.tiktoken").string() + (line == 0 ? ": " : fmt::format(":{}: ", line));
  };
  EXPECT_EQ(ranks_message(3, "Ag= 2"), at(3) + "'Ag=' is not base64");
  EXPECT_EQ(ranks_message(3, "A*== 2"), at(3) + "'A*==' is not base64");
  EXPECT_EQ(ranks_message(3, "Ah== 2"), at(3) + "'Ah==' is not base64");  // bits beyond the byte
  EXPECT_EQ(ranks_message(3, " 2"), at(3) + "'' is not base64");
  EXPECT_EQ(ranks_message(3, "Ag=="), at(3) + "'Ag==' is not a line of tiktoken ranks: BASE64 RANK");
  EXPECT_EQ(ranks_message(3, "Ag== two"), at(3) + "rank 'two' is not a whole number");
  EXPECT_EQ(ranks_message(3, "Ag== -2"), at(3) + "rank '-2' is not a whole number");
  EXPECT_EQ(ranks_message(3, "Ag== 4294967296"), at(3) + "rank '4294967296' is not a whole number");
  EXPECT_TRUE(has(ranks_message(3, "Ag== 4000000000"), at(3) + "token '\\x02' has id 4000000000; valid: [0, 10000000)"));
  EXPECT_EQ(ranks_message(3, "Ag== 1"), at(3) + "token '\\x02' has id 1, which another token has");
  EXPECT_EQ(ranks_message(3, "AA== 2"), at(3) + "token '\\x00' occurs twice, with ids 0 and 2");
  EXPECT_EQ(ranks_message(3, ""), at(0) + "no line has rank 2; the largest is 264");
  EXPECT_EQ(ranks_message(3, "eHl6 2"), at(0) + "byte 2 (0x02) has no token; a byte-level BPE has one for each of the 256");
  EXPECT_EQ(ranks_message(257, "eHl6 256"), at(0) + "token 'xyz' of rank 256 is not made of two tokens of lower ranks");
  EXPECT_TRUE(has(message(write("r50k_base.tiktoken", "")), "byte 0 (0x00) has no token"));
}

TEST_F(TokenizerErrors, Gpt2Files) {
  write("encoder.json", nlohmann::json::parse(json_text())["model"]["vocab"].dump());
  const auto merges = [&](const std::string& lines) {
    write("vocab.bpe", lines);
    return message(folder_);
  };
  const std::string at = (folder_ / "vocab.bpe").string() + ":2: ";
  EXPECT_EQ(merges("#version: 0.2\nt h\n"), "");
  EXPECT_EQ(merges("t h\nth\n"), at + "'th' is not two tokens with a space between");
  EXPECT_EQ(merges("t h\nt h e\n"), at + "'t h e' is not two tokens with a space between");
  EXPECT_EQ(merges("t h\nt h\n"), at + "it merges 't' and 'h', which an earlier merge does");
  EXPECT_EQ(merges("t h\nthx e\n"), at + "it merges 'thx', which is not in the vocabulary");
  EXPECT_EQ(merges("t h\nx y\n"), at + "it merges 'x' and 'y', but what they make is not in the vocabulary");
  EXPECT_EQ(merges("t h\nx 中\n"), at + "'中' is not written in GPT-2's letters for bytes");
  write("encoder.json", "[1]");
  EXPECT_TRUE(has(message(folder_), "encoder.json: the vocabulary is not an object"));
}

TEST_F(TokenizerErrors, JsonThatIsNone) {
  EXPECT_TRUE(has(json_message("{\"a\": }"), "tokenizer.json: not JSON", "line 1, column 7"));
  EXPECT_TRUE(has(json_message(""), "not JSON"));
  EXPECT_TRUE(has(json_message("[]"), "no object 'model'"));
  EXPECT_TRUE(has(json_message(R"({"a": 1})"), "no object 'model'", "give their folder"));
}

TEST_F(TokenizerErrors, OtherKindsOfTokenizer) {
  EXPECT_TRUE(has(model_message(R"({"type": "WordPiece"})"), "model type 'WordPiece'; only BPE is supported"));
  EXPECT_TRUE(has(root_message(R"({"normalizer": {"type": "NFC"}})"), "normalizer 'NFC' changes the text"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": null})"), "instead of ByteLevel"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Whitespace"}})"), "Whitespace"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"add_prefix_space": true}})"), "add_prefix_space on"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}})"), "other than two steps"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}})"),
                  "is not a Split by a Regex"));
  EXPECT_TRUE(has(model_message(R"({"byte_fallback": true})"), "byte_fallback is on"));
  EXPECT_TRUE(has(model_message(R"({"dropout": 0.1})"), "model.dropout is '0.1'"));
  EXPECT_TRUE(has(model_message(R"({"end_of_word_suffix": "</w>"})"), "model.end_of_word_suffix is '</w>'"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265, "content": "  "}]})"), "added token '  ' is cut out of text"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265}]})"), "has no content or no id"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 7, "content": "x<>", "special": true}]})"), "has id 7"));
  EXPECT_TRUE(
      has(root_message(R"({"added_tokens": [{"id": 7, "content": "the", "special": true}]})"), "but '257' in the vocabulary"));
}

TEST_F(TokenizerErrors, VocabulariesAndMerges) {
  EXPECT_TRUE(has(model_message(R"({"vocab": null})"), "the vocabulary is not an object"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": "x"}})"), "token 'a' has the id 'x'"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": 98}})"), "has id 98, which another token has"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": -1}})"), "token 'a' has id -1; valid: [0, 10000000)"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": null}})"), "byte 97 (0x61) has no token"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"x y": 300}})"), "token 'x y' is not written in GPT-2's letters"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"": 300}})"), "the token of id 300 is empty"));
  EXPECT_TRUE(has(model_message(R"({"merges": 3})"), "model.merges is not a list"));
  EXPECT_TRUE(has(model_message(R"({"merges": ["t h", 5]})"), ": merge 2: '5' is neither \"left right\" nor"));
  EXPECT_TRUE(has(model_message(R"({"merges": [["t", "h", "e"]]})"), ": merge 1: "));
  EXPECT_TRUE(has(model_message(R"({"merges": ["h t"]})"), "merge 1: it merges 'h' and 't', but what they make"));
  EXPECT_TRUE(has(model_message(R"({"merges": [], "ignore_merges": true})"), "the merges do not make token 'th' of id 256"));
  EXPECT_EQ(model_message(R"({"ignore_merges": true})"), "");
}

}  // namespace tokenizer_test
}  // namespace cautious::data
