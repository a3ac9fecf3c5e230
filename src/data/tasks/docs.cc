// Prompts by lm-evaluation-harness 0.4: the text is part of the score, so every space counts.
#include "data/tasks/kinds.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "data/documents.h"

namespace cautious::data {
namespace {

using Item = nlohmann::json;
using Texts = std::vector<std::string>;

constexpr std::size_t kMostChoices = 26;  // letters

// Without spaces and line ends at both ends.
std::string without_ends(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == text.npos ? "" : std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::string with_replacement(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

// Without what stands in brackets on one line.
std::string without_brackets(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('['), close = open == text.npos ? open : text.find_first_of("]\n", open);
    if (close == text.npos) break;
    const bool bracket = text[close] == ']';
    result.append(text.substr(0, bracket ? open : close + 1));
    text.remove_prefix(close + 1);
  }
  return result.append(text);
}

// The brackets of HellaSwag are left over from the pages it was made of.
std::string cleaned(std::string_view text) {
  return with_replacement(without_brackets(with_replacement(without_ends(text), " [title]", ". ")), "  ", " ");
}

// The first letter large, the others small, as Python has it; of ASCII letters only.
std::string capitalized(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) text[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
  }
  return text;
}

Texts texts_of(const Item& object, const char* name, const std::string& where) {
  const Item& field = field_of(object, name, where);
  if (!field.is_array()) {
    base::refuse_content(where, fmt::format("field '{}' is of type {}, not a list of texts", name, field.type_name()));
  }
  if (field.size() < 2 || field.size() > kMostChoices) {
    base::refuse_content(where, fmt::format("field '{}' has {} texts; valid: 2 to {}", name, field.size(), kMostChoices));
  }
  Texts texts;
  for (const Item& text : field) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      base::refuse_content(where, fmt::format("field '{}' has {}, not a text that is not empty", name,
                                              base::in_quotes(text.dump(-1, ' ', false, Item::error_handler_t::replace))));
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

// A choice by its number from `first` on, as a number or as text, or by its letter.
std::size_t choice_of(const Item& value, const char* name, std::size_t count, std::int64_t first, const std::string& where) {
  std::optional<std::int64_t> number;
  if (value.is_number_integer()) number = value.get<std::int64_t>();
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    number = base::parsed<std::int64_t>(text);
    if (text.size() == 1 && text[0] >= 'A' && text[0] <= 'Z') number = text[0] - 'A' + first;
  }
  const std::int64_t last = first + static_cast<std::int64_t>(count) - 1;
  if (number && *number >= first && *number <= last) return static_cast<std::size_t>(*number - first);
  base::refuse_content(
      where, fmt::format("field '{}' is {}, not one of the {} choices; valid: {} to {}", name,
                         base::in_quotes(value.dump(-1, ' ', false, Item::error_handler_t::replace)), count, first, last));
}

std::size_t choice_in(const Item& object, const char* name, std::size_t count, const std::string& where) {
  return choice_of(field_of(object, name, where), name, count, 0, where);
}

Texts after_space(const Texts& texts) {
  Texts result;
  for (const std::string& text : texts) result.push_back(" " + text);
  return result;
}

// "\nA. first\nB. second"
std::string lettered(const Texts& choices) {
  std::string lines;
  for (std::size_t i = 0; i < choices.size(); ++i) lines += fmt::format("\n{}. {}", static_cast<char>('A' + i), choices[i]);
  return lines;
}

Texts letters(std::size_t count) {
  Texts result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({' ', static_cast<char>('A' + i)});
  return result;
}

// Files of llm.c may have the whole context alone.
std::string hellaswag_context(const Item& item, const std::string& where) {
  if (!item.contains("ctx_a")) return text_of(item, "ctx", where);
  return fmt::format("{}: {} {}", text_of(item, "activity_label", where), text_of(item, "ctx_a", where),
                     capitalized(text_of(item, "ctx_b", where)));
}

TaskDoc hellaswag(const Item& item, const std::string& where) {
  Texts endings = texts_of(item, "endings", where);
  const std::size_t gold = choice_in(item, "label", endings.size(), where);
  std::transform(endings.begin(), endings.end(), endings.begin(), cleaned);
  return {cleaned(hellaswag_context(item, where)), {}, after_space(endings), {gold}, ""};
}

// The choices of ARC and CommonsenseQA, {"text": [...], "label": [...]}, and the position of answerKey among the labels.
std::pair<Texts, std::size_t> keyed_choices(const Item& item, const std::string& where) {
  const Item& choices = field_of(item, "choices", where);
  if (!choices.is_object()) {
    base::refuse_content(
        where, fmt::format("field 'choices' is of type {}, not {{\"text\": [...], \"label\": [...]}}", choices.type_name()));
  }
  Texts texts = texts_of(choices, "text", where);
  const Texts labels = texts_of(choices, "label", where);
  const std::string& key = text_of(item, "answerKey", where);
  const auto found = std::find(labels.begin(), labels.end(), key);
  if (labels.size() != texts.size() || found == labels.end()) {
    base::refuse_content(where, fmt::format("field 'answerKey' is {}, and there are {} choices with the labels {}",
                                            base::in_quotes(key), texts.size(), base::join(labels)));
  }
  return {std::move(texts), static_cast<std::size_t>(found - labels.begin())};
}

TaskDoc arc(const Item& item, const std::string& where) {
  const auto [choices, gold] = keyed_choices(item, where);
  return {fmt::format("Question: {}\nAnswer:", text_of(item, "question", where)), {}, after_space(choices), {gold}, ""};
}

TaskDoc csqa(const Item& item, const std::string& where) {
  const auto [choices, gold] = keyed_choices(item, where);
  return {fmt::format("Question: {}{}\nAnswer:", without_ends(text_of(item, "question", where)), lettered(choices)),
          {},
          letters(choices.size()),
          {gold},
          ""};
}

TaskDoc piqa(const Item& item, const std::string& where) {
  const Texts choices{text_of(item, "sol1", where), text_of(item, "sol2", where)};
  return {fmt::format("Question: {}\nAnswer:", text_of(item, "goal", where)),
          {},
          after_space(choices),
          {choice_in(item, "label", 2, where)},
          ""};
}

TaskDoc mmlu(const Item& item, const std::string& where) {
  const Texts choices = texts_of(item, "choices", where);
  return {fmt::format("{}{}\nAnswer:", without_ends(text_of(item, "question", where)), lettered(choices)),
          {},
          letters(choices.size()),
          {choice_in(item, "answer", choices.size(), where)},
          item.contains("subject") ? text_of(item, "subject", where) : ""};
}

// Both sentences end alike: what is scored is the end, after either name.
TaskDoc winogrande(const Item& item, const std::string& where) {
  const std::string& sentence = text_of(item, "sentence", where);
  const std::size_t gap = sentence.find('_');
  if (gap == sentence.npos) base::refuse_content(where, fmt::format("no _ in the sentence {}", base::in_quotes(sentence)));
  const std::string before = sentence.substr(0, gap), after = " " + without_ends(sentence.substr(gap + 1));
  return {"",
          {before + text_of(item, "option1", where), before + text_of(item, "option2", where)},
          {after, after},
          {choice_of(field_of(item, "answer", where), "answer", 2, 1, where)},
          ""};
}

std::vector<std::size_t> all_choices_of(const Item& value, const char* name, std::size_t count, const std::string& where) {
  std::vector<std::size_t> all;
  if (!value.is_array()) return {choice_of(value, name, count, 0, where)};
  for (const Item& one : value) all.push_back(choice_of(one, name, count, 0, where));
  if (all.empty()) base::refuse_content(where, fmt::format("field '{}' names no choice", name));
  return all;
}

// The harness's sets have the whole prompt as query; those of AGIEval itself its parts.
TaskDoc agieval(const Item& item, const std::string& where) {
  const bool whole = item.contains("query");
  const Texts choices = texts_of(item, whole ? "choices" : "options", where);
  const char* const key = whole ? "gold" : "label";
  std::vector<std::size_t> gold = all_choices_of(field_of(item, key, where), key, choices.size(), where);
  if (whole) return {text_of(item, "query", where), {}, after_space(choices), std::move(gold), ""};
  const bool passage = item.contains("passage") && !item["passage"].is_null();
  return {fmt::format("{}Q: {} Answer Choices: {}\nA: Among A through {}, the answer is",
                      passage ? text_of(item, "passage", where) : "", text_of(item, "question", where), fmt::join(choices, " "),
                      static_cast<char>('A' + choices.size() - 1)),
          {},
          after_space(choices),
          std::move(gold),
          ""};
}

constexpr std::array<std::string_view, 3> kValidation{"validation", "val", "test"}, kTest{"test", "validation", "val"};
constexpr TaskKind kKinds[] = {
    {"hellaswag", "hellaswag", kValidation, {"train", ""}, true, false, false, false, hellaswag},
    {"arc_easy", "ARC-Easy", kTest, {"train", ""}, true, false, false, false, arc},
    {"arc_challenge", "ARC-Challenge", kTest, {"train", ""}, true, false, false, false, arc},
    {"piqa", "piqa", kValidation, {"train", ""}, true, false, false, false, piqa},
    {"mmlu", "mmlu", kTest, {"dev", ""}, false, true, true, true, mmlu},
    {"csqa", "commonsense_qa", kValidation, {"train", ""}, false, false, false, false, csqa},
    {"winogrande", "winogrande", kValidation, {"train", ""}, false, false, false, false, winogrande},
    {"agieval", "agieval", kTest, {"dev", "few_shot"}, true, false, false, true, agieval},
    // Of the known set `questions`, in the forms of HellaSwag and ARC.
    {"endings", "questions", kValidation, {"train", ""}, true, false, false, false, hellaswag},
    {"meanings", "questions", kValidation, {"train", ""}, true, false, false, false, arc},
};

}  // namespace

std::span<const TaskKind> task_kinds() { return kKinds; }

bool is_request(const Item& item) { return item.contains("request_type"); }

void RequestReader::add(const Item& item, const std::string& where, std::vector<TaskDoc>& docs) {
  constexpr std::int64_t kUnconditional = 1'000'000;  // OLMo's mark for choices without a context
  const auto whole = [&](const char* name) {
    const Item& field = field_of(item, name, where);
    if (field.is_number_integer() && field.get<std::int64_t>() >= 0) return field.get<std::int64_t>();
    base::refuse_content(where, fmt::format("field '{}' is not a whole number from 0 on", name));
  };
  const std::string& type = text_of(item, "request_type", where);
  if (type != "loglikelihood") {
    base::refuse_content(where, fmt::format("request_type is {}; valid: loglikelihood", base::in_quotes(type)));
  }
  const std::int64_t number = whole("doc_id"), index = whole("idx"), label = whole("label");
  if (number >= kUnconditional) return;
  const Item& request = field_of(item, "request", where);
  if (!request.is_object()) base::refuse_content(where, "field 'request' is not an object");
  const std::string& context = text_of(request, "context", where);
  if (number != doc_) {
    finish(docs);
    docs.push_back({context, {}, {}, {static_cast<std::size_t>(label)}, ""});
    doc_ = number;
  }
  TaskDoc& doc = docs.back();
  where_ = where;
  if (index != std::ssize(doc.continuations)) {
    base::refuse_content(where, fmt::format("idx is {}, but the choices before it are {}", index, doc.continuations.size()));
  }
  if (doc.openings.empty() && context != doc.prompt) {  // the contexts differ: none is shared
    doc.openings.assign(doc.continuations.size(), doc.prompt);
    doc.prompt.clear();
  }
  if (!doc.openings.empty()) doc.openings.push_back(context);
  doc.continuations.push_back(text_of(request, "continuation", where));
  if (doc.continuations.back().empty()) base::refuse_content(where, "field 'continuation' is empty");
}

void RequestReader::finish(std::vector<TaskDoc>& docs) {
  if (doc_ < 0) return;
  const TaskDoc& last = docs.back();
  if (last.gold[0] < last.continuations.size()) return;
  base::refuse_content(where_, fmt::format("label is {}, but the doc has {} choices", last.gold[0], last.continuations.size()));
}

}  // namespace cautious::data
