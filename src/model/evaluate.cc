// Hidden states of a batch, then the logits of a few rows at a time: with a large vocabulary those of a batch would not fit.
#include "model/evaluate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::model {
namespace {

constexpr std::int64_t kSliceBytes = std::int64_t{64} << 20;  // of logits

struct Row {
  double nats = 0;
  bool correct = false;  // of equal logits the first counts, as in greedy sampling
};

template <class Value>
Row judge(const Value* logits, std::int64_t vocab, std::int64_t target) {
  const Value* const largest = std::max_element(logits, logits + vocab);
  const auto most = static_cast<double>(*largest);
  double sum = 0;
  for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - most);
  return {std::log(sum) + most - static_cast<double>(logits[target]), largest - logits == target};
}

// Rows without a target stay empty.
template <class Value>
void judge_slice(const at::Tensor& logits, const std::int64_t* target, Row* rows) {
  const auto* const values = logits.data_ptr<Value>();
  const std::int64_t count = logits.size(0), vocab = logits.size(1);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    if (target[i] >= 0) rows[i] = judge(values + i * vocab, vocab, target[i]);
  }
}

// One Row per hidden state.
std::vector<Row> judge_all(const Transformer& model, const at::Tensor& hidden, const std::int64_t* target) {
  const std::int64_t count = hidden.size(0), vocab = model.config().vocab;
  const std::int64_t most = std::max<std::int64_t>(1, kSliceBytes / (vocab * static_cast<std::int64_t>(hidden.element_size())));
  std::vector<Row> rows(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < count; first += most) {
    at::Tensor logits = model.logits_of(hidden.narrow(0, first, std::min(most, count - first)));
    logits = logits.to(at::kCPU, logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    const auto judge_values = logits.scalar_type() == at::kDouble ? judge_slice<double> : judge_slice<float>;
    judge_values(logits, target + first, rows.data() + first);
  }
  return rows;
}

void check_set(const ModelConfig& config, const Windows& set, std::int64_t batch) {
  if (batch < 1) throw Error(Fault::usage, fmt::format("batch is {}; valid: at least 1", batch));
  if (set.count == 0) throw Error(Fault::usage, "there is no window to evaluate");
  const auto largest = static_cast<std::int64_t>(set.largest);
  if (largest >= config.vocab) {
    throw Error(Fault::data, fmt::format("the data has the token {}, but the model's vocabulary is {}: it was "
                                         "made with another tokenizer",
                                         largest, config.vocab));
  }
  if (!set.lengths.empty() && largest >= static_cast<std::int64_t>(set.lengths.size())) {
    throw Error(Fault::data,
                fmt::format("the data has the token {}, but the tokenizer's vocabulary is {}", largest, set.lengths.size()));
  }
}

}  // namespace

void EvaluationSet::copy(std::size_t window, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                         std::span<std::int64_t> starts) const {
  stream->copy(windows[window], tokens, target, starts);
  if (!once || window == 0) return;
  const std::int64_t counted = std::clamp<std::int64_t>(windows[window - 1] + length - windows[window], 0, length);
  std::fill(target.begin(), target.begin() + counted, -1);
}

Windows windows_of(const EvaluationSet& set) {
  return {std::ssize(set.windows), set.length, set.stream->largest(), set.lengths,
          [&set](std::size_t window, auto tokens, auto target, auto starts) { set.copy(window, tokens, target, starts); }};
}

Evaluation evaluate(Transformer& model, const EvaluationSet& set, std::int64_t batch,
                    const std::function<void(double part)>& between) {
  return evaluate(model, windows_of(set), batch, between);
}

Evaluation evaluate(Transformer& model, const Windows& set, std::int64_t batch, const std::function<void(double part)>& between,
                    const Share& share) {
  check_set(model.config(), set, batch);
  const at::NoGradGuard no_grad;
  const at::Device device = model.parameters().front().device();
  const std::int64_t windows = set.count;
  const std::size_t length = static_cast<std::size_t>(set.length);
  double nats = 0, bytes = 0;
  std::int64_t targets = 0, correct = 0;
  for (std::int64_t first = 0; first < windows; first += batch * share.ranks) {
    // A batch of each rank.
    const std::int64_t count = std::min(batch * share.ranks, windows - first);
    const at::Tensor windows_of_round = at::empty({3, count, set.length}, at::kLong);
    const at::Tensor tokens = windows_of_round[0], target = windows_of_round[1], starts = windows_of_round[2];
    auto* const outputs = target.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = [&](const at::Tensor& of) { return std::span(of.data_ptr<std::int64_t>() + i * set.length, length); };
      set.copy(static_cast<std::size_t>(first + i), row(tokens), row(target), row(starts));
    }
    std::vector<Row> rows(static_cast<std::size_t>(count) * length);
    std::vector<Piece> pieces;
    for (int rank = 0; rank * batch < count; ++rank) {
      const std::int64_t from = rank * batch, size = std::min(batch, count - from);
      Row* const own = rows.data() + from * set.length;
      pieces.push_back({rank, own, static_cast<std::size_t>(size) * length * sizeof *own});
      if (rank != share.rank) continue;
      const auto part = [&](const at::Tensor& all) { return all.narrow(0, from, size).to(device); };
      const at::Tensor hidden = model.hidden(part(tokens), part(starts));
      std::ranges::copy(judge_all(model, hidden, outputs + from * set.length), own);
    }
    if (share.ranks > 1) share.exchange(pieces, {});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (outputs[i] < 0) continue;
      nats += rows[i].nats;
      correct += rows[i].correct ? 1 : 0;
      ++targets;
      if (!set.lengths.empty()) bytes += set.lengths[outputs[i]];
    }
    if (between) between(static_cast<double>(first + count) / static_cast<double>(windows));
  }
  if (targets == 0) throw Error(Fault::data, "no window has a target: every token begins a document");
  const auto all = static_cast<double>(targets);
  const double bits = bytes > 0 ? nats / std::numbers::ln2 / bytes : std::numeric_limits<double>::quiet_NaN();
  return {nats / all, bits, static_cast<double>(correct) / all, targets};
}

}  // namespace cautious::model
