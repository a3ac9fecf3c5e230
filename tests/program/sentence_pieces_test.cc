// Sentence pieces: ids against a tokenizer that merges by the definition, over vocabularies with and without tokens that reach
// over a space; the forms of tokenizer.json; llama2.c's tokenizer.bin.
#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/utf8_stream.h"
#include "data/tokenizer/tokenizer.h"
#include "tokenizer_fixture.h"

namespace cautious::data {
namespace sentence_pieces_test {

using nlohmann::json;

const std::string kMark = "\u2581";

// <unk>, <s>, </s>, the bytes, some characters, and what random merges make; a token's score is minus its id.
struct Toy {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> merges;  // all pairs that make a token, by its id, then by theirs
};

Toy toy(unsigned seed, bool inner_spaces) {
  std::mt19937 random(seed);
  Toy out;
  out.tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) out.tokens.push_back(fmt::format("<0x{:02X}>", byte));
  std::vector<std::string> pieces = {kMark, "a", "b", "c", "\u00e9"};
  while (pieces.size() < 60) {
    const std::string made = pieces[random() % pieces.size()] + pieces[random() % pieces.size()];
    const std::size_t inner = made.find(kMark, made.find_first_not_of(kMark));
    if (made.size() > 12 || std::find(pieces.begin(), pieces.end(), made) != pieces.end()) continue;
    if (!inner_spaces && made.find_first_not_of(kMark) != made.npos && inner != made.npos) continue;
    pieces.push_back(made);
  }
  std::map<std::string, std::size_t> ids;
  for (const std::string& piece : pieces) {
    ids[piece] = out.tokens.size();
    out.tokens.push_back(piece);
  }
  for (const std::string& piece : pieces) {
    std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> cuts;
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = ids.find(piece.substr(0, cut)), right = ids.find(piece.substr(cut));
      if (left != ids.end() && right != ids.end()) cuts.emplace_back(left->second, right->second, cut);
    }
    std::sort(cuts.begin(), cuts.end());
    for (const auto& [left, right, cut] : cuts) out.merges.emplace_back(piece.substr(0, cut), piece.substr(cut));
  }
  return out;
}

std::vector<Token> encode_slowly(const Toy& toy, std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(1, base::utf8_character(text));
    const std::string character = text[0] == ' ' ? kMark : std::string(text.substr(0, size));
    if (std::find(toy.tokens.begin() + 259, toy.tokens.end(), character) != toy.tokens.end()) {
      parts.push_back(character);
    } else {
      for (const char c : character) parts.push_back(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    }
    text.remove_prefix(size);
  }
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right] : toy.merges) {
      for (std::size_t i = 0; i + 1 < parts.size() && !merged; ++i) {
        if (parts[i] != left || parts[i + 1] != right) continue;
        parts[i] += right;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  std::vector<Token> out;
  for (const std::string& part : parts) {
    const auto found = std::find(toy.tokens.begin(), toy.tokens.end(), part);
    out.push_back(static_cast<Token>(found - toy.tokens.begin()));
  }
  return out;
}

const char* const kPrepend = R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "pre_tokenizer": null})";
const char* const kGemma = R"({"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}})";

std::string metaspace(const char* scheme) {
  return fmt::format(
      R"({{"pre_tokenizer": {{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": false}}}})", scheme);
}

json toy_json(const Toy& toy, const std::string& change_root) {
  json vocabulary, merges = json::array(), added = json::array();
  for (std::size_t id = 0; id < toy.tokens.size(); ++id) vocabulary[toy.tokens[id]] = id;
  for (const auto& [left, right] : toy.merges) merges.push_back(left + " " + right);
  for (int id = 0; id < 3; ++id)
    added.push_back({{"id", id}, {"content", toy.tokens[static_cast<std::size_t>(id)]}, {"special", true}});
  json root = {{"added_tokens", added},
               {"model",
                {{"type", "BPE"},
                 {"byte_fallback", true},
                 {"fuse_unk", true},
                 {"unk_token", "<unk>"},
                 {"vocab", vocabulary},
                 {"merges", merges}}}};
  root.merge_patch(json::parse(change_root));
  return root;
}

