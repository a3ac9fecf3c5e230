// The tools of src/base: files read whole, TOML with its positions, other programs, text of others in messages.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/text.h"
#include "base/toml.h"
#include "run_fixture.h"

namespace cautious::base {
namespace base_test {

class WholeFiles : public RunFiles {
 protected:
  std::string refusal(const Reading& reading = {}) const {
    try {
      read_file(directory_ / "file", reading);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), reading.fault);
      return std::string(error.what()).substr((directory_ / "file").string().size());
    }
    return "";
  }
};

TEST_F(WholeFiles, AreReadWhole) {
  std::string text(200'000, 'x');
  text[1] = '\0';
  store(directory_ / "file", text);
  EXPECT_EQ(read_file(directory_ / "file"), text);
  EXPECT_EQ(read_file(directory_ / "file", {.most = text.size()}), text);
  EXPECT_EQ(refusal({.what = "the plan", .most = text.size() - 1}), ": cannot read the plan: more than 199999 bytes");
}

TEST_F(WholeFiles, ThatAreGivenPipesAreWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::jthread writer([&] {
    for (const char* const part : {"a ", "b"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_GT(::write(ends[1], part, std::strlen(part)), 0);
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "a b");
  ::close(ends[0]);
}

TEST_F(WholeFiles, ThatCannotBeReadAreNamed) {
  EXPECT_EQ(read_file_if_any(directory_ / "file"), std::nullopt);
  EXPECT_EQ(refusal({.what = "the plan", .fault = Fault::usage}), ": cannot read the plan: No such file or directory");
  ASSERT_EQ(::mkfifo((directory_ / "file").c_str(), 0600), 0);
  EXPECT_EQ(refusal(), ": cannot read: not a regular file");
  EXPECT_THROW(read_file("/dev/zero"), Error);
  std::filesystem::remove(directory_ / "file");
  std::filesystem::create_directory(directory_ / "file");
  EXPECT_EQ(refusal(), ": cannot read: is a directory");
}

class TomlFiles : public RunFiles {
 protected:
  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage);
      return error.what();
    }
    return "";
  }
};

TEST_F(TomlFiles, ValuesKnowWhereTheyAre) {
  const TomlValue top = parse_toml("z = 1\na.b = [1.5, 'x']\n[t]\nflag = true\nday = 2026-01-01\n", "f.toml");
  std::vector<std::string> keys;
  for (const TomlEntry& entry : top.entries) keys.push_back(entry.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"z", "a", "t"}));  // the order of the file
  EXPECT_EQ(top.get("z")->integer, 1);
  EXPECT_EQ(top.get("z")->number, 1);
  EXPECT_EQ(top.get("nothing"), nullptr);
  const TomlValue& list = *top.get("a")->get("b");
  EXPECT_EQ(list.where(), "f.toml:2");
  EXPECT_EQ(list.items[0].number, 1.5);
  EXPECT_EQ(list.items[0].text, "1.5");
  EXPECT_EQ(list.items[1].described(), "the string 'x'");
  EXPECT_EQ(top.get("t")->get("flag")->described(), "true");
  EXPECT_EQ(top.get("t")->get("day")->described(), "a date or a time");
  EXPECT_EQ(refusal([&] { list.items[1].refuse("no"); }), "f.toml:2: no");
  EXPECT_EQ(refusal([&] { list.items[1].refuse_at_column("no", 1); }), "f.toml:2:14: no");
}

