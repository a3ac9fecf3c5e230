// One token after the other with a key-value cache: what sampling needs. The same weights as the Transformer it is made from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/transformer.h"

namespace cautious::model {

class Decoder {
 public:
  explicit Decoder(const Transformer& model);
  ~Decoder();

  // Takes the tokens that come next and returns the logits [vocab] after the last of them. Positions beyond the model's context
  // slide: the oldest half is forgotten and the rest computed again.
  at::Tensor feed(std::span<const std::int64_t> tokens);
  std::int64_t position() const;  // tokens in the cache

  // The same, but the hidden states [n, width] after every one of the tokens, for Transformer::logits_of(). They must fit into
  // the context.
  at::Tensor feed_all(std::span<const std::int64_t> tokens);
  // Forgets the tokens from `position` on: a text is fed once and continued in several ways.
  void rewind(std::int64_t position);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct Sampling {
  double temperature = 0.8;  // 0: the most likely token
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1;          // smallest set of tokens with at least this probability
  std::uint64_t seed = 0;
};

// The next token from logits [vocab], as a function of (logits, sampling, number): number counts the tokens of this text.
std::int64_t pick(const at::Tensor& logits, const Sampling& sampling, std::int64_t number);

}  // namespace cautious::model
