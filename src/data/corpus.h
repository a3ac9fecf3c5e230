// The data of a run: a training stream and a validation stream, from text files, JSONL, token shards, folders of these, or the
// name of a known set (catalog.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokens.h"

namespace cautious::data {

// Tokens [first, last) of each of a few files, one after the other.
class Stream {
 public:
  struct Piece {
    std::shared_ptr<const Tokens> tokens;
    std::int64_t first = 0, last = 0;
  };
  explicit Stream(std::vector<Piece> pieces);

  std::int64_t size() const { return size_; }
  Token largest() const;
  // Of the size and some thousand tokens all over the stream: another text has another one, but for chance. Not negative.
  std::int64_t fingerprint() const;
  // tokens[i] = stream[first + i], target[i] = stream[first + i + 1], or -1 where that one begins another document or file.
  // Both have the same length n; first + n + 1 <= size().
  void copy(std::int64_t first, std::span<std::int64_t> tokens, std::span<std::int64_t> target) const;

 private:
  std::size_t piece_at(std::int64_t place) const;
  void read(std::int64_t place, std::span<std::int64_t> out) const;
  void mask_beginnings(std::int64_t first, std::span<std::int64_t> target) const;  // with -1

  std::vector<Piece> pieces_;
  std::vector<std::int64_t> starts_;  // of the pieces in the stream
  std::int64_t size_ = 0;
};

struct CorpusSpec {
  std::vector<std::string> path;      // files, folders, or one name of a known set
  std::vector<std::string> val_path;  // empty: a part of path
  double val_fraction = 0.05;         // of the tokens, the last ones
  std::filesystem::path cache;        // where tokenized text is kept; made if needed
  int threads = 1;
};

struct Corpus {
  Stream train, validation;
  std::string split;  // in words: "the last 5% of gcide.txt, from document 1 token 37950000 on"
};

// Text is tokenized once: the cached file's name is a hash of the tokenizer's fingerprint and the files' paths, sizes and times
// of change; a second run finds it. Token files must carry no or the same tokenizer fingerprint. The split falls between
// documents where there are at least 20 of them, else between tokens. `progress` gets words and the part done.
// A part with fewer than two tokens, no files, a name that is neither file nor known set (with suggestion and the command
// `cautious data get NAME` for a known set that has not been fetched): an Error.
Corpus open_corpus(const CorpusSpec& spec, const Tokenizer& tokenizer,
                   const std::function<void(const std::string& what, double part)>& progress);

// One stream of all of `path`, for `cautious eval`: errors speak of its --data and of the model's tokenizer.
Stream open_stream(const CorpusSpec& spec, const Tokenizer& tokenizer,
                   const std::function<void(const std::string& what, double part)>& progress);

// $XDG_CACHE_HOME/cautious or ~/.cache/cautious.
std::filesystem::path default_cache();

}  // namespace cautious::data
