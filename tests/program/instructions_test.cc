// Conversations from every kind of file, what of them is learned, and the rows they are packed into.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "data/instructions/conversations.h"
#include "data/instructions/lessons.h"
#include "data_fixture.h"

namespace cautious::data {
namespace instructions_test {

class Instructions : public DataFiles {
 protected:
  std::string refusal(const std::string& name, std::string_view content) const {
    return line_of(Fault::data, [&] { read_conversations(write(name, content)); });
  }
};

// Without what ends documents.
std::string text_of(const std::vector<Token>& tokens) {
  std::string text = Tokenizer::bytes().decode(tokens);
  std::erase(text, '\0');
  return text;
}

// The learned tokens, "[end]" for byte 0.
std::string learned_part(const Lesson& lesson) {
  std::string text;
  for (std::size_t i = 0; i < lesson.tokens.size(); ++i) {
    if (lesson.learned[i]) text += lesson.tokens[i] == 0 ? "[end]" : std::string(1, static_cast<char>(lesson.tokens[i]));
  }
  return text;
}

TEST_F(Instructions, AlpacaAsAListOrLineByLine) {
  const std::string one = R"({"instruction": "Add.", "input": "1 2", "output": "3"})";
  const std::string two = R"({"instruction": "Say hi.", "output": "hi", "text": "all of it again"})";
  for (const auto& file : {write("a.json", fmt::format("[{}, {}]", one, two)), write("a.jsonl", one + "\n\n" + two + "\n")}) {
    const std::vector<Conversation> all = read_conversations(file);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].messages[0].role, "user");
    EXPECT_EQ(all[0].messages[0].content, "Add.");
    EXPECT_EQ(all[0].input, "1 2");
    EXPECT_EQ(all[0].messages[1].content, "3");
    EXPECT_EQ(all[1].input, "");
    EXPECT_EQ(all[1].text, "");
  }
}

TEST_F(Instructions, MessagesAndTexts) {
  const auto chat = read_conversations(
      write("c.jsonl", R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, )"
                       R"({"role": "assistant", "content": "Hello"}]})"));
  ASSERT_EQ(chat.size(), 1u);
  EXPECT_EQ(chat[0].messages.size(), 3u);
  EXPECT_EQ(read_conversations(write("t.txt", "once\nupon"))[0].text, "once\nupon");
  EXPECT_EQ(read_conversations(write("t.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}"))[1].text, "b");
}

TEST_F(Instructions, WhatIsMalformedIsNamedWithItsPlace) {
  EXPECT_TRUE(has(refusal("a.jsonl", "{\"text\": \"a\"}\n{\"output\": \"b\"}"), "a.jsonl: line 2: none of the fields"));
  EXPECT_TRUE(has(refusal("a.json", "[{\"instruction\": \"a\"}]"), "a.json: entry 1: no field 'output'"));
  EXPECT_TRUE(has(refusal("a.json", "[{\"instruction\": \"a\", \"output\": 3}]"), "'output' is of type number"));
  EXPECT_TRUE(has(refusal("a.json", "[1"), "a.json: not JSON near byte"));
  EXPECT_TRUE(has(refusal("a.json", "{}"), "not a list of JSON objects"));
  EXPECT_TRUE(has(refusal("a.json", "[]"), "a.json: has no documents, only an empty list"));
  EXPECT_TRUE(has(refusal("a.jsonl", R"({"messages": [{"role": "robot", "content": "x"}]})"), "no role named 'robot'"));
  EXPECT_TRUE(has(refusal("a.jsonl", R"({"messages": [{"role": "user", "content": "x"}]})"), "no answer to learn"));
  EXPECT_TRUE(has(refusal("a.jsonl", R"({"messages": []})"), "not a list of messages"));
}

TEST(Speech, OnlyAnswersAreLearned) {
  const Speech speech(Tokenizer::bytes(), std::nullopt);
  const Conversation conversation{
      {{"system", "S"}, {"user", "U"}, {"assistant", "one"}, {"user", "V"}, {"assistant", "two"}}, "", ""};
  const Lesson lesson = speech.lesson(conversation);
  EXPECT_EQ(learned_part(lesson), "one[end]two[end]");
  EXPECT_EQ(text_of(lesson.tokens),
            "S\n\n### Instruction:\nU\n\n### Response:\none\n\n### Instruction:\nV\n\n### Response:\ntwo");
  EXPECT_EQ(learned_part(speech.lesson({{}, "", "all"})), "all[end]");
}

TEST(Speech, AlpacaHasItsOwnWords) {
  const Speech speech(Tokenizer::bytes(), std::nullopt);
  const std::string with = text_of(speech.lesson({{{"user", "I"}, {"assistant", "O"}}, "X", ""}).tokens);
  EXPECT_TRUE(has(with, "paired with an input"));
  EXPECT_TRUE(has(with, "### Instruction:\nI\n\n### Input:\nX\n\n### Response:\nO"));
  const std::string question = text_of(speech.question({{"user", "I"}}));
  EXPECT_TRUE(has(question, "### Instruction:\nI\n\n### Response:\n"));
  EXPECT_TRUE(text_of(speech.lesson({{{"user", "I"}, {"assistant", "O"}}, "", ""}).tokens).starts_with(question));
}

