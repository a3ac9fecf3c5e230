// A tokenizer written down: as tokenizer.json, and as the tables that other formats are made of.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cautious/error.h>

#include "base/text.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

std::string in_json(std::string_view text) { return nlohmann::json(text).dump(); }

std::string on_lines(const std::vector<std::string>& entries, std::string_view indent) {
  if (entries.empty()) return "";
  return fmt::format("\n{0}  {1}\n{0}", indent, fmt::join(entries, fmt::format(",\n{}  ", indent)));
}

std::string byte_level(bool use_regex) {
  return fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": {}}})", use_regex);
}

std::string split_json(std::string_view pattern) {
  return fmt::format(R"({{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated", "invert": false}})",
                     in_json(pattern));
}

std::string space_replaced(std::string_view what, std::string_view replacement) {
  return fmt::format(R"({{"type": "Replace", "pattern": {{"String": {}}}, "content": {}}})", in_json(what),
                     in_json(replacement));
}

std::string metaspace(std::string_view scheme) {
  return fmt::format(R"({{"type": "Metaspace", "replacement": {}, "prepend_scheme": "{}", "split": false}})",
                     in_json(kSpaceMark), scheme);
}

// What is done to text before merging, and to tokens behind it, in the words of the file.
struct Steps {
  std::string normalizer = "null", pre_tokenizer = "null", decoder;
};

Steps byte_steps(const std::string& pattern, bool composed) {
  Steps out;
  if (composed) out.normalizer = R"({"type": "NFC"})";
  out.decoder = byte_level(true);
  if (pattern.empty() || pattern == kGpt2Pattern) {
    out.pre_tokenizer = byte_level(!pattern.empty());
    return out;
  }
  out.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [)";
  each_line(pattern, [&](std::size_t, std::string_view line) { out.pre_tokenizer += "\n    " + split_json(line) + ","; });
  out.pre_tokenizer += fmt::format("\n    {}\n  ]}}", byte_level(false));
  return out;
}

Steps piece_steps(SpacePrefix prefix) {
  Steps out;
  const std::string replaced = space_replaced(" ", kSpaceMark);
  if (prefix == SpacePrefix::none) out.normalizer = replaced;
  if (prefix == SpacePrefix::all) {
    out.normalizer = fmt::format(R"({{"type": "Sequence", "normalizers": [
    {{"type": "Prepend", "prepend": {}}},
    {}
  ]}})",
                                 in_json(kSpaceMark), replaced);
  }
  if (prefix == SpacePrefix::missing) out.pre_tokenizer = metaspace("always");
  if (prefix == SpacePrefix::first) out.pre_tokenizer = metaspace("first");
  out.decoder = fmt::format(R"({{"type": "Sequence", "decoders": [
    {}, {{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}
  ]}})",
                            space_replaced(kSpaceMark, " "),
                            prefix == SpacePrefix::none ? "" : R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})");
  return out;
}

std::string added_json(const AddedToken& token) {
  return fmt::format(
      R"({{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, )"
      R"("special": {}}})",
      token.id, in_json(token.name), token.special);
}

std::string special_json(const std::string& name, Token id) {
  return fmt::format(R"({0}: {{"id": {0}, "ids": [{1}], "tokens": [{0}]}})", in_json(name), id);
}

// Puts `beginning` before a text. `end` is in no template: it only says which token ends documents, where its name does not.
std::string post_processor(const AddedToken* beginning, const AddedToken* end) {
  if (beginning == nullptr && end == nullptr) return "null";
  std::vector<std::string> special;
  for (const AddedToken* token : {beginning, end}) {
    if (token != nullptr) special.push_back(special_json(token->name, token->id));
  }
  const auto before = [&](const char* sequence, int type) {
    std::string text = fmt::format(R"({{"Sequence": {{"id": "{}", "type_id": {}}}}})", sequence, type);
    if (beginning == nullptr) return text;
    return fmt::format(R"({{"SpecialToken": {{"id": {}, "type_id": {}}}}}, {})", in_json(beginning->name), type, text);
  };
  return fmt::format(R"({{"type": "TemplateProcessing",
    "single": [{}],
    "pair": [{}, {}],
    "special_tokens": {{{}}}}})",
                     before("A", 0), before("A", 0), before("B", 1), fmt::join(special, ", "));
}

