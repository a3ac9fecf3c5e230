// Pieces of text against pieces written out by hand, and parts against the whole.
#include "data/tokenizer/split_pattern.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tokenizer_fixture.h"

namespace cautious::data {
namespace split_pattern_test {

using Pieces = std::vector<std::string>;

Pieces pieces(const SplitPattern& pattern, std::string_view text) {
  Pieces out;
  pattern.each_piece(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

Pieces pieces(std::string_view pattern, std::string_view text) { return pieces(SplitPattern(std::string(pattern)), text); }

TEST(SplitPattern, Gpt2) {
  EXPECT_EQ(pieces(kGpt2Pattern, "I've  12 files, they'LL!\n\n x"),
            (Pieces{"I", "'ve", " ", " 12", " files", ",", " they", "'", "LL", "!", "\n\n", " x"}));
  EXPECT_EQ(pieces(kGpt2Pattern, "e\u0301 12345 \t"), (Pieces{"e", "\u0301", " 12345", " \t"}));
  EXPECT_EQ(pieces(kGpt2Pattern, ""), Pieces{});
}

TEST(SplitPattern, Cl100k) {
  EXPECT_EQ(pieces(kCl100kPattern, "I'VE 12345 (files)\r\n\n  x \n  "),
            (Pieces{"I", "'VE", " ", "123", "45", " (", "files", ")\r\n\n", " ", " x", " \n  "}));
  EXPECT_EQ(pieces(kCl100kPattern, "it'ſ"), (Pieces{"it", "'ſ"}));  // the long s is an s without case
}

TEST(SplitPattern, O200k) {
  EXPECT_EQ(pieces(kO200kPattern, "HTTPServer's CamelCase a/b//\n 12345"),
            (Pieces{"HTTPServer's", " Camel", "Case", " a", "/b", "//\n", " ", "123", "45"}));
  EXPECT_EQ(pieces(kO200kPattern, "e\u0301t\u00c9"), (Pieces{"e\u0301t", "\u00c9"}));
}

// U+0085 and U+3000 are; U+180E no longer is, and U+FEFF never was.
TEST(SplitPattern, WhiteSpaceIsTheUnicodeProperty) {
  EXPECT_EQ(pieces(kGpt2Pattern, "!\u0085!\u3000!"), (Pieces{"!", "\u0085", "!", "\u3000", "!"}));
  EXPECT_EQ(pieces(kGpt2Pattern, "!\u180e!\ufeff!"), (Pieces{"!\u180e!\ufeff!"}));
}

TEST(SplitPattern, BrokenUtf8StandsAlone) {
  EXPECT_EQ(pieces(kGpt2Pattern, "ab\xff\xfe cd \xc3"), (Pieces{"ab", "\xff\xfe", " cd", " ", "\xc3"}));
  EXPECT_EQ(pieces(kGpt2Pattern, "\xed\xa0\x80x"), (Pieces{"\xed\xa0\x80", "x"}));
}

TEST(SplitPattern, ValidUtf8) {
  EXPECT_EQ(valid_utf8("aé中😀"), 10u);
  for (const std::string_view bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                     "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xc3("}) {
    EXPECT_EQ(valid_utf8("ab" + std::string(bad)), 2u);
  }
  for (const std::string_view good :
       {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(valid_utf8(good), good.size());
  }
}

TEST(SplitPattern, PartsHaveThePiecesOfTheWhole) {
  std::mt19937 random(1);
  for (const std::string_view text : {kGpt2Pattern, kCl100kPattern, kO200kPattern}) {
    const SplitPattern pattern{std::string(text)};
    std::size_t most = 0;
    for (int round = 0; round < 300; ++round) {
      const std::string sample = random_text(random, 60, true);
      const Pieces whole = pieces(pattern, sample);
      std::string joined;
      for (const std::string& piece : whole) joined += piece;
      ASSERT_EQ(joined, sample);
      const auto parts = pattern.parts(sample, 1 + random() % 9);
      most = std::max(most, parts.size());
      Pieces found;
      for (const std::string_view part : parts) {
        const Pieces some = pieces(pattern, part);
        found.insert(found.end(), some.begin(), some.end());
      }
      ASSERT_EQ(found, whole);
    }
    EXPECT_GT(most, 5u);
  }
}

TEST(SplitPattern, OtherPatterns) {
  const SplitPattern pattern("[a-c]+");
  EXPECT_EQ(pieces(pattern, "xxabyc"), (Pieces{"xx", "ab", "y", "c"}));  // what matches nothing is a piece
  EXPECT_EQ(pattern.parts("a b c d e f", 1).size(), 1u);
  EXPECT_EQ(pieces(SplitPattern("a*"), "baac"), (Pieces{"b", "aa", "c"}));
  EXPECT_EQ(pieces(SplitPattern(""), "a b\xff"), (Pieces{"a b\xff"}));
  EXPECT_NE(data_message([] { SplitPattern("(a"); }).find("split pattern '(a': missing closing parenthesis"),
            std::string::npos);
}

TEST(SplitPattern, LongRunsTakeLinearTime) {
  for (const std::string_view text : {kGpt2Pattern, kCl100kPattern, kO200kPattern}) {
    const SplitPattern pattern{std::string(text)};
    for (const std::string_view unit : {"a", "A", " ", "-", "中", "\u0301"}) {
      std::string run;
      while (run.size() < 3'000'000) run += unit;
      EXPECT_LE(pieces(pattern, run + "x").size(), 2u) << unit;
    }
  }
}

}  // namespace split_pattern_test
}  // namespace cautious::data
