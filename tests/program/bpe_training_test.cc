// Training against a trainer that counts everything anew for every merge.
#include "data/tokenizer/bpe_training.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/tokenizer/split_pattern.h"
#include "tokenizer_fixture.h"
#include "usage_message.h"

namespace cautious::data {
namespace bpe_training_test {

using Words = std::vector<std::vector<Token>>;

std::vector<std::string> train_slowly(const std::vector<std::string>& documents, std::size_t merges) {
  Words words;
  for (const std::string& document : documents) {
    SplitPattern(std::string(kGpt2Pattern)).each_piece(document, [&](std::string_view piece) {
      words.emplace_back();
      for (const char c : piece) words.back().push_back(static_cast<unsigned char>(c));
    });
  }
  std::vector<std::string> tokens, out;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (std::size_t step = 0; step < merges; ++step) {
    std::map<std::pair<Token, Token>, int> times;
    for (const auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++times[{word[i], word[i + 1]}];
    }
    auto best = times.begin();
    for (auto at = times.begin(); at != times.end(); ++at) {
      if (at->second > best->second) best = at;  // the map is sorted, so the first of equals stays
    }
    const auto [left, right] = best->first;
    for (auto& word : words) {
      std::vector<Token> merged;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool here = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        merged.push_back(here ? static_cast<Token>(tokens.size()) : word[i]);
        i += here;
      }
      word = merged;
    }
    out.push_back(to_letters(tokens[left]) + " " + to_letters(tokens[right]));
    tokens.push_back(tokens[left] + tokens[right]);
  }
  return out;
}

std::vector<std::string> merges_of(const Tokenizer& tokenizer) {
  return nlohmann::json::parse(tokenizer.to_json())["model"]["merges"];
}

void ignore(const char*, double) {}

using BpeTrainingFiles = TokenizerFiles;

TEST_F(BpeTrainingFiles, LearnsWhatCountingAnewLearns) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::string> documents = {random_text(random, 150, false), random_text(random, 30, false)};
    const std::vector files = {write("a.txt", documents[0]), write("b.txt", documents[1])};
    const std::size_t merges = 5 + random() % 35;
    const BpeTraining training{static_cast<std::int64_t>(257 + merges), 1 + round % 3};
    ASSERT_EQ(merges_of(train_bpe(files, training, ignore)), train_slowly(documents, merges)) << documents[0];
  }
}

// Overlaps count, merging goes from the left: "aaa" has the pair twice and keeps one single byte.
TEST_F(BpeTrainingFiles, RunsOfOneByte) {
  const std::string text = "aaaaaaa aaaaa aaa bbbb bbbbb abababa";
  EXPECT_EQ(merges_of(train_bpe({write("a.txt", text)}, {257 + 12, 1}, ignore)), train_slowly({text}, 12));
}

TEST_F(BpeTrainingFiles, TiesGoToTheSmallerIds) {
  EXPECT_EQ(merges_of(train_bpe({write("a.txt", "zy\nba\nzy\nba\nbc")}, {259, 1}, ignore)),
            (std::vector<std::string>{"b a", "z y"}));
}

TEST_F(BpeTrainingFiles, IdsAreBytesThenMergesThenTheEnd) {
  const Tokenizer tokenizer = train_bpe({write("a.txt", "the the the then")}, {260, 1}, ignore);
  EXPECT_EQ(tokenizer.vocab(), 260);
  EXPECT_EQ(tokenizer.document_end(), 259u);
  EXPECT_EQ(tokenizer.encode("he"), (std::vector<Token>{256}));
  EXPECT_EQ(tokenizer.encode("the the"), (std::vector<Token>{257, 258}));
  EXPECT_EQ(Tokenizer::read(write("t.json", tokenizer.to_json())).fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(train_bpe({write("a.txt", "x")}, {257, 1}, ignore).encode("ab"), (std::vector<Token>{97, 98}));
}

TEST_F(BpeTrainingFiles, ThreadsAndFilesDoNotMatter) {
  std::mt19937 random(5);
  std::string text, lines;
  for (int i = 0; i < 400; ++i) {
    const std::string document = random_text(random, 1000, false);
    text += document;
    lines += nlohmann::json{{"text", document}}.dump() + "\n";
  }
  const auto one_file = write("a.txt", text), many_documents = write("a.jsonl", lines);
  for (const auto& file : {one_file, many_documents}) {
    const std::string one = train_bpe({file}, {500, 1}, ignore).fingerprint();
    EXPECT_EQ(train_bpe({file}, {500, 4}, ignore).fingerprint(), one);
  }
}

TEST_F(BpeTrainingFiles, TellsHowFarItIs) {
  std::vector<std::pair<std::string, double>> calls;
  train_bpe({write("a.txt", "the then")}, {260, 1}, [&](const char* stage, double part) { calls.emplace_back(stage, part); });
  const std::vector<std::pair<std::string, double>> expected = {
      {"counting", 1}, {"merging", 1.0 / 3}, {"merging", 2.0 / 3}, {"merging", 1}};
  EXPECT_EQ(calls, expected);
}

TEST_F(BpeTrainingFiles, Errors) {
  const auto file = write("a.txt", "abab c");
  EXPECT_EQ(data_message([&] {
              train_bpe({file}, {300, 1}, ignore);
            }),
            "the text has pairs for 3 merges, too few for a vocab of 300; the largest possible is 260");
  EXPECT_EQ(train_bpe({file}, {260, 1}, ignore).vocab(), 260);
  EXPECT_NE(message([&] {
              train_bpe({file}, {256, 1}, ignore);
            }).find("vocab is 256; valid: [257, 1000000]"),
            std::string::npos);
  EXPECT_NE(data_message([&] { train_bpe({folder_ / "none.txt"}, {300, 1}, ignore); }).find("none.txt"), std::string::npos);
}

}  // namespace bpe_training_test
}  // namespace cautious::data
