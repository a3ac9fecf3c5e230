// PCRE2 with JIT. \s means the property White_Space, as in Rust and Oniguruma; PCRE2's own \s has U+180E too.
#include "data/tokenizer/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
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
  bool cuts_between_words = false;
  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

SplitPattern::SplitPattern(std::string text) : text_(std::move(text)) {
  if (text_.empty()) return;
  auto compiled = std::make_unique<Compiled>();
  const std::string pattern = with_white_space(text_);
  int error = 0;
  PCRE2_SIZE where = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &where, nullptr);
  if (compiled->code == nullptr)
    throw Error(Fault::data, fmt::format("cannot use the split pattern {}: {}", base::in_quotes(text_), words_for(error)));
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // where there is no JIT, matching interprets
  compiled->context = pcre2_match_context_create(nullptr);
  if (compiled->context == nullptr) throw std::bad_alloc();
  // A pattern out of a file may backtrack once per byte of a long run; that is no reason to stop.
  pcre2_set_match_limit(compiled->context, std::numeric_limits<std::uint32_t>::max());
  compiled->cuts_between_words = text_ == kGpt2Pattern || text_ == kCl100kPattern || text_ == kO200kPattern;
  compiled_ = std::move(compiled);
}

SplitPattern::~SplitPattern() = default;

void SplitPattern::split_valid(std::string_view text, void* match, const std::function<void(std::string_view)>& each) const {
  auto* const data = static_cast<pcre2_match_data*>(match);
  const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(data);
  std::size_t at = 0;
  while (at < text.size()) {
    const int result = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                   PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data, compiled_->context);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) throw Error(Fault::failure, fmt::format("cannot split the text at byte {}: {}", at, words_for(result)));
    if (found[0] > at) each(text.substr(at, found[0] - at));
    each(text.substr(found[0], found[1] - found[0]));
    at = found[1];
  }
  if (at < text.size()) each(text.substr(at));
}

void SplitPattern::each_piece(std::string_view text, const std::function<void(std::string_view)>& each) const {
  if (!compiled_) {
    if (!text.empty()) each(text);
    return;
  }
  const Match match(pcre2_match_data_create(1, nullptr));
  if (!match) throw std::bad_alloc();
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8(text));
    split_valid(valid, match.get(), each);
    text.remove_prefix(valid.size());
    const std::string_view invalid = text.substr(0, invalid_utf8(text));
    if (!invalid.empty()) each(invalid);
    text.remove_prefix(invalid.size());
  }
}

std::vector<std::string_view> SplitPattern::parts(std::string_view text, std::size_t size) const {
  if (!compiled_ || !compiled_->cuts_between_words) return {text};
  std::vector<std::string_view> out;
  while (text.size() > size) {
    std::size_t cut = std::max<std::size_t>(size, 1);
    const auto safe = [&] { return ascii_letter(text[cut - 1]) && text[cut] == ' ' && ascii_letter(text[cut + 1]); };
    while (cut + 1 < text.size() && !safe()) ++cut;
    if (cut + 1 >= text.size()) break;
    out.push_back(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  out.push_back(text);
  return out;
}

}  // namespace cautious::data
