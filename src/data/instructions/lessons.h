// Conversations as tokens, some of which are to be learned; and many of them in rows of one length, for training.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/instructions/conversations.h"
#include "data/tokenizer/chat_template.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

struct Lesson {
  std::vector<Token> tokens;
  std::vector<bool> learned;  // of each token: it is a target; otherwise it is only read
};

// How a model is spoken to: with its own chat template, or with Alpaca's words where it has none.
class Speech {
 public:
  Speech(const Tokenizer& tokenizer, std::optional<ChatTemplate> chat);

  // The tokens of a conversation; the assistant's words and what ends them are learned.
  Lesson lesson(const Conversation& conversation) const;
  // What a model has read when it is to answer the last of these messages.
  std::vector<Token> question(const std::vector<Message>& messages) const;

 private:
  std::string rendered(const Conversation& conversation, std::size_t messages, bool reply) const;
  std::vector<Token> tokens_of(std::string_view text) const;
  Lesson spoken(const Conversation& conversation, bool reply) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> chat_;
};

// Lessons one after the other in rows of `length` tokens, each whole within a row; what is left of a row has no targets. Of a
// lesson that is longer than a row the end is lost; a text becomes several. Which lessons share a row is a function of the
// seed, the order of the rows of the seed and the epoch: nothing to save, nothing to restore.
class LessonRows {
 public:
  LessonRows(const std::vector<Lesson>& lessons, std::int64_t length, std::uint64_t seed);

  std::int64_t count() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::int64_t cut() const { return cut_; }  // lessons that lost their ends
  std::int64_t targets() const { return targets_; }
  Token largest() const;
  // Of the tokens and what is learned.
  std::int64_t fingerprint() const;

  // Row `number` of a run. target[i] is the token after tokens[i], or -1 where that is not learned; starts[i] is where the
  // lesson of tokens[i] begins.
  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                std::span<std::int64_t> starts) const;
  // The rows in their own order, for evaluation.
  void row(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
           std::span<std::int64_t> starts) const;

 private:
  std::size_t most() const { return static_cast<std::size_t>(length_) + 1; }  // tokens of a row, with the last target
  void add(Lesson lesson, std::size_t& used);

  std::vector<Lesson> lessons_;      // in the order of the rows
  std::vector<std::size_t> begins_;  // first lesson of each row, and the number of lessons
  std::int64_t length_, cut_ = 0, targets_ = 0;
  std::uint64_t seed_;
};

}  // namespace cautious::data