std::string toy_text(std::mt19937& random, std::size_t pieces) {
  const std::vector<std::string> choices = {"a",  "b",  "c", "ab", "ca",  "\u00e9", " ",   " ",
                                            "  ", "\n", "x", "中", kMark, "\xff",   "\xc3"};
  std::string out;
  for (std::size_t i = 0; i < pieces; ++i) out += choices[random() % choices.size()];
  return out;
}

class SentencePieceFiles : public TokenizerFiles {
 protected:
  Tokenizer read(const Toy& toy, const std::string& change_root) const {
    return Tokenizer::read(write("tokenizer.json", toy_json(toy, change_root).dump()));
  }
  std::string message(const std::string& change_root) const {
    return data_message([&] { read(toy(1, false), change_root); });
  }
};

TEST_F(SentencePieceFiles, EncodeByTheDefinition) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Toy some = toy(seed, seed % 2 == 1);
    const Tokenizer prepends = read(some, kPrepend), plain = read(some, kGemma);
    for (int round = 0; round < 20; ++round) {
      const std::string text = toy_text(random, 30);
      ASSERT_EQ(prepends.encode(text), encode_slowly(some, " " + text)) << seed << text;
      ASSERT_EQ(plain.encode(text), encode_slowly(some, text)) << seed << text;
    }
  }
}

TEST_F(SentencePieceFiles, SpacesGoBeforeTextsByTheScheme) {
  const Toy some = toy(1, true);
  const auto both = [&](const char* text) { return encode_slowly(some, text); };
  EXPECT_EQ(read(some, metaspace("never")).encode("ab"), both("ab"));
  EXPECT_EQ(read(some, metaspace("always")).encode("ab"), both(" ab"));
  EXPECT_EQ(read(some, metaspace("always")).encode(" ab"), both(" ab"));
  EXPECT_EQ(read(some, metaspace("first")).encode("▁ab"), both(" ab"));
  EXPECT_EQ(read(some, kPrepend).encode(" ab"), both("  ab"));
  EXPECT_TRUE(read(some, kPrepend).encode("").empty());
  const auto marked = [&](const std::string& change, const char* first, const char* second) {
    std::vector<Token> expected = both(first);
    expected.push_back(2);
    for (const Token id : both(second)) expected.push_back(id);
    EXPECT_EQ(read(some, change).encode_marked("ab</s>c"), expected);
  };
  marked(metaspace("first"), " ab", "c");
  marked(metaspace("always"), " ab", " c");
  marked(kPrepend, " ab", " c");
  marked(kGemma, "ab", "c");
}

TEST_F(SentencePieceFiles, ThreadsAndLengthDoNotMatter) {
  std::mt19937 random(2);
  const std::string text = toy_text(random, 500'000);
  for (const bool inner : {false, true}) {
    const Tokenizer tokenizer = read(toy(1, inner), kPrepend);
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.encode(text, 3), ids);
    std::string expected = " " + text;  // U+2581 is a space
    for (std::size_t at; (at = expected.find(kMark)) != expected.npos;) expected.replace(at, kMark.size(), " ");
    EXPECT_EQ(tokenizer.decode(ids), expected);
    std::size_t bytes = 0;
    for (const Token id : ids) bytes += tokenizer.lengths()[id];
    EXPECT_EQ(bytes, expected.size());
    EXPECT_EQ(tokenizer.encode(std::string(1'000'000, ' ')).size(), tokenizer.encode(std::string(1'000'000, ' '), 2).size());
  }
}

