// What a person sees: text on standard output, and while work is going on one live line on a terminal, or a plain line now and
// then elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::base {

// The whole text to standard output, at once; false or an Error(Fault::failure) if that fails.
bool try_print(std::string_view text);
void print(std::string_view text);

// A message to standard error. Where that fails there is nobody to tell; what is being done goes on.
void tell(std::string_view text);

// A terminal that can move its cursor; not with TERM=dumb.
bool redrawable(std::FILE* stream);

struct TerminalSize {
  std::size_t width, height;
};
TerminalSize terminal_size(std::FILE* stream);  // 80 x 24 if it does not say

// The first `most` characters of UTF-8 text.
std::string_view cut(std::string_view text, std::size_t most);

// "0:07", "12:34", "3:04:05", "2 d 3 h".
std::string clock_text(double seconds);
// "812", "12.3k", "4.56M", "1.2B".
std::string count_text(double count);

class LiveLine {
 public:
  // On a terminal the line is redrawn at most ten times a second; otherwise, or with TERM=dumb, a plain line is printed at most
  // every `plain_seconds`, and always the last one. There is no colour, so NO_COLOR changes nothing. Quiet: nothing at all.
  enum class Style { automatic, quiet };
  explicit LiveLine(Style style, double plain_seconds = 10, std::FILE* to = stderr);
  ~LiveLine();  // ends the live line
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // "step 120/3000   4%  <text>  0:12 < 4:50": position, text, the time since the work began, and the time left at the pace
  // since then.
  void show(std::int64_t done, std::int64_t total, const std::string& text);
  // The same for work without steps: " 34%  <text>  0:12 < 0:23".
  void show_fraction(double fraction, const std::string& text);
  // A line of its own above the live line.
  void say(const std::string& line);
  void finish();

  // The work begins now, with `done` steps behind it (a resumed run); otherwise it began with the object, at 0.
  void begin_at(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  void show(const std::string& position, double worked, double left, const std::string& text);
  void print();

  Style style_;
  bool terminal_;
  double plain_seconds_;
  std::FILE* to_;
  std::int64_t begun_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = {};
  std::string line_;  // the last one; empty when there is none to end
  bool printed_ = false;
};

// Lines that are drawn over those of the last time, on a terminal; elsewhere lines of their own.
class LiveTable {
 public:
  explicit LiveTable(std::FILE* to = stderr) : to_(to), terminal_(redrawable(to)) {}

  bool is_terminal() const { return terminal_; }
  TerminalSize size() const { return terminal_size(to_); }
  void draw(const std::vector<std::string>& lines);
  void say(const std::string& line);

 private:
  std::FILE* to_;
  bool terminal_;
  std::size_t drawn_ = 0;  // lines
};

}  // namespace cautious::base
