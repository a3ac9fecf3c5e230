// Instructions out of a dictionary's text.
#include "data/sets/catalog.h"

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

}  // namespace definitions_test
}  // namespace cautious::data
