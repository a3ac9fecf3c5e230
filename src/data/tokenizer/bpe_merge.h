// The merges of a byte-level BPE: which two neighbours become one token, and which first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

struct Merge {
  Token left, right;
  Token made;
};

// Reused from piece to piece by one thread.
class MergeBuffer {
 private:
  friend class Merges;
  struct Part {
    Token token;
    std::uint32_t rank;            // of the merge with the next part; kNone if there is none, or the part is gone
    std::uint32_t previous, next;  // kNone at the ends
  };
  struct Candidate {
    std::uint32_t rank, part;
  };
  std::vector<Part> parts_;
  std::vector<Candidate> heap_;
};

class Merges {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // Its rank is its place in the order of adding; false if the pair was there already.
  bool add(const Merge& merge);
  const std::vector<Merge>& in_order() const { return merges_; }

  // The tokens of one piece: its bytes as `bytes` names them, then the merge of lowest rank, the leftmost of equal ones, until
  // none is left. Appends to `out`.
  void apply(std::string_view piece, const std::array<Token, 256>& bytes, MergeBuffer& buffer, std::vector<Token>& out) const;

 private:
  std::uint32_t rank(Token left, Token right) const;
  void look_at(MergeBuffer& buffer, std::uint32_t part) const;
  void join(MergeBuffer& buffer, std::uint32_t part) const;
  std::size_t slot(Token left, Token right) const;
  void grow();

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> table_;  // open addressing: places in merges_, kNone where free; at most half full
};

// What frequent pieces became, of one thread: each place holds the last short piece whose hash led there.
class PieceCache {
 public:
  PieceCache();
  // Nothing if the piece is not there; no piece has no tokens.
  std::span<const Token> find(std::string_view piece) const;
  void keep(std::string_view piece, std::span<const Token> tokens);

 private:
  static constexpr std::size_t kLongest = 22, kMostTokens = 10;
  struct Entry {
    std::uint8_t bytes = 0, tokens = 0;
    std::array<char, kLongest> piece;
    std::array<Token, kMostTokens> token;
  };
  static std::size_t place_of(std::string_view piece);
  std::vector<Entry> entries_;
};

}  // namespace cautious::data
