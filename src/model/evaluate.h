// How well a model predicts a fixed set of windows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <cautious/optimizer.h>

#include "data/corpus.h"
#include "model/transformer.h"

namespace cautious::model {

struct Evaluation {
  double loss = 0;           // mean over the targets, nats per token
  double bits_per_byte = 0;  // NaN if the bytes are not known
  double accuracy = 0;       // fraction of the targets that have the largest logit
  std::int64_t targets = 0;
};

struct EvaluationSet {
  const data::Stream* stream;
  std::vector<std::int64_t> windows;       // first tokens (data::fixed_windows)
  std::int64_t length;                     // T
  std::span<const std::uint16_t> lengths;  // bytes of every token id; empty if not known
  bool once = false;                       // of overlapping windows in order, a target counts in the first that has it

  // Tokens and targets of a window, and where their documents begin; -1 is a target that does not count.
  void copy(std::size_t window, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
            std::span<std::int64_t> starts) const;
};

// Any windows, as a function of their number.
struct Windows {
  std::int64_t count, length;
  data::Token largest;                     // of all tokens and targets
  std::span<const std::uint16_t> lengths;  // bytes of every token id; empty if not known
  std::function<void(std::size_t window, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                     std::span<std::int64_t> starts)>
      copy;
};

// Those of a set, which must outlive them.
Windows windows_of(const EvaluationSet& set);

// Batches of `batch` windows; what is predicted in a document depends on that document alone. Sums are in double and in the
// windows' order: the same for any batch and for any number of ranks, which take turns. `between` is called between batches
// with the part done.
Evaluation evaluate(Transformer& model, const Windows& windows, std::int64_t batch,
                    const std::function<void(double part)>& between = {}, const Share& share = {});
Evaluation evaluate(Transformer& model, const EvaluationSet& set, std::int64_t batch,
                    const std::function<void(double part)>& between = {});

}  // namespace cautious::model