TEST_F(TomlFiles, AccessIsStrict) {
  const TomlValue top = parse_toml("name = 3\n[one]\nnmae = 'x'\n[[many]]\n", "f.toml");
  const TomlTable table{top}, one{*top.get("one"), "[one]"};
  EXPECT_EQ(refusal([&] { table.string("name"); }), "f.toml:1: name is 3, not a string");
  EXPECT_EQ(table.string("missing"), "");
  EXPECT_EQ(table.boolean("missing", true), true);
  EXPECT_EQ(refusal([&] { table.boolean("name", true); }), "f.toml:1: name is 3, not true or false");
  EXPECT_EQ(refusal([&] { one.required_string("name"); }), "f.toml:2: [one] has no name; write name = \"...\"");
  constexpr std::array<std::string_view, 2> kKeys{"name", "size"};
  EXPECT_EQ(refusal([&] { one.check_keys("key of [one]", kKeys); }),
            "f.toml:3: no key of [one] named 'nmae'; did you mean 'name'? choices: name, size");
  EXPECT_EQ(table.tables("many").size(), 1u);
  EXPECT_EQ(table.table("one"), top.get("one"));
  EXPECT_EQ(refusal([&] { table.table("name"); }), "f.toml:1: name is 3, not a table; write [name] above its keys");
  EXPECT_EQ(refusal([&] { table.tables("one"); }), "f.toml:2: one is a table, not a list of tables; write [[one]] above each");
}

