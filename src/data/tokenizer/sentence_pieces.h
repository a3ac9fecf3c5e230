// Sentence pieces: a BPE over the characters of a text, in which U+2581 stands for a space and a character without a token is
// spelled in bytes (Llama, Mistral, Gemma). There is no split pattern: merges see the whole text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/merges.h"

namespace cautious::data {

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

// Before which of the stretches between added tokens a space is put.
enum class SpacePrefix {
  none,
  all,
  missing,  // all that do not begin with one
  first,    // the one that the text begins with, if it does not begin with a space
};

// "<0x0A>" and spaces as themselves are how the files write bytes and spaces.
std::string name_of_byte(unsigned byte);
std::string with_spaces(std::string_view piece);  // for U+2581
std::string with_marks(std::string_view bytes);   // and back

class SentencePieces {
 public:
  explicit SentencePieces(SpacePrefix prefix) : prefix_(prefix) {}

  SpacePrefix prefix() const { return prefix_; }
  // A token of one character; that of U+2581 is the space's.
  void add(std::string_view character, Token id);
  // Of merges that make no token with a space behind something else.
  void cut_before_spaces() { cuts_ = true; }

  bool prefixes(std::string_view stretch, bool first) const;
  // The tokens of a piece before any merge; `bytes` spell what has none, and what is not UTF-8.
  void begin(std::string_view piece, const std::array<Token, 256>& bytes, MergeBuffer& buffer) const;
  // Pieces that no merge reaches out of, in order: one per word, or the whole. Parts of about `size` bytes consist of such.
  void each_piece(std::string_view text, bool prefixed, const std::function<void(std::string_view piece)>& each) const;
  std::vector<std::string_view> parts(std::string_view text, std::size_t size) const;
  std::size_t part_end(std::string_view text, std::size_t size) const;  // of the first

 private:
  std::size_t cut(std::string_view text, std::size_t from) const;

  SpacePrefix prefix_;
  bool cuts_ = false;
  std::unordered_map<std::uint32_t, Token> characters_;  // by the bytes of UTF-8 as a number
};

}  // namespace cautious::data
