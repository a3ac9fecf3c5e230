// How often each piece of text (split_pattern.h) occurs in a corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/split_pattern.h"

namespace cautious::data {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using PieceCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

class PieceCounter {
 public:
  PieceCounter(std::string_view pattern, int threads);

  // A document; no piece reaches from one to the next. Small ones are kept until there is work for every thread.
  void add(std::string_view text);
  PieceCounts take();

 private:
  void count(const std::vector<std::string_view>& texts);
  void count_kept();

  SplitPattern pattern_;
  std::vector<PieceCounts> counts_;  // one for each thread
  std::vector<std::string> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace cautious::data
