// The live line: texts of times and counts, plain lines into a file, a redrawn line on a pseudo-terminal.
#include "base/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>

namespace cautious::base {
namespace live_line_test {

TEST(LiveText, Clock) {
  EXPECT_EQ(base::clock_text(0), "0:00");
  EXPECT_EQ(base::clock_text(-3), "0:00");
  EXPECT_EQ(base::clock_text(7.4), "0:07");
  EXPECT_EQ(base::clock_text(59.6), "1:00");
  EXPECT_EQ(base::clock_text(754), "12:34");
  EXPECT_EQ(base::clock_text(3599), "59:59");
  EXPECT_EQ(base::clock_text(11045), "3:04:05");
  EXPECT_EQ(base::clock_text(86399), "23:59:59");
  EXPECT_EQ(base::clock_text(86399.7), "1 d 0 h");
  EXPECT_EQ(base::clock_text(2 * 86400 + 3 * 3600 + 59 * 60), "2 d 3 h");
  EXPECT_EQ(base::clock_text(1e9), "11574 d 1 h");
  EXPECT_EQ(base::clock_text(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(base::clock_text(std::nan("")), "?");
  EXPECT_EQ(base::clock_text(1e300), "?");
}

TEST(LiveText, Count) {
  EXPECT_EQ(base::count_text(0), "0");
  EXPECT_EQ(base::count_text(0.5), "0.5");
  EXPECT_EQ(base::count_text(812), "812");
  EXPECT_EQ(base::count_text(999.4), "999");
  EXPECT_EQ(base::count_text(999.5), "1k");
  EXPECT_EQ(base::count_text(1000), "1k");
  EXPECT_EQ(base::count_text(12345), "12.3k");
  EXPECT_EQ(base::count_text(999499), "999k");
  EXPECT_EQ(base::count_text(999500), "1M");
  EXPECT_EQ(base::count_text(4.56e6), "4.56M");
  EXPECT_EQ(base::count_text(1.2e9), "1.2B");
  EXPECT_EQ(base::count_text(-52100), "-52.1k");
  EXPECT_EQ(base::count_text(3e12), "3T");
  EXPECT_EQ(base::count_text(3e16), "3e+04T");
  EXPECT_EQ(base::count_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(base::count_text(std::nan("")), "nan");
}

// Times as T: a busy machine may take a second for anything.
std::string without_times(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ':') {
      out += text[i];
      continue;
    }
    while (!out.empty() && std::isdigit(static_cast<unsigned char>(out.back()))) out.pop_back();
    out += 'T';
    i += 2;
  }
  return out;
}

// Everything a file was given.
class PlainLine : public testing::Test {
 protected:
  ~PlainLine() override { std::fclose(file_); }
  std::string text() const {
    std::string all(static_cast<std::size_t>(std::ftell(file_)), '\0');
    EXPECT_EQ(::pread(::fileno(file_), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }
  std::FILE* file_ = std::tmpfile();
};

TEST_F(PlainLine, FirstAndLast) {
  base::LiveLine line(LiveLine::Style::automatic, 1000, file_);
  line.show(0, 3000, "");
  EXPECT_EQ(without_times(text()), "step 0/3000   0%  T < ?\n");
  for (int step = 1; step < 2999; ++step) line.show(step, 3000, "loss 2.31");
  EXPECT_EQ(without_times(text()), "step 0/3000   0%  T < ?\n");
  line.say("checkpoint");
  line.show(2999, 3000, "loss 1.00");
  line.finish();
  line.finish();
  EXPECT_EQ(without_times(text()), "step 0/3000   0%  T < ?\ncheckpoint\nstep 2999/3000  99%  loss 1.00  T < T\n");
}

TEST_F(PlainLine, TheLastOneIsNotPrintedTwice) {
  {
    base::LiveLine line(LiveLine::Style::automatic, 0, file_);
    line.show(1, 2, "a");
    line.show(2, 2, "b");
  }
  EXPECT_EQ(without_times(text()), "step 1/2  50%  a  T < T\nstep 2/2 100%  b  T < T\n");
}

TEST_F(PlainLine, QuietIsQuiet) {
  {
    base::LiveLine line(LiveLine::Style::quiet, 0, file_);
    line.show(1, 2, "a");
    line.say("b");
  }
  EXPECT_EQ(text(), "");
}

TEST_F(PlainLine, NothingAtAllToDo) {
  base::LiveLine line(LiveLine::Style::automatic, 0, file_);
  line.show(0, 0, "");
  EXPECT_EQ(without_times(text()), "step 0/0 100%  T < T\n");
}

// 1 of the 100 left took 0.6 s (at least), so the other 99 take a minute; by the whole 901 steps it would be nothing.
TEST_F(PlainLine, AResumedRunCountsItsOwnPace) {
  base::LiveLine line(LiveLine::Style::automatic, 0, file_);
  line.begin_at(900);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  line.show(901, 1000, "x");
  const std::string shown = text();
  ASSERT_EQ(without_times(shown), "step 901/1000  90%  x  T < T\n");
  const std::string left = shown.substr(shown.find("< ") + 2);
  EXPECT_GE(std::stoi(left.substr(0, left.find(':'))) * 60 + std::stoi(left.substr(left.find(':') + 1)), 59) << shown;
}

// What a terminal of 40 columns is sent.
class TerminalLine : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    const winsize size{24, 40, 0, 0};
    int inside = -1;
    ASSERT_EQ(::openpty(&outside_, &inside, nullptr, nullptr, &size), 0);
    termios plain{};
    ::tcgetattr(inside, &plain);
    plain.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // "\n" stays "\n"
    ::tcsetattr(inside, TCSANOW, &plain);
    file_ = ::fdopen(inside, "w");
  }
  void TearDown() override {
    std::fclose(file_);
    ::close(outside_);
  }
  // What was sent since the last call. A terminal passes bytes on when it likes, but in order: read up to a mark of our own.
  std::string sent() const {
    constexpr char kMark = '\x01';
    std::fputc(kMark, file_);
    std::fflush(file_);
    std::string all;
    std::array<char, 4096> bytes{};
    while (!all.ends_with(kMark)) {
      const auto count = ::read(outside_, bytes.data(), bytes.size());
      if (count <= 0) return all + " and then nothing";
      all.append(bytes.data(), static_cast<std::size_t>(count));
    }
    all.pop_back();
    return all;
  }
  int outside_ = -1;
  std::FILE* file_ = nullptr;
};

TEST_F(TerminalLine, RedrawnInPlaceAndEnded) {
  base::LiveLine line(LiveLine::Style::automatic, 1000, file_);
  line.show(1, 10, "a");
  EXPECT_EQ(without_times(sent()), "\rstep 1/10  10%  a  T < T\x1b[K");
  line.say("checkpoint");
  EXPECT_EQ(without_times(sent()), "\r\x1b[Kcheckpoint\n\rstep 1/10  10%  a  T < T\x1b[K");
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  line.show(2, 10, "b");
  EXPECT_EQ(without_times(sent()), "\rstep 2/10  20%  b  T < T\x1b[K");
  line.finish();
  EXPECT_EQ(sent(), "\n");
  line.say("after");
  EXPECT_EQ(sent(), "after\n");
}

TEST_F(TerminalLine, AtMostTenTimesASecondButAlwaysTheLast) {
  const auto start = std::chrono::steady_clock::now();
  base::LiveLine line(LiveLine::Style::automatic, 1000, file_);
  int drawn = 0, step = 0;
  for (; std::chrono::steady_clock::now() - start < std::chrono::milliseconds(350); ++step) {
    line.show(step, 1'000'000'000, "");
    drawn += !sent().empty();
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  EXPECT_GE(drawn, 1);
  EXPECT_LE(drawn, passed.count() / 0.1 + 1);
  line.show(step, 1'000'000'000, "");
  line.finish();
  const std::string last = sent();
  EXPECT_TRUE(last.starts_with("\rstep " + std::to_string(step) + "/")) << last;
  EXPECT_TRUE(last.ends_with("\x1b[K\n"));
}

TEST_F(TerminalLine, CutToTheWidthBetweenCharacters) {
  base::LiveLine line(LiveLine::Style::automatic, 1000, file_);
  line.show(1, 10, "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü");
  std::string expected = "\rstep 1/10  10%  ";
  for (int i = 0; i < 39 - 16; ++i) expected += "ü";
  EXPECT_EQ(sent(), expected + "\x1b[K");
}

TEST_F(TerminalLine, ADumbTerminalGetsPlainLines) {
  ::setenv("TERM", "dumb", 1);
  base::LiveLine line(LiveLine::Style::automatic, 1000, file_);
  line.show(1, 10, "a");
  EXPECT_EQ(without_times(sent()), "step 1/10  10%  a  T < T\n");
}

// Every frame is drawn over the one before, cut to the terminal, and what is left of that is erased.
TEST_F(TerminalLine, ATableIsRedrawnInPlace) {
  LiveTable table(file_);
  EXPECT_TRUE(table.is_terminal());
  table.draw({"a", "b"});
  EXPECT_EQ(sent(), "\ra\x1b[K\n\rb\x1b[K\n\x1b[J");
  table.draw({std::string(50, 'x')});
  EXPECT_EQ(sent(), "\x1b[2A\r" + std::string(39, 'x') + "\x1b[K\n\x1b[J");
}

TEST_F(PlainLine, ATableHasLinesOfItsOwn) {
  LiveTable table(file_);
  EXPECT_FALSE(table.is_terminal());
  table.say("a");
  EXPECT_EQ(text(), "a\n");
}

}  // namespace live_line_test
}  // namespace cautious::base
