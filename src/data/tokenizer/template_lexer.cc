// A chat template's tokens. Lines of statements alone leave no trace: the spaces before and the line's end behind go, as
// transformers sets it (lstrip_blocks, trim_blocks); a minus inside the braces takes all white space on its side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/template_syntax.h"

namespace cautious::data {
namespace {

constexpr std::string_view kBlank = " \t\n\r\v\f";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void add_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<unsigned, 4> kFirst{0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kFirst[static_cast<std::size_t>(tail)] | code >> (6 * tail));
  for (int i = tail - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

class TemplateLexer {
 public:
  TemplateLexer(std::string_view text, std::string where) : where_(std::move(where)) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
      source_ += text[i] == '\r' ? '\n' : text[i];
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<TemplateToken> tokens() {
    while (at_ < source_.size()) {
      const std::size_t begin = next_braces();
      if (begin == source_.npos) {
        add_text(source_.substr(at_));
        break;
      }
      outside(begin);
    }
    add({TemplateToken::Kind::end, "the end of the template"});
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    base::refuse_content(where_, fmt::format("line {}: {}", line_, what));
  }

  void move_to(std::size_t at) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    at_ = at;
  }

  void add(TemplateToken token) {
    token.line = line_;
    out_.push_back(std::move(token));
  }

  void add_text(std::string text) {
    if (!text.empty()) add({TemplateToken::Kind::text, std::move(text)});
  }

  std::string_view ahead(std::size_t size) const { return std::string_view(source_).substr(at_, size); }

  std::size_t next_braces() const {
    for (std::size_t at = source_.find('{', at_); at != source_.npos; at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() && std::string_view("{%#").find(source_[at + 1]) != std::string_view::npos) return at;
    }
    return source_.npos;
  }

  // Text up to braces, and what is in them.
  void outside(std::size_t begin) {
    const char kind = source_[begin + 1];
    const char sign = begin + 2 < source_.size() ? source_[begin + 2] : ' ';
    std::string text = source_.substr(at_, begin - at_);
    if (sign == '-') {
      text.resize(text.find_last_not_of(kBlank) + 1);
    } else if (sign != '+' && kind != '{') {
      const std::size_t line = text.rfind('\n') + 1;
      const bool starts = line > 0 || line_starts_;
      if (starts && text.find_first_not_of(kBlank, line) == text.npos) text.resize(line);
    }
    add_text(std::move(text));
    move_to(begin + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') {
      const std::size_t end = source_.find("#}", at_);
      if (end == source_.npos) fail("a comment {# without its end");
      move_to(end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? end - 1 : end);
      leave("#}", true);
    } else {
      add({TemplateToken::Kind::sign, kind == '%' ? "{%" : "{{"});
      inside(kind == '%' ? "%}" : "}}");
    }
  }

  // Behind closing braces, which may have a sign before them.
  void leave(std::string_view braces, bool takes_line) {
    const bool strips = source_[at_] == '-';
    const bool keeps = source_[at_] == '+';
    std::size_t end = at_ + braces.size() + (strips || keeps ? 1 : 0);
    if (strips) {
      end = std::min(source_.find_first_not_of(kBlank, end), source_.size());
    } else if (takes_line && !keeps && end < source_.size() && source_[end] == '\n') {
      ++end;
    }
    line_starts_ = source_[end - 1] == '\n';
    move_to(end);
  }

  bool at_end(std::string_view braces) const {
    if (ahead(2) == braces) return true;
    const std::string_view three = ahead(3);
    return three.ends_with(braces) && three.size() == 3 && (three[0] == '-' || (three[0] == '+' && braces == "%}"));
  }

  void inside(std::string_view braces) {
    std::string open;  // brackets
    for (;;) {
      move_to(std::min(source_.find_first_not_of(kBlank, at_), source_.size()));
      if (at_ == source_.size()) fail(fmt::format("no {} ends it", braces));
      if (open.empty() && at_end(braces)) break;
      const char c = source_[at_];
      if (is_name_start(c)) {
        add_name();
      } else if (is_digit(c)) {
        add_number();
      } else if (c == '"' || c == '\'') {
        add_quoted();
      } else {
        add_sign(open);
      }
    }
    add({TemplateToken::Kind::sign, std::string(braces)});
    leave(braces, braces == "%}");
  }

