// Several streams in fixed shares. Sequence number n of a run is a function of (seed, n) alone, as that of one stream is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/sampler.h"

namespace cautious::data {

// Sequences have slots, which are dealt to the streams in proportion to their weights: at any slot each has had its share to
// within as many sequences as there are streams. Within every block of 1024 sequences the slots come in an order of its own.
// Each stream has its own epochs. One stream is as without a mixture.
class Mixture {
 public:
  // The streams must outlive it; as many weights, each positive. A stream that is too short is an Error (Sampler).
  Mixture(std::span<const Stream> streams, std::span<const double> weights, std::int64_t length, std::uint64_t seed);

  void sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                std::span<std::int64_t> starts) const;
  // The stream that a sequence is of, and its number among that one's.
  struct Origin {
    std::size_t stream;
    std::int64_t number;
  };
  Origin origin(std::int64_t number) const;
  // Of the sequences of all streams, each once.
  std::int64_t per_epoch() const;

 private:
  Origin of_slot(std::int64_t slot) const;

  std::vector<Sampler> samplers_;
  std::vector<std::int64_t> weights_;  // whole numbers, together 2^30 or nearly so
  std::uint64_t seed_;
};

}  // namespace cautious::data
