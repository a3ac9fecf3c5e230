// How often each piece of text (split_pattern.h) occurs in the files; then which pair of neighbouring tokens within the pieces
// is the most frequent, kept up to date as pairs become tokens.
#include "data/tokenizer/bpe_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <cautious/error.h>

#include "base/parallel.h"
#include "base/text.h"
#include "data/documents.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using PieceCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

class PieceCounter {
 public:
  PieceCounter(std::string_view pattern, int threads);

  // A document, or a window of one that ends by cut(); no piece reaches from one to the next. Small ones are kept until there
  // is work for every thread.
  void add(std::string_view text);
  // As Tokenizer::cut.
  std::size_t cut(std::string_view text) const;
  PieceCounts take();

 private:
  void count(const std::vector<std::string_view>& texts);
  void count_kept();

  SplitPattern pattern_;
  std::vector<PieceCounts> counts_;  // one for each thread
  std::vector<std::string> kept_;
  std::size_t kept_bytes_ = 0;
};

constexpr std::size_t kCounted = 256 * 1024;    // bytes that a thread takes at a time
constexpr std::size_t kKept = 8 * 1024 * 1024;  // bytes of small documents that are counted together
// Every merge walks through the pieces it changes, so one endless piece would make all merges slow; it counts as several.
constexpr std::size_t kLongestPiece = 1024;

void add_piece(PieceCounts& counts, std::string_view piece) {
  for (; !piece.empty(); piece.remove_prefix(std::min(kLongestPiece, piece.size()))) {
    const std::string_view part = piece.substr(0, kLongestPiece);
    const auto found = counts.find(part);
    if (found == counts.end()) {
      counts.emplace(part, 1);
    } else {
      ++found->second;
    }
  }
}

PieceCounter::PieceCounter(std::string_view pattern, int threads)
    : pattern_(std::string(pattern)), counts_(static_cast<std::size_t>(std::max(threads, 1))) {}

void PieceCounter::count(const std::vector<std::string_view>& texts) {
  std::vector<std::string_view> parts;
  for (const std::string_view text : texts) {
    const auto some = pattern_.parts(text, kCounted);
    parts.insert(parts.end(), some.begin(), some.end());
  }
  std::atomic<std::size_t> next = 0;
  const std::size_t workers = std::min(counts_.size(), parts.size());
  base::parallel_for(workers, static_cast<int>(std::max<std::size_t>(workers, 1)), [&](std::size_t worker) {
    for (std::size_t i = next++; i < parts.size(); i = next++)
      pattern_.each_piece(parts[i], [&](std::string_view piece) { add_piece(counts_[worker], piece); });
  });
}

void PieceCounter::count_kept() {
  count({kept_.begin(), kept_.end()});
  kept_.clear();
  kept_bytes_ = 0;
}

void PieceCounter::add(std::string_view text) {
  if (text.size() >= kKept) return count({text});
  kept_.emplace_back(text);
  kept_bytes_ += text.size();
  if (kept_bytes_ >= kKept) count_kept();
}

std::size_t PieceCounter::cut(std::string_view text) const {
  const std::size_t end = pattern_.part_end(text, text.size() / 2);
  return end < text.size() ? end : 0;
}

PieceCounts PieceCounter::take() {
  count_kept();
  PieceCounts all = std::move(counts_[0]);
  for (std::size_t i = 1; i < counts_.size(); ++i) {
    for (const auto& [piece, times] : counts_[i]) all[piece] += times;
  }
  counts_.assign(counts_.size(), {});
  return all;
}

class Pairs {
 public:
  // Tokens are the bytes at first, under their own values as ids.
  explicit Pairs(const PieceCounts& counts);

  // The most frequent pair, of equally frequent ones that of the smaller ids; nothing if every piece is one token.
  std::optional<std::pair<Token, Token>> most_frequent();
  // Replaces the pair by one token wherever it occurs, from the left of each piece. `made` is an id not yet in use.
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

std::uint64_t pair_key(Token left, Token right) { return static_cast<std::uint64_t>(left) << 32 | right; }

Pairs::Pairs(const PieceCounts& counts) {
  for (const auto& [piece, times] : counts) {
    if (piece.size() < 2) continue;
    const auto word = static_cast<std::uint32_t>(words_.size());
    words_.push_back({tokens_.size(), piece.size(), times});
    for (const char c : piece) tokens_.push_back(static_cast<unsigned char>(c));
    const Token* const token = tokens_.data() + words_.back().first;
    for (std::size_t i = 0; i + 1 < piece.size(); ++i) occurs(pair_key(token[i], token[i + 1]), word);
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
  const auto found = pairs_.extract(pair_key(pair.first, pair.second));
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
    if (kept > 0) replace(pair_key(token[kept - 1], pair.first), pair_key(token[kept - 1], made));
    ++i;
    if (i + 1 < word.size) replace(pair_key(pair.second, token[i + 1]), pair_key(made, token[i + 1]));
    token[kept++] = made;
  }
  word.size = kept;
}

constexpr Token kByteTokens = 256;

using BpeProgress = std::function<void(const char* stage, double done)>;

PieceCounts count_pieces(const std::vector<std::filesystem::path>& files, const BpeTraining& training,
                         const BpeProgress& progress) {
  double all = 0, done = 0;
  for (const auto& file : files) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(file, ignored);
    if (!ignored) all += static_cast<double>(size);
  }
  PieceCounter counter(kGpt2Pattern, training.threads);
  for (const auto& file : files) {
    const auto cut = [&](std::string_view text) { return counter.cut(text); };
    each_window(file, training.reading, cut, [&](const Window& window) {
      counter.add(window.text);
      done += static_cast<double>(window.text.size());
      progress("counting", all > 0 ? std::min(done / all, 1.0) : 1.0);  // text may be longer than its compressed file
    });
  }
  return counter.take();
}

void require_right(const std::optional<std::string>& wrong) {
  if (wrong) throw Error(Fault::failure, "training the tokenizer failed: " + *wrong);
}

}  // namespace

Tokenizer train_bpe(const std::vector<std::filesystem::path>& files, const BpeTraining& training, const BpeProgress& progress) {
  base::check_range("vocab", static_cast<double>(training.vocab), kBpeVocab);
  Pairs pairs(count_pieces(files, training, progress));
  TokenizerBuilder builder{std::string(kGpt2Pattern)};
  std::vector<std::string> tokens;
  const auto add = [&](std::string bytes) {
    require_right(builder.add_token(static_cast<std::int64_t>(tokens.size()), bytes));
    tokens.push_back(std::move(bytes));
  };
  for (Token byte = 0; byte < kByteTokens; ++byte) add(std::string(1, static_cast<char>(byte)));
  require_right(builder.find_bytes());

  const std::int64_t merges = training.vocab - kByteTokens - 1;
  for (std::int64_t i = 0; i < merges; ++i) {
    const auto pair = pairs.most_frequent();
    if (!pair) {
      throw Error(Fault::data,
                  fmt::format("the text has pairs for {} merges, too few for a vocab of {}; the largest possible is {}", i,
                              training.vocab, i + kByteTokens + 1));
    }
    const auto made = static_cast<Token>(tokens.size());
    add(tokens[pair->first] + tokens[pair->second]);
    require_right(builder.add_merge(tokens[pair->first], tokens[pair->second]));
    pairs.merge(*pair, made);
    progress("merging", static_cast<double>(i + 1) / static_cast<double>(merges));
  }
  require_right(builder.add_special(training.vocab - 1, std::string(kDocumentEnd)));
  return builder.build();
}

}  // namespace cautious::data