TEST_F(SentencePieceFiles, CutTextsHaveTheSameIds) {
  std::mt19937 random(5);
  for (const auto& prefix : {kPrepend, kGemma}) {
    const Tokenizer tokenizer = read(toy(1, false), prefix), uncut = read(toy(1, true), prefix);
    int cuts = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string text = toy_text(random, 60);
      const std::size_t cut = tokenizer.cut(std::string_view(text).substr(0, 40));
      if (cut == 0) continue;
      ++cuts;
      auto ids = tokenizer.encode(text.substr(0, cut));
      for (const Token id : tokenizer.encode(text.substr(cut), 1, true)) ids.push_back(id);
      EXPECT_EQ(ids, tokenizer.encode(text)) << text << " at " << cut;
      EXPECT_EQ(uncut.cut(text), 0u);  // a merge may reach over any place
    }
    EXPECT_GT(cuts, 50);
  }
}

TEST_F(SentencePieceFiles, SurviveTheirJson) {
  std::vector<std::string> seen;
  for (const std::string& form : {std::string(kPrepend), std::string(kGemma), metaspace("always"), metaspace("first")}) {
    const Tokenizer tokenizer = read(toy(3, true), form);
    const Tokenizer again = Tokenizer::read(write("again.json", tokenizer.to_json()));
    EXPECT_EQ(again.fingerprint(), tokenizer.fingerprint());
    EXPECT_EQ(again.to_json(), tokenizer.to_json());
    EXPECT_EQ(again.document_end(), 2u);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), tokenizer.fingerprint()), 0);
    seen.push_back(tokenizer.fingerprint());
    EXPECT_EQ(tokenizer.tables().prefix_space, form != kGemma);
  }
  EXPECT_EQ(read(toy(3, true), metaspace("never")).fingerprint(), seen[1]);
}

