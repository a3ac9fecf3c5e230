// A stream of tokens, and which of its sequences comes when. Sequence number n of a run is a function of (seed, n) alone:
// nothing to save, nothing to restore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  Stream first(std::int64_t count) const;  // its first tokens, at most size()
  Token largest() const;
  // Of the size and some thousand tokens all over the stream: another text has another one, but for chance. Not negative.
  std::int64_t fingerprint() const;
  // tokens[i] = stream[first + i], target[i] = stream[first + i + 1], or -1 where that one begins another document or file;
  // starts[i] is where among the tokens the document of tokens[i] begins, 0 if it began before. All have the same length n;
  // first + n + 1 <= size().
  void copy(std::int64_t first, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
            std::span<std::int64_t> starts) const;

 private:
  std::size_t piece_at(std::int64_t position) const;
  void read(std::int64_t position, std::span<std::int64_t> out) const;
  void mask_beginnings(std::int64_t first, std::span<std::int64_t> target) const;  // with -1

  std::vector<Piece> pieces_;
  std::vector<std::int64_t> starts_;  // of the pieces in the stream
  std::int64_t size_ = 0;
};

// A stream with fewer than length + 1 tokens is an Error(Fault::data) with both numbers; `name` is what the user knows it as.
void check_room(const Stream& stream, std::int64_t length, const std::string& name = "the stream");

// Shuffled: an epoch cuts the stream into windows of T + 1 tokens that overlap by one, from an offset of its own below 2 T, and
// visits each once in an order of its own (a keyed permutation; nothing is stored per window). What an epoch leaves out, fewer
// than 2 T tokens at both ends together, another one has.
class Sampler {
 public:
  // A stream that is too short is an Error of check_room().
  Sampler(const Stream& stream, std::int64_t length, std::uint64_t seed);

  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                std::span<std::int64_t> starts) const;
  std::int64_t first_of(std::int64_t number) const;  // first token of that window
  std::int64_t per_epoch() const { return per_epoch_; }

 private:
  const Stream* stream_;
  std::int64_t length_, per_epoch_;
  std::uint64_t seed_;
};

// For evaluation: at most `count` windows of `length`, evenly spaced over the stream, in order, the same every time. Returns
// their first tokens.
std::vector<std::int64_t> fixed_windows(const Stream& stream, std::int64_t length, std::int64_t count);

}  // namespace cautious::data
