// A redrawn line is one write of "\r", the line cut to the terminal, and "erase to the end"; no colour anywhere.
#include "base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include <cautious/error.h>

namespace cautious::base {
namespace {

constexpr double kRedrawSeconds = 0.1;

void put(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

// Over whatever is in the line.
std::string redrawn(std::string_view line, std::size_t width) { return fmt::format("\r{}\x1b[K", cut(line, width - 1)); }

}  // namespace

bool try_print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

void print(std::string_view text) {
  if (try_print(text)) return;
  if (errno == EPIPE) {  // whoever reads has enough, as in `| head`
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw Error(Fault::failure, "cannot write to standard output");
}

void tell(std::string_view text) { put(stderr, text); }

bool redrawable(std::FILE* stream) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(::fileno(stream)) == 1 && !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

TerminalSize terminal_size(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0;
  return {known && size.ws_col > 1 ? size.ws_col : 80UL, known && size.ws_row > 1 ? size.ws_row : 24UL};
}

std::string_view cut(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && ++count > most) break;
  return text.substr(0, end);
}

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

void LiveLine::show(std::int64_t done, std::int64_t total, const std::string& text) {
  const double percent = total > 0 ? 100 * static_cast<double>(done) / static_cast<double>(total) : 100;
  show(fmt::format("step {}/{} {:3.0f}%", done, total, std::floor(percent)), static_cast<double>(done - begun_),
       static_cast<double>(total - done), text);
}

void LiveLine::show_fraction(double fraction, const std::string& text) {
  show(fmt::format("{:3.0f}%", std::floor(100 * fraction)), fraction, 1 - fraction, text);
}

void LiveLine::show(const std::string& position, double worked, double left, const std::string& text) {
  if (style_ == Style::quiet) return;
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - start_).count();
  line_ = fmt::format("{}  {}{}{} < {}", position, text, text.empty() ? "" : "  ", clock_text(passed),
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
  put(to_, terminal_ ? redrawn(line_, terminal_size(to_).width) : line_ + "\n");
  printed_ = true;
}

void LiveLine::say(const std::string& line) {
  if (style_ == Style::quiet) return;
  put(to_, fmt::format("{}{}\n", terminal_ && !line_.empty() ? redrawn("", 1) : "", line));
  if (terminal_ && !line_.empty()) print();
}

void LiveLine::finish() {
  if (line_.empty()) return;
  if (!printed_) print();
  if (terminal_) put(to_, "\n");
  line_.clear();
  last_ = {};
}

void LiveTable::draw(const std::vector<std::string>& lines) {
  std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  for (const std::string& line : lines) text += redrawn(line, size().width) + "\n";
  put(to_, text + "\x1b[J");
  drawn_ = lines.size();
}

void LiveTable::say(const std::string& line) { put(to_, line + "\n"); }

}  // namespace cautious::base