TEST_F(SentencePieceFiles, AddedTokensStandForSpacesToo) {
  json root = toy_json(toy(1, true), kGemma);
  root["added_tokens"].push_back({{"id", 400}, {"content", "<▁>"}, {"special", false}});
  const Tokenizer tokenizer = Tokenizer::read(write("tokenizer.json", root.dump()));
  EXPECT_EQ(tokenizer.encode("<▁>"), std::vector<Token>{400});
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{400}), "< >");
  EXPECT_EQ(Tokenizer::read(write("again.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
}

TEST_F(SentencePieceFiles, PostProcessorsPutTheBeginning) {
  const std::string form = kPrepend;
  const Tokenizer tokenizer = read(toy(1, false), form.substr(0, form.size() - 1) + R"(, "post_processor":
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
       {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}})");
  EXPECT_EQ(tokenizer.beginning(), 1u);
  EXPECT_EQ(Tokenizer::read(write("again.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(read(toy(1, false), kPrepend).beginning(), std::nullopt);
}

// llama2.c's layout, with the scores of the toy.
std::string toy_bin(const Toy& toy, std::uint32_t longest = 40, float step = -1) {
  std::string out;
  const auto number = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  number(longest);
  for (std::size_t id = 0; id < toy.tokens.size(); ++id) {
    std::string text = id == 1 || id == 2 ? "\n" + toy.tokens[id] + "\n" : toy.tokens[id];
    for (std::size_t at; (at = text.find(kMark)) != text.npos;) text.replace(at, kMark.size(), " ");
    number(std::bit_cast<std::uint32_t>(step * static_cast<float>(id)));
    number(static_cast<std::uint32_t>(text.size()));
    out += text;
  }
  return out;
}

TEST_F(SentencePieceFiles, ComeFromLlama2c) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Toy some = toy(seed, seed % 2 == 1);
    write("tokenizer.bin", toy_bin(some));
    const Tokenizer tokenizer = Tokenizer::read(folder_);
    EXPECT_EQ(tokenizer.beginning(), 1u);
    EXPECT_EQ(tokenizer.document_end(), 2u);
    EXPECT_EQ(tokenizer.encode("abc cab"), encode_slowly(some, " abc cab"));
    EXPECT_EQ(Tokenizer::read(write("again/tokenizer.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
    // Equal scores go by ids.
    EXPECT_EQ(Tokenizer::read(write("equal.bin", toy_bin(some, 40, 0))).fingerprint(), tokenizer.fingerprint());
    const TokenizerTables tables = tokenizer.tables();
    EXPECT_EQ(tables.kind, TokenizerKind::sentence_pieces);
    EXPECT_EQ(tables.tokens[0].kind, TokenKind::unknown);
    EXPECT_EQ(tables.tokens[2].kind, TokenKind::special);
    EXPECT_EQ(tables.tokens[13].kind, TokenKind::byte);
    EXPECT_EQ(tables.tokens[13].text, "<0x0A>");
    EXPECT_EQ(tables.merges.size(), some.merges.size());
    for (std::size_t id = 265; id < tables.tokens.size(); ++id) {
      EXPECT_EQ(tables.tokens[id].text, some.tokens[id]);
      EXPECT_LT(tables.tokens[id].score, tables.tokens[id - 1].score);
    }
  }
}

TEST_F(SentencePieceFiles, RefuseBrokenLlama2cFiles) {
  const Toy some = toy(1, false);
  const std::string whole = toy_bin(some);
  const auto reading = [&](const std::string& bytes) { return data_message([&] { Tokenizer::read(write("t.bin", bytes)); }); };
  EXPECT_EQ(reading(whole), "");
  EXPECT_TRUE(has(reading(""), "t.bin: token 0 is cut off"));
  EXPECT_TRUE(has(reading(whole.substr(0, 4)), "0 tokens; a tokenizer.bin has at least 259"));
  EXPECT_TRUE(has(reading(whole.substr(0, whole.size() - 1)), "token 318 has", "are left in the file"));
  EXPECT_TRUE(has(reading(toy_bin(some, 5)), "token 1 has 5 bytes; valid", "[1, 5]") ||
              has(reading(toy_bin(some, 5)), "has 6 bytes; valid: [1, 5]"));
  std::string nan = whole;
  nan.replace(4, 4, "\xff\xff\xff\xff");
  EXPECT_TRUE(has(reading(nan), "token 0 has no number as its score"));
  Toy other = some;
  other.tokens[3] = "<0x01>";
  EXPECT_TRUE(has(reading(toy_bin(other)), "token 3 is '<0x01>' instead of <0x00>; not a tokenizer.bin"));
}

TEST_F(SentencePieceFiles, RefuseWhatTheyCannotDo) {
  EXPECT_TRUE(has(message("{}"), "pre_tokenizer 'null' is not supported", "Metaspace"));
  EXPECT_TRUE(has(message(metaspace("sometimes")), "prepend_scheme 'sometimes'; valid: always, first, never"));
  EXPECT_TRUE(has(message(R"({"normalizer": {"type": "Prepend", "prepend": "▁"}})"), "no normalizer replaces spaces"));
  EXPECT_TRUE(has(message(R"({"normalizer": {"type": "Lowercase"}})"), "normalizer '{\"type\":\"Lowercase\"}'"));
  std::string form = metaspace("first");
  form.replace(form.find("\"split\": false"), 14, "\"split\": true");
  EXPECT_EQ(message(form), "");  // nothing reaches over a space anyway
  EXPECT_TRUE(has(data_message([&] { read(toy(1, true), form); }), "Metaspace has split on, but merges make"));
  EXPECT_TRUE(has(message(R"({"normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
      "model": {"vocab": {"<0x0A>": null}}})"),
                  "byte 10 (0x0a) has no token"));
  EXPECT_TRUE(has(message(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}, "model": {"vocab": {"▁": null}}})"),
                  "no token ▁ (U+2581)"));
  const std::string normalized = R"({"added_tokens": [{"id": 2, "content": "</s>", "special": true},
      {"id": 400, "content": "<x>", "normalized": true}], "normalizer": {"type": "Replace", "pattern": {"String": " "},
      "content": "▁"}})";
  EXPECT_TRUE(has(message(normalized), "added token '<x>' has normalized on"));
  // Two of the ways to make a token are left out: scores would take them.
  Toy some = toy(1, true);
  some.merges.erase(some.merges.begin());
  EXPECT_TRUE(has(data_message([&] { read(some, kPrepend).tables(); }), "cannot be written with scores"));
}

}  // namespace sentence_pieces_test
}  // namespace cautious::data
