// Merging: which two neighbours become one token, and which first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

struct Merge {
  Token left, right;
  Token made;
};

// The tokens of a piece before and between merges; reused from piece to piece by one thread.
class MergeBuffer {
 public:
  void add(Token token) {
    const auto index = static_cast<std::uint32_t>(parts_.size());
    if (index > 0) parts_.back().next = index;
    parts_.push_back({token, kNone, index - 1, kNone});  // kNone before the first
  }

 private:
  friend class Merges;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
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
  // Its rank is its position in the order of adding; false if the pair was there already.
  bool add(const Merge& merge);
  const std::vector<Merge>& in_order() const { return merges_; }

  // Of what was added to the buffer: the merge of lowest rank, the leftmost of equal ones, until none is left. Appends to
  // `out`, and empties the buffer.
  void apply(MergeBuffer& buffer, std::vector<Token>& out) const;

 private:
  static constexpr std::uint32_t kNone = MergeBuffer::kNone;
  std::uint32_t rank(Token left, Token right) const;
  void look_at(MergeBuffer& buffer, std::uint32_t part) const;
  void join(MergeBuffer& buffer, std::uint32_t part) const;
  std::size_t slot(Token left, Token right) const;
  void grow();

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> table_;  // open addressing: positions in merges_, kNone where free; at most half full
};

}  // namespace cautious::data
