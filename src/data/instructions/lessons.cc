// A conversation is put into words up to each answer and then with it: what the second has more, in tokens, is learned.
#include "data/instructions/lessons.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/hash.h"
#include "base/text.h"
#include "data/permutation.h"

namespace cautious::data {
namespace {

// The words that Alpaca's models are trained with: without them a fine-tuned model of others answers worse.
constexpr std::string_view kAlpacaAlone =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n";
constexpr std::string_view kAlpacaInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. Write a response that "
    "appropriately completes the request.\n\n";

std::string in_alpaca_words(const Conversation& conversation, std::size_t messages, bool reply) {
  const bool system = conversation.messages.front().role == "system";
  std::string text(system ? "" : conversation.input.empty() ? kAlpacaAlone : kAlpacaInput);
  for (std::size_t i = 0; i < messages; ++i) {
    const Message& message = conversation.messages[i];
    if (message.role == "system") text += message.content + "\n\n";
    if (message.role == "user") text += fmt::format("### Instruction:\n{}\n\n", message.content);
    if (message.role == "user" && !conversation.input.empty()) text += fmt::format("### Input:\n{}\n\n", conversation.input);
    if (message.role == "assistant") text += fmt::format("### Response:\n{}", message.content);
    if (message.role == "assistant" && i + 1 < messages) text += "\n\n";
  }
  if (reply) text += "### Response:\n";
  return text;
}

// With a template of the model's own, an input follows its instruction.
std::vector<Message> as_messages(const Conversation& conversation, std::size_t count) {
  std::vector<Message> messages(conversation.messages.begin(),
                                conversation.messages.begin() + static_cast<std::ptrdiff_t>(count));
  if (!conversation.input.empty()) messages.front().content += "\n\n" + conversation.input;
  return messages;
}

void add(Lesson& lesson, const std::vector<Token>& tokens, bool learned) {
  lesson.tokens.insert(lesson.tokens.end(), tokens.begin(), tokens.end());
  lesson.learned.resize(lesson.tokens.size(), learned);
}

// The lesson's tokens from `begin` on become these; those that change or are new are learned or not. A longer text may have
// other tokens where a shorter one ended.
void extend(Lesson& lesson, std::size_t begin, const std::vector<Token>& tokens, bool learned) {
  const auto same = std::mismatch(lesson.tokens.begin() + static_cast<std::ptrdiff_t>(begin), lesson.tokens.end(),
                                  tokens.begin(), tokens.end());
  lesson.tokens.erase(same.first, lesson.tokens.end());
  lesson.learned.resize(lesson.tokens.size());
  add(lesson, {same.second, tokens.end()}, learned);
}

// The first token is nobody's target.
std::int64_t targets_in(const Lesson& lesson) {
  return lesson.tokens.empty() ? 0 : std::count(lesson.learned.begin() + 1, lesson.learned.end(), true);
}

// A long text, all of which is learned, as several that overlap by a token; anything else as it is.
std::vector<Lesson> pieces_of(const Lesson& lesson, std::size_t most) {
  const bool text = targets_in(lesson) + 1 == static_cast<std::int64_t>(lesson.tokens.size());
  if (!text || lesson.tokens.size() <= most) return {lesson};
  std::vector<Lesson> pieces;
  for (std::size_t first = 0; first + 1 < lesson.tokens.size(); first += most - 1) {
    const std::size_t count = std::min(most, lesson.tokens.size() - first);
    const auto begin = lesson.tokens.begin() + static_cast<std::ptrdiff_t>(first);
    pieces.push_back({{begin, begin + static_cast<std::ptrdiff_t>(count)}, std::vector<bool>(count, true)});
  }
  return pieces;
}

}  // namespace

Speech::Speech(const Tokenizer& tokenizer, std::optional<ChatTemplate> chat) : tokenizer_(tokenizer), chat_(std::move(chat)) {}

std::string Speech::rendered(const Conversation& conversation, std::size_t messages, bool reply) const {
  if (!chat_) return in_alpaca_words(conversation, messages, reply);
  return chat_->render(as_messages(conversation, messages), reply);
}

std::vector<Token> Speech::tokens_of(std::string_view text) const {
  std::vector<Token> tokens = chat_ ? tokenizer_.encode_marked(text) : tokenizer_.encode(text);
  // A template may write the token that begins a text by itself.
  if (chat_ && !tokens.empty() && tokenizer_.beginning() == tokens.front()) tokens.erase(tokens.begin());
  return tokens;
}

Lesson Speech::spoken(const Conversation& conversation, bool reply) const {
  Lesson lesson;
  if (const std::optional<Token> first = tokenizer_.beginning()) add(lesson, {*first}, false);
  std::string said;                          // before the part of the text that is encoded as one
  std::size_t begin = lesson.tokens.size();  // its first token
  std::string last;
  const auto say = [&](const std::string& text, bool learned) {
    if (!text.starts_with(last)) {
      throw Error(Fault::data, fmt::format("the chat template changes what came before: {} does not begin with {}",
                                           base::in_quotes(text), base::in_quotes(last)));
    }
    last = text;
    extend(lesson, begin, tokens_of(std::string_view(text).substr(said.size())), learned);
  };
  const std::size_t count = conversation.messages.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (conversation.messages[i].role != "assistant") continue;
    say(rendered(conversation, i, true), false);
    say(rendered(conversation, i + 1, false), true);
    if (chat_) continue;  // it has its own way to end an answer
    add(lesson, {tokenizer_.document_end()}, true);
    said = rendered(conversation, i + 1, false);
    begin = lesson.tokens.size();
  }
  if (reply) say(rendered(conversation, count, true), false);
  return lesson;
}

