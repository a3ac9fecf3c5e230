#include "data/tokenizer/bpe_pairs.h"

#include <algorithm>

namespace cautious::data {
namespace {

std::uint64_t key_of(Token left, Token right) { return static_cast<std::uint64_t>(left) << 32 | right; }

}  // namespace

Pairs::Pairs(const PieceCounts& counts) {
  for (const auto& [piece, times] : counts) {
    if (piece.size() < 2) continue;
    const auto word = static_cast<std::uint32_t>(words_.size());
    words_.push_back({tokens_.size(), piece.size(), times});
    for (const char c : piece) tokens_.push_back(static_cast<unsigned char>(c));
    const Token* const token = tokens_.data() + words_.back().first;
    for (std::size_t i = 0; i + 1 < piece.size(); ++i) occurs(key_of(token[i], token[i + 1]), word);
  }
  for (const auto& [key, pair] : pairs_) candidates_.push({pair.times, key});
}

void Pairs::occurs(Key key, std::uint32_t word) {
  Pair& pair = pairs_[key];
  pair.times += words_[word].times;
  if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
}

std::optional<std::pair<Token, Token>> Pairs::most_frequent() {
  while (!candidates_.empty()) {
    const Candidate first = candidates_.top();
    const auto found = pairs_.find(first.key);
    const std::int64_t times = found == pairs_.end() ? 0 : found->second.times;
    if (times == first.times) return std::pair(static_cast<Token>(first.key >> 32), static_cast<Token>(first.key));
    candidates_.pop();
    if (times > 0) candidates_.push({times, first.key});
  }
  return std::nullopt;
}

void Pairs::merge(std::pair<Token, Token> pair, Token made) {
  const auto found = pairs_.extract(key_of(pair.first, pair.second));
  if (found.empty()) return;
  fresh_.clear();
  for (const std::uint32_t word : found.mapped().words) merge_in(word, pair, made);
  pairs_.erase(found.key());  // pieces like "aaa" have just counted it down
  std::sort(fresh_.begin(), fresh_.end());
  fresh_.erase(std::unique(fresh_.begin(), fresh_.end()), fresh_.end());
  for (const Key key : fresh_) {
    if (const std::int64_t times = pairs_[key].times; times > 0) candidates_.push({times, key});
  }
}

void Pairs::merge_in(std::uint32_t index, std::pair<Token, Token> pair, Token made) {
  Word& word = words_[index];
  Token* const token = tokens_.data() + word.first;
  const auto replace = [&](Key old, Key now) {
    pairs_[old].times -= word.times;
    occurs(now, index);
    fresh_.push_back(now);
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < word.size; ++i) {
    if (i + 1 == word.size || token[i] != pair.first || token[i + 1] != pair.second) {
      token[kept++] = token[i];
      continue;
    }
    if (kept > 0) replace(key_of(token[kept - 1], pair.first), key_of(token[kept - 1], made));
    ++i;
    if (i + 1 < word.size) replace(key_of(pair.second, token[i + 1]), key_of(made, token[i + 1]));
    token[kept++] = made;
  }
  word.size = kept;
}

}  // namespace cautious::data
