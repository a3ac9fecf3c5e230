// The pattern by which a tokenizer cuts text into pieces before it merges; no token reaches over the edge of a piece.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

// Published patterns, written so that PCRE2, Oniguruma, Rust and JavaScript read them alike: no (?i:), no $.
extern const std::string_view kGpt2Pattern;    // GPT-2, r50k_base, p50k_base, and what we train
extern const std::string_view kCl100kPattern;  // cl100k_base
extern const std::string_view kO200kPattern;   // o200k_base
// As the files of others write them.
extern const std::string_view kLlama3Pattern;
extern const std::string_view kQwen2Pattern;
extern const std::string_view kDigitPattern;   // every digit alone
extern const std::string_view kDigitsPattern;  // digits together

// May be used by several threads at once.
class SplitPattern {
 public:
  // No text: every stretch of text is one piece. Several lines are as many patterns: each cuts the pieces of the one before, as
  // if each piece were a text. A pattern that PCRE2 cannot compile is an Error(Fault::data).
  explicit SplitPattern(std::string text);
  ~SplitPattern();

  const std::string& text() const { return text_; }

  // Calls `each` with every piece, in order; they cover the text. What matches nothing is a piece, and so is a run of bytes
  // that is not UTF-8; text on either side of such a run is cut as if it stood alone.
  void each_piece(std::string_view text, const std::function<void(std::string_view piece)>& each) const;

  // Parts of about `size` bytes whose pieces, one part after the other, are the pieces of the whole: one part only if one of
  // the patterns is none of the above. Between two ASCII letters that a space divides all but the last two cut, before the
  // space, and those do not care.
  std::vector<std::string_view> parts(std::string_view text, std::size_t size) const;
  // Where the first of them ends; the text's end if there is one only.
  std::size_t part_end(std::string_view text, std::size_t size) const;

 private:
  struct Compiled;
  using Each = std::function<void(std::string_view)>;
  class Splitting;

  std::string text_;
  std::vector<std::unique_ptr<const Compiled>> steps_;
  bool cuts_between_words_ = false;
};

// Bytes of the longest beginning that is UTF-8.
std::size_t valid_utf8(std::string_view text);

}  // namespace cautious::data
