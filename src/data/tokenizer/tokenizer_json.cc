// tokenizer.json, read and written, and GPT-2's encoder.json with vocab.bpe: tokens in letters for bytes, as the keys of a JSON
// object, and merges as two of them. What would change the ids and is not a byte-level BPE's own (normalizers, prefix spaces,
// byte fallback, tokens cut out of text) is refused by name rather than ignored.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

using nlohmann::json;

// A member that may be absent or null: then the null value.
const json& member(const json& object, const char* name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

bool is_on(const json& object, const char* name, bool usual) {
  const json& value = member(object, name);
  return value.is_boolean() ? value.get<bool>() : usual;
}

std::string type_of(const json& object) {
  const json& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

std::string shown_json(const json& value) {
  return base::in_quotes(value.is_string() ? value.get<std::string>()
                                           : value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::optional<std::string> add_merge_of(TokenizerBuilder& builder, std::string_view left, std::string_view right) {
  const auto a = from_letters(left), b = from_letters(right);
  if (!a || !b) return fmt::format("{} is not written in GPT-2's letters for bytes", base::in_quotes(a ? right : left));
  return builder.add_merge(*a, *b);
}

// "left right"
std::optional<std::string> add_merge_line(TokenizerBuilder& builder, std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos || space == 0 || space + 1 == line.size())
    return fmt::format("{} is not two tokens with a space between", base::in_quotes(line));
  return add_merge_of(builder, line.substr(0, space), line.substr(space + 1));
}

std::optional<std::string> add_merge_json(TokenizerBuilder& builder, const json& merge) {
  if (merge.is_string()) return add_merge_line(builder, merge.get_ref<const std::string&>());
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return add_merge_of(builder, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
  return fmt::format("{} is neither \"left right\" nor [\"left\", \"right\"]", shown_json(merge));
}

void check_byte_level(const json& step, const std::string& file) {
  if (type_of(step) != "ByteLevel")
    base::refuse_content(file, fmt::format("pre_tokenizer {} instead of ByteLevel; not a byte-level BPE", shown_json(step)));
  if (is_on(step, "add_prefix_space", true))
    base::refuse_content(
        file, "pre_tokenizer ByteLevel has add_prefix_space on; only tokenizers that leave the text as it is are supported");
}

std::string split_pattern_of(const json& split, const std::string& file) {
  const json& regex = member(member(split, "pattern"), "Regex");
  if (type_of(split) != "Split" || !regex.is_string() || member(split, "behavior") != "Isolated" ||
      is_on(split, "invert", false))
    base::refuse_content(file,
                         fmt::format("pre_tokenizer {} is not a Split by a Regex with behavior Isolated", shown_json(split)));
  return regex.get<std::string>();
}

// ByteLevel alone, or a Split and then ByteLevel.
std::string pattern_of(const json& pre_tokenizer, const std::string& file) {
  if (type_of(pre_tokenizer) != "Sequence") {
    check_byte_level(pre_tokenizer, file);
    return is_on(pre_tokenizer, "use_regex", true) ? std::string(kGpt2Pattern) : "";
  }
  const json& steps = member(pre_tokenizer, "pretokenizers");
  if (!steps.is_array() || steps.size() != 2)
    base::refuse_content(file, "pre_tokenizer is a Sequence of other than two steps; valid: ByteLevel, or Split and ByteLevel");
  check_byte_level(steps[1], file);
  if (is_on(steps[1], "use_regex", true))
    base::refuse_content(file, "pre_tokenizer splits twice: ByteLevel has use_regex on after a Split");
  return split_pattern_of(steps[0], file);
}

void check_model(const json& root, const std::string& file) {
  const json& model = member(root, "model");
  if (!model.is_object())
    base::refuse_content(file, "no object 'model'; not a tokenizer.json (for encoder.json and vocab.bpe give their folder)");
  const std::string type = type_of(model);
  // Old files leave the type out; then the merges tell.
  if (type != "BPE" && !(type.empty() && model.contains("merges")))
    base::refuse_content(file, fmt::format("model type {}; only BPE is supported", base::in_quotes(type)));
  if (!member(root, "normalizer").is_null())
    base::refuse_content(file, fmt::format("normalizer {} changes the text; only tokenizers without one are supported",
                                           base::in_quotes(type_of(member(root, "normalizer")))));
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json& value = member(model, name); !value.is_null() && value != "")
      base::refuse_content(file, fmt::format("model.{} is {}; a byte-level BPE has none", name, shown_json(value)));
  }
  if (const json& dropout = member(model, "dropout"); !dropout.is_null() && dropout != 0)
    base::refuse_content(file,
                         fmt::format("model.dropout is {}; only deterministic tokenizers are supported", shown_json(dropout)));
  if (is_on(model, "byte_fallback", false)) base::refuse_content(file, "model.byte_fallback is on; not a byte-level BPE");
}

struct AddedToken {
  std::string name;
  std::int64_t id;
};

std::vector<AddedToken> added_tokens(const json& root, const std::string& file) {
  std::vector<AddedToken> out;
  const json& added = member(root, "added_tokens");
  if (!added.is_null() && !added.is_array()) base::refuse_content(file, "added_tokens is not a list");
  for (const json& token : added) {
    const json &name = member(token, "content"), &id = member(token, "id");
    if (!name.is_string() || !id.is_number_integer())
      base::refuse_content(file, fmt::format("added token {} has no content or no id", shown_json(token)));
    if (!is_on(token, "special", false))
      base::refuse_content(
          file, fmt::format("added token {} is cut out of text (not special), which is not supported", shown_json(name)));
    out.push_back({name.get<std::string>(), id.get<std::int64_t>()});
  }
  return out;
}

json json_of_file(const std::filesystem::path& path) try {
  return json::parse(base::read_file(path));
} catch (const json::exception& error) {
  const std::string_view words = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
  base::refuse_content(path.string(), fmt::format("not JSON: {}", base::in_quotes(words.substr(words.find("] ") + 2))));
}

// Also finds the bytes' tokens. Names in `special` stand for no bytes.
void add_vocabulary(TokenizerBuilder& builder, const json& vocabulary, const std::vector<std::string_view>& special,
                    const std::string& file) {
  if (!vocabulary.is_object()) base::refuse_content(file, "the vocabulary is not an object of tokens and ids");
  const std::set<std::string_view> names(special.begin(), special.end());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer())
      base::refuse_content(file, fmt::format("token {} has the id {}", base::in_quotes(token), shown_json(id)));
    const auto number = id.get<std::int64_t>();
    if (names.contains(token)) {
      check_content(file, builder.add_special(number, token));
      continue;
    }
    auto bytes = from_letters(token);
    if (!bytes)
      base::refuse_content(file, fmt::format("token {} is not written in GPT-2's letters for bytes", base::in_quotes(token)));
    check_content(file, builder.add_token(number, *std::move(bytes)));
  }
  check_content(file, builder.find_bytes());
}

