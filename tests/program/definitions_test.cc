// Instructions and benchmarks out of a dictionary's text.
#include "data/sets/catalog.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cautious::data {
namespace definitions_test {

constexpr std::string_view kText = R"(00-database-info
   about it

Abbey \Ab"bey\, n.; pl. {Abbeys}. [OF. abaie.]
   1. A monastery of monks, with an abbot at its head.
      [1913 Webster]

Abdicator \Ab"di*ca`tor\, n. [L., fr. abdicare
   to give up.]
   1. (Law) One who gives up a power that was his.
      --Bacon.
      [1913 Webster]

   2. Another meaning that is not the first.
      [1913 Webster]

Abdicator \Ab"di*ca`tor\, n.
   The same word once more, as the same kind.
   [1913 Webster]

Abdicator \Ab"di*ca`tor\, v. t.
   To be what no abdicator ever was before.
   [1913 Webster]

Abet \A*bet"\, v. i.
   Short.
   [1913 Webster]

Able \A"ble\, a.
   Having {power} enough to be marked up here.
   [1913 Webster]
)";

TEST(Definitions, AreTheFirstMeaningsOfPlainWords) {
  const std::vector<Definition> found = definitions_in(kText);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].word, "abdicator");
  EXPECT_EQ(found[0].kind, "noun");
  EXPECT_EQ(found[0].text, "One who gives up a power that was his.");
  EXPECT_EQ(found[1].kind, "transitive verb");
}

TEST(Definitions, NothingOfNothing) {
  EXPECT_TRUE(definitions_in("").empty());
  EXPECT_TRUE(definitions_in("\n\n").empty());
  EXPECT_TRUE(definitions_in("Abc \\").empty());
  EXPECT_TRUE(definitions_in("Abc \\x\\, n. [").empty());
}

// 1200 words, each with a definition of its own, of two kinds.
std::string many_words() {
  std::string text;
  for (int i = 0; i < 1200; ++i) {
    text +=
        fmt::format("Word{0} \\Word{0}\\, {1}\n   What is called by the number {0} and by nothing else.\n   [1913 Webster]\n\n",
                    i, i % 2 == 0 ? "n." : "a.");
  }
  return text;
}

TEST(Questions, AreOfTheLastTwentieth) {
  const std::vector<DictionaryQuestion> found = questions_in(many_words());
  ASSERT_GE(found.size(), 57u);
  ASSERT_LE(found.size(), 62u);
  EXPECT_EQ(found.back().about.word, "word1199");
  EXPECT_EQ(found.front().about.word, fmt::format("word{}", 1200 - found.size()));
}

TEST(Questions, HaveFourDifferentChoicesOfOneKind) {
  const std::vector<DictionaryQuestion> found = questions_in(many_words());
  std::map<std::size_t, int> right;
  for (const DictionaryQuestion& each : found) {
    const std::vector<std::string> choices = each.choices(), endings = each.endings();
    ASSERT_EQ(choices.size(), 4u);
    EXPECT_EQ((std::set<std::string>(choices.begin(), choices.end()).size()), 4u);
    EXPECT_EQ(choices[each.right], each.about.text);
    ++right[each.right];
    // The beginning and the right ending are the definition.
    EXPECT_EQ(each.beginning() + " " + endings[each.right], each.about.word + ": " + each.about.text);
    for (const std::string& choice : choices) {
      const auto other = std::ranges::find(found, choice, [](const DictionaryQuestion& one) { return one.about.text; });
      ASSERT_NE(other, found.end());
      EXPECT_EQ(other->about.kind, each.about.kind);
    }
  }
  EXPECT_EQ(right.size(), 4u);  // the right one is not always at the same position
}

TEST(Questions, NothingOfLittle) {
  EXPECT_TRUE(questions_in("").empty());
  EXPECT_TRUE(questions_in(kText).empty());
  EXPECT_TRUE(questions_in(std::string(1000, ' ')).empty());
  EXPECT_TRUE(questions_in(std::string(1000, 'x')).empty());
}

}  // namespace definitions_test
}  // namespace cautious::data
