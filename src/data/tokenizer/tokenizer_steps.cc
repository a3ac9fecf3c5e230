// Normalizers, pre-tokenizers and post-processors of a tokenizer.json: those of byte-level BPEs (splits, then bytes) and of
// sentence pieces (spaces become U+2581).
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer_json.h"

namespace cautious::data {
namespace {

using nlohmann::json;

// The members of a Sequence, or the step itself; none for null.
std::vector<json> steps_in(const json& step, const char* list, const std::string& file) {
  if (step.is_null()) return {};
  if (type_of(step) != "Sequence") return {step};
  const json& steps = member(step, list);
  if (!steps.is_array()) base::refuse_content(file, fmt::format("a Sequence without the list '{}'", list));
  return {steps.begin(), steps.end()};
}

[[noreturn]] void refuse_step(const char* what, const json& step, const std::string& file, const char* valid) {
  base::refuse_content(file, fmt::format("{} {} is not supported; valid: {}", what, shown_json(step), valid));
}

// Lines of a pattern are patterns of their own (split_pattern.h); a line's end means the same as its escape.
std::string on_one_line(const std::string& regex) {
  std::string out;
  for (const char c : regex) out += c == '\n' ? (out.ends_with('\\') ? "n" : "\\n") : std::string(1, c);
  return out;
}

std::string split_pattern_of(const json& step, const std::string& file) {
  const json& regex = member(member(step, "pattern"), "Regex");
  if (type_of(step) == "Digits") return std::string(is_on(step, "individual_digits", false) ? kDigitPattern : kDigitsPattern);
  if (type_of(step) != "Split" || !regex.is_string() || regex == "" || member(step, "behavior") != "Isolated" ||
      is_on(step, "invert", false))
    refuse_step("pre_tokenizer", step, file, "Split by a Regex with behavior Isolated, Digits, and ByteLevel as the last");
  return on_one_line(regex.get<std::string>());
}

// Splits, one within the pieces of the other, and ByteLevel.
std::string pattern_of(const json& root, const std::string& file) {
  const std::vector<json> steps = steps_in(member(root, "pre_tokenizer"), "pretokenizers", file);
  if (steps.empty() || type_of(steps.back()) != "ByteLevel")
    base::refuse_content(file, fmt::format("pre_tokenizer {} instead of ByteLevel, and model.byte_fallback is off; valid: a "
                                           "byte-level BPE, or sentence pieces with byte_fallback",
                                           shown_json(member(root, "pre_tokenizer"))));
  if (is_on(steps.back(), "add_prefix_space", true))
    base::refuse_content(
        file, "pre_tokenizer ByteLevel has add_prefix_space on; only tokenizers that leave the text as it is are supported");
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) patterns.push_back(split_pattern_of(steps[i], file));
  if (is_on(steps.back(), "use_regex", true)) patterns.emplace_back(kGpt2Pattern);
  return fmt::format("{}", fmt::join(patterns, "\n"));
}

bool is_mark(const json& value) { return value == std::string(kSpaceMark); }

bool is_space_replaced(const json& step) {
  return type_of(step) == "Replace" && member(member(step, "pattern"), "String") == " " && is_mark(member(step, "content"));
}

// Prepend U+2581 and Replace " ", in any order; nothing before them may split, and Gemma's Split at " " finds none.
SpacePrefix prefix_of_normalizer(const std::vector<json>& normalizers, const json& pre_tokenizer, const std::string& file) {
  constexpr const char* kValid = "Prepend of U+2581 and Replace of \" \" by it";
  bool prepends = false, replaces = false;
  for (const json& step : normalizers) {
    const bool prepend = type_of(step) == "Prepend" && is_mark(member(step, "prepend"));
    if (!prepend && !is_space_replaced(step)) refuse_step("normalizer", step, file, kValid);
    bool& seen = prepend ? prepends : replaces;
    if (seen) refuse_step("a second normalizer", step, file, kValid);
    seen = true;
  }
  if (!replaces) base::refuse_content(file, fmt::format("no normalizer replaces spaces; valid: {}", kValid));
  const bool splits_at_spaces = type_of(pre_tokenizer) == "Split" &&
                                member(member(pre_tokenizer, "pattern"), "String") == " " &&
                                !is_on(pre_tokenizer, "invert", false);
  if (!pre_tokenizer.is_null() && !splits_at_spaces)
    refuse_step("pre_tokenizer", pre_tokenizer, file, "none behind a normalizer that replaces the spaces");
  return prepends ? SpacePrefix::all : SpacePrefix::none;
}

SpacePrefix prefix_of_metaspace(const json& metaspace, const std::string& file) {
  if (type_of(metaspace) != "Metaspace" || !is_mark(member(metaspace, "replacement")))
    refuse_step("pre_tokenizer", metaspace, file, "Metaspace with U+2581 where model.byte_fallback is on");
  const json& scheme = member(metaspace, "prepend_scheme");
  if (scheme.is_null()) return is_on(metaspace, "add_prefix_space", true) ? SpacePrefix::missing : SpacePrefix::none;
  if (scheme == "always") return SpacePrefix::missing;
  if (scheme == "first") return SpacePrefix::first;
  if (scheme == "never") return SpacePrefix::none;
  base::refuse_content(file, fmt::format("prepend_scheme {}; valid: always, first, never", shown_json(scheme)));
}

// "<s>" of {"SpecialToken": {"id": "<s>"}}; nothing for the text.
std::optional<std::string> special_in(const json& item, const std::string& file) {
  const json& id = member(member(item, "SpecialToken"), "id");
  if (id.is_string()) return id.get<std::string>();
  if (member(member(item, "Sequence"), "id") != "A")
    base::refuse_content(file, fmt::format("post_processor has {} for a single text", shown_json(item)));
  return std::nullopt;
}

void add_ends(TextEnds& ends, const json& processor, const std::string& file) {
  bool text_seen = false;
  for (const json& item : member(processor, "single")) {
    const auto name = special_in(item, file);
    std::optional<std::string>& end = text_seen ? ends.end : ends.beginning;
    if (name ? end.has_value() : text_seen)
      base::refuse_content(file, "post_processor puts more than a token before or behind a text, which is not supported");
    if (name) end = name;
    text_seen |= !name;
  }
  // to_json() names the end of documents where nothing else would: among the special tokens, but in no template.
  for (const auto& [name, unused] : member(processor, "special_tokens").items()) {
    if (name != ends.beginning && !ends.end) ends.end = name;
  }
}

}  // namespace

