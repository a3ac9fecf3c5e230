// Writing tokenizer.json, one token and one merge per line.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

std::string in_json(std::string_view text) { return nlohmann::json(text).dump(); }

std::string lines(const std::vector<std::string>& entries, std::string_view indent) {
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

std::string added(const SpecialToken& token) {
  return fmt::format(
      R"({{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, )"
      R"("special": true}})",
      token.id, in_json(token.name));
}

}  // namespace

std::string Tokenizer::to_json() const {
  const Parts& parts = *parts_;
  std::vector<std::string> names, special, vocabulary, merges;
  for (const std::string& token : parts.tokens) names.push_back(to_letters(token));
  // Special tokens stand in the vocabulary too: readers that number added tokens themselves find their ids there.
  for (const SpecialToken& token : parts.special) {
    names[token.id] = token.name;
    special.push_back(added(token));
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
                     lines(special, "  "), pre_tokenizer(parts.pattern.text()), byte_level(true), lines(vocabulary, "    "),
                     lines(merges, "    "));
}

}  // namespace cautious::data
