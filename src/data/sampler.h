// Which sequence comes when. Sequence number n of a run is a function of (seed, n) alone: nothing to save, nothing to restore.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.h"

namespace cautious::data {

// Shuffled: an epoch cuts the stream into windows of T + 1 tokens that overlap by one, from an offset of its own below 2 T, and
// visits each once in an order of its own (a keyed permutation; nothing is stored per window). What an epoch leaves out, fewer
// than 2 T tokens at both ends together, another one has.
class Sampler {
 public:
  // A stream with fewer than length + 1 tokens is an Error(Fault::data) with both numbers.
  Sampler(const Stream& stream, std::int64_t length, std::uint64_t seed);

  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target) const;
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