TextSteps text_steps(const json& root, const std::string& file) {
  const std::vector<json> normalizers = steps_in(member(root, "normalizer"), "normalizers", file);
  const json& pre_tokenizer = member(root, "pre_tokenizer");
  TextSteps out;
  if (!is_on(member(root, "model"), "byte_fallback", false)) {
    for (const json& step : normalizers) {
      if (type_of(step) != "NFC") refuse_step("normalizer", step, file, "none, or NFC");
    }
    out.composed = !normalizers.empty();
    out.pattern = pattern_of(root, file);
  } else if (normalizers.empty()) {
    out.prefix = prefix_of_metaspace(pre_tokenizer, file);
    out.splits_words = is_on(pre_tokenizer, "split", true);
  } else {
    out.prefix = prefix_of_normalizer(normalizers, pre_tokenizer, file);
  }
  return out;
}

TextEnds text_ends(const json& root, const std::string& file) {
  TextEnds out;
  for (const json& step : steps_in(member(root, "post_processor"), "processors", file)) {
    if (type_of(step) == "TemplateProcessing") {
      add_ends(out, step, file);
    } else if (type_of(step) != "ByteLevel") {
      refuse_step("post_processor", type_of(step), file, "TemplateProcessing, ByteLevel");
    }
  }
  return out;
}

}  // namespace cautious::data
