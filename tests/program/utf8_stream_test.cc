// Bytes in any pieces give the same text as Python's bytes.decode(errors="replace"), and never half a character.
#include "base/utf8_stream.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace cautious::base {
namespace utf8_stream_test {

std::string one_by_one(const std::string& bytes) {
  base::Utf8Stream stream;
  std::string out;
  for (const char c : bytes) out += stream.add({&c, 1});
  return out + stream.finish();
}

std::string at_once(const std::string& bytes) {
  base::Utf8Stream stream;
  const std::string out = stream.add(bytes);
  return out + stream.finish();
}

TEST(Utf8Stream, ValidTextIsUnchanged) {
  for (const std::string text : {"", "plain\n", "a\u00e9\u00ff\u20ac\ud7ff\ue000\uffff\U00010000\U0010ffff!"}) {
    EXPECT_EQ(one_by_one(text), text);
    EXPECT_EQ(at_once(text), text);
  }
}

TEST(Utf8Stream, CharactersComeWhole) {
  base::Utf8Stream stream;
  EXPECT_EQ(stream.add("a\xf0\x9f"), "a");
  EXPECT_EQ(stream.add("\x98"), "");
  EXPECT_EQ(stream.add("\x80z"), "\xf0\x9f\x98\x80z");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, WhatIsNoCharacterIsReplaced) {
  const std::string r = "\xef\xbf\xbd";
  const std::map<std::string, std::string> expected{
      {"\x80", r},  // a continuation alone
      {"\xff"
       "a",
       r + "a"},                            //
      {"\xc3", r},                          // cut
      {"\xc3(", r + "("},                   //
      {"\xc0\xaf", r + r},                  // overlong
      {"\xe0\x80\xaf", r + r + r},          // overlong
      {"\xed\xa0\x80", r + r + r},          // a surrogate
      {"\xf4\x90\x80\x80", r + r + r + r},  // beyond the last character
      {"\xf0\x9f\x98", r},                  // cut: one for all of its start
      {"\xf0\x9f\x98\xf0\x9f\x98\x80", r + "\xf0\x9f\x98\x80"},
      {"\xe2\x82\xc3\xa9", r + "\xc3\xa9"},
      {"\xf5\x80", r + r},
  };
  for (const auto& [bytes, text] : expected) {
    EXPECT_EQ(one_by_one(bytes), text);
    EXPECT_EQ(at_once(bytes), text);
  }
}

}  // namespace utf8_stream_test
}  // namespace cautious::base