Lesson Speech::lesson(const Conversation& conversation) const {
  if (!conversation.messages.empty()) return spoken(conversation, false);
  Lesson lesson;
  if (const std::optional<Token> first = tokenizer_.beginning()) add(lesson, {*first}, false);
  add(lesson, tokenizer_.encode(conversation.text), true);
  add(lesson, {tokenizer_.document_end()}, true);
  return lesson;
}

std::vector<Token> Speech::question(const std::vector<Message>& messages) const {
  return spoken({messages, "", ""}, true).tokens;
}

LessonRows::LessonRows(const std::vector<Lesson>& lessons, std::int64_t length, std::uint64_t seed)
    : length_(length), seed_(seed) {
  std::size_t used = most();
  for (std::uint64_t i = 0; i < lessons.size(); ++i) {
    for (Lesson& piece : pieces_of(lessons[permuted(i, lessons.size(), base::mix64(seed + base::kGolden))], most())) {
      add(std::move(piece), used);
    }
  }
  begins_.push_back(lessons_.size());
}

void LessonRows::add(Lesson lesson, std::size_t& used) {
  if (lesson.tokens.size() > most()) {
    lesson.tokens.resize(most());
    lesson.learned.resize(most());
    ++cut_;
  }
  const std::int64_t learned = targets_in(lesson);
  if (learned == 0) return;  // cut before its answer
  targets_ += learned;
  if (used + lesson.tokens.size() > most()) {
    begins_.push_back(lessons_.size());
    used = 0;
  }
  used += lesson.tokens.size();
  lessons_.push_back(std::move(lesson));
}

Token LessonRows::largest() const {
  Token largest = 0;
  for (const Lesson& lesson : lessons_) largest = std::max(largest, *std::ranges::max_element(lesson.tokens));
  return largest;
}

std::int64_t LessonRows::fingerprint() const {
  std::uint64_t hash = 0;
  for (const Lesson& lesson : lessons_) {
    for (std::size_t i = 0; i < lesson.tokens.size(); ++i) {
      hash = base::mix64(hash + base::kGolden + 2 * std::uint64_t{lesson.tokens[i]} + (lesson.learned[i] ? 1 : 0));
    }
    hash = base::mix64(hash + lesson.tokens.size());
  }
  return static_cast<std::int64_t>(hash >> 1U);
}

void LessonRows::row(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                     std::span<std::int64_t> starts) const {
  const auto length = static_cast<std::size_t>(length_);
  std::size_t position = 0;
  for (std::size_t i = begins_[number]; i < begins_[number + 1]; ++i) {
    const Lesson& lesson = lessons_[i];
    const std::size_t start = position;
    for (std::size_t k = 0; k < lesson.tokens.size() && position < length; ++k, ++position) {
      const bool learned = k + 1 < lesson.tokens.size() && lesson.learned[k + 1];
      tokens[position] = lesson.tokens[k];
      target[position] = learned ? static_cast<std::int64_t>(lesson.tokens[k + 1]) : -1;
      starts[position] = static_cast<std::int64_t>(start);
    }
  }
  for (const std::size_t start = position; position < length; ++position) {
    tokens[position] = 0;
    target[position] = -1;
    starts[position] = static_cast<std::int64_t>(start);
  }
}

void LessonRows::sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                          std::span<std::int64_t> starts) const {
  const auto rows = static_cast<std::uint64_t>(count()), at = static_cast<std::uint64_t>(number);
  row(static_cast<std::int64_t>(permuted(at % rows, rows, epoch_key(seed_, at / rows))), tokens, target, starts);
}

}  // namespace cautious::data