// A key of many parts would be tables within tables, as deep as the file is long.
TEST_F(TomlFiles, LongKeysAreRefused) {
  const auto dotted = [](std::size_t parts, const std::string& part) {
    std::string key = part;
    for (std::size_t i = 1; i < parts; ++i) key += "." + part;
    return key;
  };
  const std::string strings = "s = \"\"\"\n" + dotted(99, "x") + "\"\"\"\" # " + dotted(99, "y") + "\nt = ['" +
                              dotted(99, "z") + "', \"\\\"" + dotted(99, "z") + "\"]\n";
  EXPECT_EQ(parse_toml(strings + dotted(16, "a") + " = [" +
                           "1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]\n",
                       "f.toml")
                .entries.size(),
            3u);
  for (const std::string part : {"a", "1", "\"=\"", "'\"' "}) {
    for (const std::size_t parts : {17, 300'000}) {
      const std::string key = dotted(parts, part),
                        refused = "f.toml:4: a key of more than 16 parts; valid: section.key = value";
      EXPECT_EQ(refusal([&] { parse_toml(strings + key + " = 1\n", "f.toml"); }), refused) << part;
      EXPECT_EQ(refusal([&] { parse_toml(strings + "[" + key + "]\n!", "f.toml"); }), refused) << part;
    }
  }
  std::string nested = "1";
  for (int i = 0; i < 2000; ++i) nested = "[{" + dotted(16, "a") + "=" + nested + "}]";
  EXPECT_NE(refusal([&] { parse_toml("a = " + nested, "f.toml"); }).find("not TOML"), std::string::npos);
}

TEST_F(TomlFiles, WhatIsNotTomlIsRefused) {
  EXPECT_EQ(refusal([] { parse_toml("a = 1\na = = 2\n", "f.toml"); }).substr(0, 21), "f.toml:2:5: not TOML:");
  store(directory_ / "f.toml", "a = '\x01\n");
  const std::string message = refusal([&] { read_toml(directory_ / "f.toml", {.what = "the plan"}); });
  EXPECT_NE(message.find("not TOML"), std::string::npos) << message;
  EXPECT_EQ(message.find('\x01'), std::string::npos);
}

class OtherPrograms : public RunFiles {};

TEST_F(OtherPrograms, AreRunAndWaitedFor) {
  EXPECT_TRUE(run({{"sh", "-c", "pwd; echo $LC_ALL"}, directory_, directory_ / "out"}).done);
  EXPECT_EQ(content(directory_ / "out"), std::filesystem::canonical(directory_).string() + "\nC.UTF-8\n");
  EXPECT_EQ(run({{"sh", "-c", "echo a >&2; echo 'E: why' >&2; echo b >&2; exit 3"}, directory_, {}}).reason, "why");
  EXPECT_EQ(run({{"sh", "-c", "exit 3"}, directory_, {}}).reason, "sh ended with code 3");
  EXPECT_EQ(run({{"sh", "-c", "kill -9 $$"}, directory_, {}}).reason, "sh was ended by signal 9");
  EXPECT_EQ(run({{"no-such-program"}, directory_, {}}).reason, "there is no program no-such-program");
}

TEST_F(OtherPrograms, WorkBesideThisOne) {
  const auto wait = [](Process& process) {
    std::optional<int> status;
    while (!(status = process.ended())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *status;
  };
  Process process({"/bin/sh", "-c", "echo $WORD; echo and >&2"}, {"WORD=out"}, directory_ / "log");
  EXPECT_EQ(wait(process), 0);
  EXPECT_EQ(content(directory_ / "log"), "out\nand\n");
  store(directory_ / "file", "\x7f not a program");
  std::filesystem::permissions(directory_ / "file", std::filesystem::perms::owner_all);
  const std::string file = (directory_ / "file").string();
  Process broken({file}, {}, directory_ / "log");
  EXPECT_EQ(wait(broken), 127 << 8);
  EXPECT_EQ(content(directory_ / "log"), "cannot start " + file + ": Exec format error\n");
}

TEST_F(OtherPrograms, SayTheirErrorInTheLastLine) {
  EXPECT_EQ(error_line("no memory"), "cautious: no memory\n");
  EXPECT_EQ(last_message("one\n" + error_line("no memory")), "no memory");
  EXPECT_EQ(last_message("cautious: first\nanother's words\r\n \n\n"), "another's words");
  EXPECT_EQ(last_message("\n\n"), "");
  const auto log = directory_ / "log";
  EXPECT_EQ(last_message_in(log), "");
  Process process({"/bin/sh", "-c", "echo out; echo 'cautious: why' >&2; exit 1"}, {}, log);
  while (!process.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(last_message_in(log), "why");
  store(log, std::string(5000, 'x') + "y");
  EXPECT_EQ(last_message_in(log), std::string(4095, 'x') + "y");
}

TEST_F(WholeFiles, EndInTheirLastBytes) {
  store(directory_ / "file", "0123456789");
  EXPECT_EQ(read_end(directory_ / "file", 3), "789");
  EXPECT_EQ(read_end(directory_ / "file", 100), "0123456789");
  EXPECT_EQ(read_end(directory_ / "none", 3), "");
  EXPECT_EQ(read_end(directory_, 3), "");
}

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(base::counted(1, "tuning seed"), "1 tuning seed");
  EXPECT_EQ(base::counted(0, "seed"), "0 seeds");
  EXPECT_EQ(base::counted(21, "seed"), "21 seeds");
}

TEST(QuotedText, OfOthersStaysOnOneLine) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "'a\\x0ab\\x7f'");
  const std::string letters(79, 'a');
  EXPECT_EQ(in_quotes(letters + "\u00e9z"), "'" + letters + "...' (82 bytes)");  // not in the middle of a character
  EXPECT_EQ(in_one_line("a\nb"), "a b");
  EXPECT_EQ(in_one_line(std::string(300, 'a')).size(), 200u);
}

TEST(QuotedText, HasNothingThatATerminalObeys) {
  const std::string name = "a\n\x1b[31m\u009b1m\u202eb\u00e9'\\";
  EXPECT_EQ(printable(name), "a  [31m 1m b\u00e9'\\");
  EXPECT_EQ(in_quotes(name), "'a\\x0a\\x1b[31m\\xc2\\x9b1m\\xe2\\x80\\xaeb\u00e9'\\'");
  EXPECT_EQ(shell_word(name), "$'a\\x0a\\x1b[31m\\xc2\\x9b1m\\xe2\\x80\\xaeb\u00e9\\'\\\\'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(printable("\xc2"), "\xc2");  // half a character
}

TEST(Hashes, HasItsPublishedValues) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(mix64(kGolden), 0xe220a8397b1dcdafu);  // SplitMix64's first number for seed 0
}

}  // namespace base_test
}  // namespace cautious::base
