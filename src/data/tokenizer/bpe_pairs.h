// Pairs of neighbouring tokens within the pieces of a corpus: how often each occurs, kept up to date as pairs become tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tokenizer/piece_counts.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

class Pairs {
 public:
  // Tokens are the bytes at first, under their own values as ids.
  explicit Pairs(const PieceCounts& counts);

  // The most frequent pair, of equally frequent ones that of the smaller ids; nothing if every piece is one token.
  std::optional<std::pair<Token, Token>> most_frequent();
  // Replaces the pair by one token wherever it stands, from the left of each piece. `made` is an id not yet in use.
  void merge(std::pair<Token, Token> pair, Token made);

 private:
  using Key = std::uint64_t;  // the smaller ids, the smaller key
  struct Word {
    std::size_t first, size;  // in tokens_
    std::int64_t times;
  };
  struct Pair {
    std::int64_t times = 0;
    std::vector<std::uint32_t> words;  // all that have it; also some that had it
  };
  struct Candidate {
    std::int64_t times;
    Key key;
    bool operator<(const Candidate& other) const { return times != other.times ? times < other.times : key > other.key; }
  };

  void occurs(Key key, std::uint32_t word);
  void merge_in(std::uint32_t word, std::pair<Token, Token> pair, Token made);

  std::vector<Token> tokens_;
  std::vector<Word> words_;
  std::unordered_map<Key, Pair> pairs_;
  std::vector<Key> fresh_;  // pairs with the token that is being made
  // Every pair is here with at least its count: counts only fall once the pair's younger token has been made.
  std::priority_queue<Candidate> candidates_;
};

}  // namespace cautious::data
