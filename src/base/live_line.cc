// A redrawn line is one write of "\r", the line cut to the terminal, and "erase to the end"; no colour anywhere.
#include "base/live_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace cautious::base {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr std::string_view kErase = "\r\x1b[K";

bool redrawable(std::FILE* to) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(::fileno(to)) == 1 && !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

std::size_t width_of(std::FILE* to) {
  winsize size{};
  return ::ioctl(::fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

// The first `most` characters of UTF-8 text.
std::string_view cut(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && ++count > most) break;
  return text.substr(0, end);
}

void put(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

}  // namespace

std::string clock_text(double seconds) {
  constexpr double kLongest = 1e10;  // three centuries
  if (!(seconds < kLongest)) return "?";
  const auto all = std::llround(std::max(seconds, 0.0));
  const auto minutes = all / 60, hours = all / 3600, days = all / 86400;
  if (days > 0) return fmt::format("{} d {} h", days, hours % 24);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes % 60, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

std::string count_text(double count) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "k", "M", "B", "T"};
  std::size_t unit = 0;
  // From 999.5 on, three digits are those of the next unit.
  for (; std::isfinite(count) && std::abs(count) >= 999.5 && unit + 1 < kUnits.size(); ++unit) count /= 1000;
  return fmt::format("{:.3g}{}", count, kUnits[unit]);
}

LiveLine::LiveLine(Style style, double plain_seconds, std::FILE* to)
    : style_(style), terminal_(redrawable(to)), plain_seconds_(plain_seconds), to_(to) {}

LiveLine::~LiveLine() { finish(); }

void LiveLine::begin_at(std::int64_t done) {
  begun_ = done;
  start_ = Clock::now();
}

void LiveLine::show(std::int64_t done, std::int64_t total, const std::string& words) {
  const double percent = total > 0 ? 100 * static_cast<double>(done) / static_cast<double>(total) : 100;
  show(fmt::format("step {}/{} {:3.0f}%", done, total, std::floor(percent)), static_cast<double>(done - begun_),
       static_cast<double>(total - done), words);
}

void LiveLine::show_part(double part, const std::string& words) {
  show(fmt::format("{:3.0f}%", std::floor(100 * part)), part, 1 - part, words);
}

void LiveLine::show(const std::string& position, double worked, double left, const std::string& words) {
  if (style_ == Style::quiet) return;
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - start_).count();
  line_ = fmt::format("{}  {}{}{} < {}", position, words, words.empty() ? "" : "  ", clock_text(passed),
                      worked > 0 ? clock_text(passed / worked * left)
                      : left > 0 ? "?"
                                 : "0:00");
  printed_ = false;
  const bool first = last_ == Clock::time_point{};
  if (!first && std::chrono::duration<double>(now - last_).count() < (terminal_ ? kRedrawSeconds : plain_seconds_)) return;
  last_ = now;
  print();
}

void LiveLine::print() {
  put(to_, terminal_ ? fmt::format("\r{}\x1b[K", cut(line_, width_of(to_) - 1)) : line_ + "\n");
  printed_ = true;
}

void LiveLine::say(const std::string& line) {
  if (style_ == Style::quiet) return;
  put(to_, fmt::format("{}{}\n", terminal_ && !line_.empty() ? kErase : "", line));
  if (terminal_ && !line_.empty()) print();
}

void LiveLine::finish() {
  if (line_.empty()) return;
  if (!printed_) print();
  if (terminal_) put(to_, "\n");
  line_.clear();
  last_ = {};
}

}  // namespace cautious::base