const AddedToken* added_with(const std::vector<AddedToken>& added, std::optional<Token> id) {
  const auto found = std::find_if(added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
  return found == added.end() ? nullptr : &*found;
}

// Readers of scores merge any two neighbours that make a token, the token of the highest score first. The merges say the same
// if they are all there are, and those that make the same token follow each other.
void set_scores(TokenizerTables& tables, const std::vector<Merge>& merges) {
  const auto refuse = [&](Token id) {
    throw Error(Fault::data,
                fmt::format("the merges that make token {} ({}) are not what scores would do; this tokenizer cannot "
                            "be written with scores",
                            id, base::in_quotes(tables.tokens[id].text)));
  };
  std::unordered_map<std::string_view, Token> ids;
  for (Token id = 0; id < tables.tokens.size(); ++id) {
    tables.tokens[id].score = -static_cast<float>(merges.size());
    const TokenKind kind = tables.tokens[id].kind;
    if (kind == TokenKind::normal || kind == TokenKind::added) ids.emplace(tables.tokens[id].text, id);
  }
  std::vector<std::size_t> ways(tables.tokens.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Token made = merges[i].made;
    if (ways[made]++ == 0) tables.tokens[made].score = 0 - static_cast<float>(i);
    if (ways[made] > 1 && merges[i - 1].made != made) refuse(made);
  }
  for (const auto& [text, id] : ids) {
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (ids.contains(text.substr(0, cut)) && ids.contains(text.substr(cut)) && ways[id]-- == 0) refuse(id);
    }
    if (ways[id] != 0) refuse(id);
  }
}

}  // namespace

TokenizerTables Tokenizer::Parts::written() const {
  TokenizerTables out{pieces ? TokenizerKind::sentence_pieces : TokenizerKind::byte_level, {}, {}, pattern.text()};
  out.prefix_space = pieces && pieces->prefix() != SpacePrefix::none;
  for (const std::string& token : tokens) {
    out.tokens.push_back(
        {pieces ? with_marks(token) : to_letters(token), token.empty() ? TokenKind::unused : TokenKind::normal, 0});
  }
  for (unsigned byte = 0; pieces && byte < bytes.size(); ++byte)
    out.tokens[bytes[byte]] = {name_of_byte(byte), TokenKind::byte, 0};
  for (const AddedToken& token : added)
    out.tokens[token.id] = {token.name, token.special ? TokenKind::special : TokenKind::added, 0};
  if (unknown) out.tokens[*unknown].kind = TokenKind::unknown;
  for (const Merge& merge : merges.in_order())
    out.merges.push_back(out.tokens[merge.left].text + " " + out.tokens[merge.right].text);
  return out;
}

TokenizerTables Tokenizer::tables() const {
  TokenizerTables out = parts_->written();
  if (parts_->pieces) set_scores(out, parts_->merges.in_order());
  return out;
}

std::string Tokenizer::to_json() const {
  const Parts& parts = *parts_;
  const TokenizerTables written = parts.written();
  const Steps steps = parts.pieces ? piece_steps(parts.pieces->prefix()) : byte_steps(parts.pattern.text(), parts.composed);
  const AddedToken* const end = added_with(parts.added, parts.document_end);
  std::vector<std::string> added, vocabulary, merges;
  for (const AddedToken& token : parts.added) added.push_back(added_json(token));
  // Added tokens are in the vocabulary too: readers that number them themselves find their ids there.
  for (std::size_t id = 0; id < written.tokens.size(); ++id) {
    const TokenizerTables::Entry& token = written.tokens[id];
    if (token.kind != TokenKind::unused) vocabulary.push_back(fmt::format("{}: {}", in_json(token.text), id));
  }
  for (const std::string& merge : written.merges) merges.push_back(in_json(merge));
  return fmt::format(R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [{}],
  "normalizer": {},
  "pre_tokenizer": {},
  "post_processor": {},
  "decoder": {},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": {},
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": {},
    "byte_fallback": {},
    "ignore_merges": {},
    "vocab": {{{}}},
    "merges": [{}]
  }}
}}
)",
                     on_lines(added, "  "), steps.normalizer, steps.pre_tokenizer,
                     post_processor(added_with(parts.added, parts.beginning), end == known_end(parts.added) ? nullptr : end),
                     steps.decoder, parts.unknown ? in_json(written.tokens[*parts.unknown].text) : "null",
                     parts.pieces.has_value(), parts.pieces.has_value(), !parts.whole.empty(), on_lines(vocabulary, "    "),
                     on_lines(merges, "    "));
}

}  // namespace cautious::data
