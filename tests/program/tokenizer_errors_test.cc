// Files that hold no tokenizer we can use: one line with the file, the position in it and what is wrong.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer/tokenizer.h"
#include "tokenizer_fixture.h"

namespace cautious::data {
namespace tokenizer_errors_test {

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
  EXPECT_TRUE(has(message(folder_), "this folder has no tokenizer: no tokenizer.json, no tokenizer.bin, no encoder.json"));
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
  EXPECT_TRUE(has(ranks_message(3, "Ag== 4000000000"), at(3) + "token '\\x02' has id 4000000000; valid: [0, 100530)"));
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
  EXPECT_TRUE(has(root_message(R"({"normalizer": {"type": "NFKC"}})"), "normalizer '{\"type\":\"NFKC\"}' is not supported"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": null})"), "instead of ByteLevel"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Whitespace"}})"), "Whitespace"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"add_prefix_space": true}})"), "add_prefix_space on"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}})"), "instead of ByteLevel"));
  EXPECT_TRUE(has(root_message(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}})"),
                  "is not supported; valid: Split by a Regex"));
  EXPECT_TRUE(has(model_message(R"({"byte_fallback": true})"), "Metaspace with U+2581"));
  EXPECT_TRUE(has(model_message(R"({"dropout": 0.1})"), "model.dropout is '0.1'"));
  EXPECT_TRUE(has(model_message(R"({"end_of_word_suffix": "</w>"})"), "model.end_of_word_suffix is '</w>'"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265, "content": "x>", "lstrip": true}]})"),
                  "added token 'x>' has lstrip on"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265}]})"), "has no content or no id"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265, "content": "<x>", "special": true}]})"),
                  "no token ends a text: no eos_token", "<|endoftext|>, </s>"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 265, "content": "<x>"}, {"id": 266, "content": "<x>"}]})"),
                  "added token '<x>' occurs twice"));
  EXPECT_TRUE(has(root_message(R"({"post_processor": {"type": "BertProcessing"}})"), "post_processor 'BertProcessing'"));
  EXPECT_TRUE(has(json_message(std::string(200, '[')), "JSON nested 200 deep"));
  EXPECT_TRUE(has(root_message(R"({"added_tokens": [{"id": 7, "content": "x<>", "special": true}]})"), "has id 7"));
  EXPECT_TRUE(
      has(root_message(R"({"added_tokens": [{"id": 7, "content": "the", "special": true}]})"), "but '257' in the vocabulary"));
}

TEST_F(TokenizerErrors, VocabulariesAndMerges) {
  EXPECT_TRUE(has(model_message(R"({"vocab": null})"), "the vocabulary is not an object"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": "x"}})"), "token 'a' has the id 'x'"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": 98}})"), "has id 98, which another token has"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": -1}})"), "token 'a' has id -1; valid: [0, 100532)"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"a": null}})"), "byte 97 (0x61) has no token"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"x y": 300}})"), "token 'x y' is not written in GPT-2's letters"));
  EXPECT_TRUE(has(model_message(R"({"vocab": {"": 300}})"), "the token of id 300 is empty"));
  EXPECT_TRUE(has(model_message(R"({"merges": 3})"), "model.merges is not a list"));
  EXPECT_TRUE(has(model_message(R"({"merges": ["t h", 5]})"), ": merge 2: '5' is neither \"left right\" nor"));
  EXPECT_TRUE(has(model_message(R"({"merges": [["t", "h", "e"]]})"), ": merge 1: "));
  EXPECT_TRUE(has(model_message(R"({"merges": ["h t"]})"), "merge 1: it merges 'h' and 't', but what they make"));
}

}  // namespace tokenizer_errors_test
}  // namespace cautious::data
