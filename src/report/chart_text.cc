#include "report/chart_text.h"

#include <sstream>

namespace cautious::report {
namespace {

bool continues_character(char c) { return (c & 0xC0) == 0x80; }

// In font sizes.
double width_of(char c) {
  const auto one_of = [c](std::string_view set) { return set.find(c) != std::string_view::npos; };
  if (continues_character(c)) return 0;
  if (one_of("fijlrtI|,.:;!'()[]/- ")) return 0.43;
  if (one_of("mwMW%@")) return 1.02;
  return c >= 'A' && c <= 'Z' ? 0.77 : 0.68;
}

// Cuts a word into pieces that fit.
std::vector<std::string> pieces(const std::string& word, double font_size, double width) {
  std::vector<std::string> parts(1);
  double used = 0;
  for (const char c : word) {
    const double more = width_of(c) * font_size;
    if (used + more > width && !parts.back().empty() && !continues_character(c)) {
      parts.emplace_back();
      used = 0;
    }
    parts.back() += c;
    used += more;
  }
  return parts;
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  double width = 0;
  for (const char c : text) width += width_of(c);
  return width * font_size;
}

std::vector<std::string> wrapped(std::string_view text, double font_size, double width) {
  std::vector<std::string> lines(1);
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    for (const std::string& piece : pieces(word, font_size, width)) {
      std::string& line = lines.back();
      const std::string longer = line + (line.empty() ? "" : " ") + piece;
      if (line.empty() || text_width(longer, font_size) <= width) {
        line = longer;
      } else {
        lines.push_back(piece);
      }
    }
  }
  return lines;
}

}  // namespace cautious::report
