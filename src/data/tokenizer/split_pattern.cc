// PCRE2 with JIT. \s means the property White_Space, as in Rust and Oniguruma; PCRE2's own \s has U+180E too.
#include "data/tokenizer/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <new>

#include <cautious/error.h>

#include "base/text.h"
#include "base/utf8_stream.h"

namespace cautious::data {

const std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string_view kCl100kPattern =
    R"('(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s+(?!\s|\S)|\s*[\r\n]|\s+(?!\S)|\s)";
const std::string_view kO200kPattern = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                       R"((?:'(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]))?)"
                                       R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                       R"((?:'(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]))?)"
                                       R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kDigitPattern = R"(\p{N})";
const std::string_view kDigitsPattern = R"(\p{N}+)";

namespace {

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;

std::string with_white_space(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == "\\s") {
      out += R"(\p{wspace})";
    } else if (two == "\\S") {
      out += R"(\P{wspace})";
    } else {
      out += pattern[i] == '\\' ? two : two.substr(0, 1);
    }
    if (pattern[i] == '\\') ++i;
  }
  return out;
}

std::string words_for(int error) {
  std::array<PCRE2_UCHAR, 256> words{};
  pcre2_get_error_message(error, words.data(), words.size());
  return reinterpret_cast<const char*>(words.data());
}

bool has(std::string_view line, std::initializer_list<std::string_view> lines) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

bool ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && base::utf8_character(text.substr(i)) == 0) ++i;
  return i;
}

}  // namespace

std::size_t valid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t bytes = base::utf8_character(text.substr(i));
    if (bytes == 0) break;
    i += bytes;
  }
  return i;
}

struct SplitPattern::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;

  explicit Compiled(std::string_view text) {
    const std::string pattern = with_white_space(text);
    int error = 0;
    PCRE2_SIZE where = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                         PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &where, nullptr);
    if (code == nullptr)
      throw Error(Fault::data, fmt::format("cannot use the split pattern {}: {}", base::in_quotes(text), words_for(error)));
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, matching interprets
    context = pcre2_match_context_create(nullptr);
    if (context == nullptr) {
      pcre2_code_free(code);
      throw std::bad_alloc();
    }
    // A pattern out of a file may backtrack once per byte of a long run; that is no reason to stop.
    pcre2_set_match_limit(context, std::numeric_limits<std::uint32_t>::max());
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

// One text on its way through the patterns.
class SplitPattern::Splitting {
 public:
  Splitting(const std::vector<std::unique_ptr<const Compiled>>& steps, const Each& each) : steps_(steps), each_(each) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      matches_.emplace_back(pcre2_match_data_create(1, nullptr));
      if (!matches_.back()) throw std::bad_alloc();
    }
  }

  // Of valid UTF-8, from that step on.
  void split(std::string_view text, std::size_t step) const {
    if (step + 1 == steps_.size()) {
      split(text, step, each_);
    } else {
      split(text, step, [&](std::string_view piece) { split(piece, step + 1); });
    }
  }

 private:
  void split(std::string_view text, std::size_t step, const Each& each) const {
    const Compiled& pattern = *steps_[step];
    pcre2_match_data* const data = matches_[step].get();
    const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(data);
    std::size_t at = 0;
    while (at < text.size()) {
      const int result = pcre2_match(pattern.code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                     PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, pattern.context);
      if (result == PCRE2_ERROR_NOMATCH) break;
      if (result < 0) throw Error(Fault::failure, fmt::format("cannot split the text at byte {}: {}", at, words_for(result)));
      const std::size_t begin = found[0], end = found[1];
      if (begin > at) each(text.substr(at, begin - at));
      each(text.substr(begin, end - begin));
      at = end;
    }
    if (at < text.size()) each(text.substr(at));
  }

  const std::vector<std::unique_ptr<const Compiled>>& steps_;
  const Each& each_;
  std::vector<Match> matches_;
};

SplitPattern::SplitPattern(std::string text) : text_(std::move(text)) {
  if (text_.empty()) return;
  bool all_known = true;
  for (std::size_t at = 0; at <= text_.size();) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view line = std::string_view(text_).substr(at, end - at);
    const bool cuts = has(line, {kGpt2Pattern, kCl100kPattern, kO200kPattern, kLlama3Pattern, kQwen2Pattern});
    cuts_between_words_ |= cuts;
    all_known &= cuts || has(line, {kDigitPattern, kDigitsPattern});
    steps_.push_back(std::make_unique<const Compiled>(line));
    at = end + 1;
  }
  cuts_between_words_ &= all_known;
}

SplitPattern::~SplitPattern() = default;

void SplitPattern::each_piece(std::string_view text, const Each& each) const {
  if (steps_.empty()) {
    if (!text.empty()) each(text);
    return;
  }
  const Splitting splitting(steps_, each);
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8(text));
    splitting.split(valid, 0);
    text.remove_prefix(valid.size());
    const std::string_view invalid = text.substr(0, invalid_utf8(text));
    if (!invalid.empty()) each(invalid);
    text.remove_prefix(invalid.size());
  }
}

std::vector<std::string_view> SplitPattern::parts(std::string_view text, std::size_t size) const {
  std::vector<std::string_view> out;
  do {
    out.push_back(text.substr(0, part_end(text, size)));
    text.remove_prefix(out.back().size());
  } while (!text.empty());
  return out;
}

std::size_t SplitPattern::part_end(std::string_view text, std::size_t size) const {
  if (!cuts_between_words_) return text.size();
  std::size_t cut = std::max<std::size_t>(size, 1);
  const auto safe = [&] { return ascii_letter(text[cut - 1]) && text[cut] == ' ' && ascii_letter(text[cut + 1]); };
  while (cut + 1 < text.size() && !safe()) ++cut;
  return cut + 1 < text.size() ? cut : text.size();
}

}  // namespace cautious::data