  void add_name() {
    std::size_t end = at_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    add({TemplateToken::Kind::name, source_.substr(at_, end - at_)});
    move_to(end);
  }

  void add_number() {
    const auto digits = [&](std::size_t from) {
      while (from < source_.size() && is_digit(source_[from])) ++from;
      return from;
    };
    const bool is_element = !out_.empty() && out_.back().kind == TemplateToken::Kind::sign && out_.back().text == ".";
    std::size_t end = digits(at_);
    const bool fraction = !is_element && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]);
    if (fraction) end = digits(end + 1);
    const std::string text = source_.substr(at_, end - at_);
    const auto whole = base::parsed<std::int64_t>(text);
    if (!fraction && !whole) fail(fmt::format("the number {} is too large", base::in_quotes(text)));
    add({TemplateToken::Kind::literal, text, fraction ? TemplateValue(*base::parsed<double>(text)) : TemplateValue(*whole)});
    move_to(end);
  }

  void add_quoted() {
    const char quote = source_[at_];
    std::string text;
    std::size_t at = at_ + 1;
    for (; at < source_.size() && source_[at] != quote; ++at) {
      if (source_[at] == '\\' && at + 1 < source_.size()) {
        at = escape(at + 1, text);
      } else {
        text += source_[at];
      }
    }
    if (at >= source_.size()) fail("a text without its closing quote");
    add({TemplateToken::Kind::literal, "a text", TemplateValue(std::move(text))});
    move_to(at + 1);
  }

  // Of the character behind a backslash; returns the position of the last one it takes.
  std::size_t escape(std::size_t at, std::string& text) const {
    constexpr std::string_view kLetters = "nrtbfav0\\'\"", kMeant("\n\r\t\b\f\a\v\0\\'\"", 11);
    const char c = source_[at];
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      std::uint32_t code = 0;
      const char* const first = source_.data() + at + 1;
      const char* const last = first + std::min(digits, source_.size() - at - 1);
      const auto [stop, fault] = std::from_chars(first, last, code, 16);
      if (fault != std::errc{} || stop != first + digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        fail(fmt::format("\\{} is not followed by the {} digits of a character", c, digits));
      add_utf8(text, code);
      return at + digits;
    }
    if (const std::size_t found = kLetters.find(c); found != kLetters.npos) {
      text += kMeant[found];
    } else if (c != '\n') {
      text += '\\';
      text += c;
    }
    return at;
  }

  void add_sign(std::string& open) {
    constexpr std::array<std::string_view, 5> kDouble{"==", "!=", "<=", ">=", "//"};
    constexpr std::string_view kSingle = "+-*/%~<>=.:,|()[]{}", kOpening = "([{", kClosing = ")]}";
    const std::string_view two = ahead(2);
    const std::size_t size = std::find(kDouble.begin(), kDouble.end(), two) != kDouble.end() ? 2 : 1;
    const char c = source_[at_];
    if (size == 1 && kSingle.find(c) == kSingle.npos) fail(fmt::format("{} is not understood", base::in_quotes(ahead(1))));
    if (kOpening.find(c) != kOpening.npos) open += c;
    if (const std::size_t closing = kClosing.find(c); closing != kClosing.npos) {
      if (open.empty() || open.back() != kOpening[closing]) fail(fmt::format("a '{}' that nothing opened", c));
      open.pop_back();
    }
    add({TemplateToken::Kind::sign, std::string(ahead(size))});
    move_to(at_ + size);
  }

  std::string where_, source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
  std::vector<TemplateToken> out_;
};

}  // namespace

std::vector<TemplateToken> template_tokens(std::string_view text, const std::string& where) {
  return TemplateLexer(text, where).tokens();
}

}  // namespace cautious::data