TEST(Speech, TheModelsOwnTemplateIsUsed) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}",
      "a test");
  const Speech speech(Tokenizer::bytes(), chat);
  const Conversation talk{{{"user", "U"}, {"assistant", "one"}, {"user", "V"}, {"assistant", "two"}}, "", ""};
  const Lesson lesson = speech.lesson(talk);
  EXPECT_EQ(text_of(lesson.tokens), "<user>U</user><assistant>one</assistant><user>V</user><assistant>two</assistant>");
  EXPECT_EQ(learned_part(lesson), "one</assistant>two</assistant>");
  EXPECT_EQ(text_of(speech.question({{"user", "U"}})), "<user>U</user><assistant>");
  const std::string with_input = text_of(speech.lesson({{{"user", "I"}, {"assistant", "O"}}, "X", ""}).tokens);
  EXPECT_EQ(with_input, "<user>I\n\nX</user><assistant>O</assistant>");
  const ChatTemplate changes = ChatTemplate::parse("{{ messages | length }}", "a test");
  EXPECT_TRUE(has(line_of(Fault::data, [&] { Speech(Tokenizer::bytes(), changes).lesson(talk); }), "changes what came before"));
}

// Lesson i is of the tokens 10 i + 1, ..., the first two of which are only read.
std::vector<Lesson> numbered(std::size_t count) {
  std::vector<Lesson> lessons(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < 4 + i % 5; ++k) {
      lessons[i].tokens.push_back(static_cast<Token>(10 * i + k + 1));
      lessons[i].learned.push_back(k >= 2);
    }
  }
  return lessons;
}

TEST(LessonRows, EveryTargetOnceAndNoneAcrossLessons) {
  constexpr std::int64_t kLength = 12;
  const LessonRows rows(numbered(40), kLength, 7);
  std::multiset<std::int64_t> found;
  std::vector<std::int64_t> tokens(kLength), target(kLength), starts(kLength);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    rows.row(row, tokens, target, starts);
    for (std::size_t i = 0; i < kLength; ++i) {
      ASSERT_LE(starts[i], static_cast<std::int64_t>(i));
      if (target[i] < 0) continue;
      EXPECT_EQ(target[i], tokens[i] + 1);                                                 // the same lesson's next token
      EXPECT_EQ(tokens[starts[i]], tokens[i] - static_cast<std::int64_t>(i) + starts[i]);  // which begins there
      found.insert(target[i]);
    }
  }
  std::multiset<std::int64_t> wanted;
  for (const Lesson& lesson : numbered(40)) {
    for (std::size_t k = 2; k < lesson.tokens.size(); ++k) wanted.insert(lesson.tokens[k]);
  }
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(rows.targets(), static_cast<std::int64_t>(wanted.size()));
  EXPECT_EQ(rows.cut(), 0);
  EXPECT_LT(rows.count(), 40);
}

TEST(LessonRows, AnEpochIsEveryRowOnceInAnOrderOfItsOwn) {
  constexpr std::int64_t kLength = 10;
  const LessonRows rows(numbered(60), kLength, 3);
  std::vector<std::int64_t> tokens(kLength), target(kLength), starts(kLength);
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::int64_t number = 0; number < 2 * rows.count(); ++number) {
    rows.sequence(number, tokens, target, starts);
    epochs[number / rows.count()].push_back(tokens[0]);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) std::ranges::sort(epoch);
  EXPECT_EQ(epochs[0], epochs[1]);
  EXPECT_EQ(LessonRows(numbered(60), kLength, 3).fingerprint(), rows.fingerprint());
  EXPECT_NE(LessonRows(numbered(59), kLength, 3).fingerprint(), rows.fingerprint());
}

TEST(LessonRows, LongLessonsAreCutAndThoseWithoutAnAnswerLeftOut) {
  std::vector<Lesson> lessons = numbered(3);
  const LessonRows rows(lessons, 5, 0);  // of 4, 5 and 6 tokens, rows of 5 + 1
  EXPECT_EQ(rows.cut(), 0);
  const LessonRows shorter(lessons, 3, 0);
  EXPECT_EQ(shorter.cut(), 2);
  EXPECT_EQ(shorter.targets(), 2 * 3);
  EXPECT_EQ(LessonRows(lessons, 1, 0).count(), 0);  // every one is cut before its answer
}

TEST(LessonRows, ALongTextBecomesSeveral) {
  Lesson text;
  for (Token i = 0; i < 25; ++i) text.tokens.push_back(i);
  text.learned.assign(25, true);
  constexpr std::int64_t kLength = 6;
  const LessonRows rows({text}, kLength, 0);
  EXPECT_EQ(rows.targets(), 24);
  EXPECT_EQ(rows.cut(), 0);
  std::set<std::int64_t> found;
  std::vector<std::int64_t> tokens(kLength), target(kLength), starts(kLength);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    rows.row(row, tokens, target, starts);
    for (std::size_t i = 0; i < kLength; ++i) {
      if (target[i] < 0) continue;
      EXPECT_TRUE(found.insert(target[i]).second);
    }
  }
  EXPECT_EQ(found.size(), 24u);
}

}  // namespace instructions_test
}  // namespace cautious::data