std::string in_json(std::string_view text) { return json(text).dump(); }

std::string on_lines(const std::vector<std::string>& entries, std::string_view indent) {
  if (entries.empty()) return "";
  return fmt::format("\n{0}  {1}\n{0}", indent, fmt::join(entries, fmt::format(",\n{}  ", indent)));
}

std::string byte_level(bool use_regex) {
  return fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": {}}})", use_regex);
}

std::string pre_tokenizer(const std::string& pattern) {
  if (pattern.empty() || pattern == kGpt2Pattern) return byte_level(!pattern.empty());
  return fmt::format(R"({{"type": "Sequence", "pretokenizers": [
    {{"type": "Split", "pattern": {{"Regex": {}}}, "behavior": "Isolated", "invert": false}},
    {}
  ]}})",
                     in_json(pattern), byte_level(false));
}

std::string added_json(const SpecialToken& token) {
  return fmt::format(
      R"({{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, )"
      R"("special": true}})",
      token.id, in_json(token.name));
}

}  // namespace

Tokenizer read_tokenizer_json(const std::filesystem::path& path) {
  const std::string file = path.string();
  const json root = json_of_file(path);
  check_model(root, file);
  const json& model = root["model"];
  const json& vocabulary = member(model, "vocab");
  TokenizerBuilder builder{pattern_of(member(root, "pre_tokenizer"), file)};
  const std::vector<AddedToken> added = added_tokens(root, file);
  std::vector<std::string_view> names;
  for (const AddedToken& token : added) {
    const json& id = member(vocabulary, token.name.c_str());
    if (id.is_null()) {
      check_content(file, builder.add_special(token.id, token.name));
    } else if (id != token.id) {
      base::refuse_content(file, fmt::format("added token {} has id {}, but {} in the vocabulary", base::in_quotes(token.name),
                                             token.id, shown_json(id)));
    }
    names.push_back(token.name);
  }
  add_vocabulary(builder, vocabulary, names, file);
  const json& merges = member(model, "merges");
  if (!merges.is_array()) base::refuse_content(file, "model.merges is not a list");
  for (std::size_t i = 0; i < merges.size(); ++i)
    check_content(fmt::format("{}: merge {}", file, i + 1), add_merge_json(builder, merges[i]));
  if (is_on(model, "ignore_merges", false)) check_content(file + ": ignore_merges is on, but", builder.find_unmade());
  return builder.build();
}

Tokenizer read_gpt2_files(const std::filesystem::path& encoder, const std::filesystem::path& merges) {
  TokenizerBuilder builder{std::string(kGpt2Pattern)};
  const json vocabulary = json_of_file(encoder);
  add_vocabulary(builder, vocabulary, {kDocumentEnd}, encoder.string());
  each_line(base::read_file(merges), [&](std::size_t number, std::string_view line) {
    if (line.empty() || (number == 1 && line.starts_with("#version"))) return;
    check_content(fmt::format("{}:{}", merges.string(), number), add_merge_line(builder, line));
  });
  return builder.build();
}

std::string Tokenizer::to_json() const {
  const Parts& parts = *parts_;
  std::vector<std::string> names, special, vocabulary, merges;
  for (const std::string& token : parts.tokens) names.push_back(to_letters(token));
  // Special tokens are in the vocabulary too: readers that number added tokens themselves find their ids there.
  for (const SpecialToken& token : parts.special) {
    names[token.id] = token.name;
    special.push_back(added_json(token));
  }
  for (std::size_t id = 0; id < names.size(); ++id) {
    if (!names[id].empty()) vocabulary.push_back(fmt::format("{}: {}", in_json(names[id]), id));
  }
  for (const Merge& merge : parts.merges.in_order()) merges.push_back(in_json(names[merge.left] + " " + names[merge.right]));
  return fmt::format(R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [{}],
  "normalizer": null,
  "pre_tokenizer": {},
  "post_processor": null,
  "decoder": {},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {{{}}},
    "merges": [{}]
  }}
}}
)",
                     on_lines(special, "  "), pre_tokenizer(parts.pattern.text()), byte_level(true),
                     on_lines(vocabulary, "    "), on_lines(merges, "    "));
}

}  // namespace cautious::data
