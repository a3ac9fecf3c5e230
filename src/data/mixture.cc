#include "data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <cautious/error.h>

#include "base/hash.h"
#include "data/permutation.h"

namespace cautious::data {
namespace {

constexpr std::int64_t kBlock = 1024;                   // sequences
constexpr std::int64_t kWhole = std::int64_t{1} << 30;  // so that products of two weights fit

// floor(count * weight / all), where weight <= all <= about kWhole.
std::int64_t share_of(std::int64_t count, std::int64_t weight, std::int64_t all) {
  return count / all * weight + count % all * weight / all;
}

std::vector<std::int64_t> whole_weights(std::span<const double> weights) {
  double largest = 0, sum = 0;
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight))
      throw Error(Fault::usage, fmt::format("a weight of {}; valid: (0, inf)", weight));
    largest = std::max(largest, weight);
  }
  for (const double weight : weights) sum += weight / largest;
  std::vector<std::int64_t> whole;
  for (const double weight : weights)
    whole.push_back(std::max<std::int64_t>(1, std::llround(weight / largest / sum * static_cast<double>(kWhole))));
  return whole;
}

}  // namespace

Mixture::Mixture(std::span<const Stream> streams, std::span<const double> weights, std::int64_t length, std::uint64_t seed)
    : weights_(whole_weights(weights)), seed_(seed) {
  if (streams.empty() || streams.size() != weights.size())
    throw Error(Fault::usage, fmt::format("{} weights for {} streams", weights.size(), streams.size()));
  for (std::uint64_t i = 0; i < streams.size(); ++i)
    samplers_.emplace_back(streams[i], length, i == 0 ? seed : base::mix64(seed + i * base::kGolden));
}

// Of the slots that the streams before have left, a stream takes one whenever its share reaches the next whole number.
Mixture::Origin Mixture::of_slot(std::int64_t slot) const {
  std::int64_t all = std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0});
  for (std::size_t i = 0; i + 1 < weights_.size(); ++i) {
    const std::int64_t before = share_of(slot, weights_[i], all);
    if (share_of(slot + 1, weights_[i], all) > before) return {i, before};
    slot -= before;
    all -= weights_[i];
  }
  return {weights_.size() - 1, slot};
}

Mixture::Origin Mixture::origin(std::int64_t number) const {
  if (number < 0) throw Error(Fault::usage, fmt::format("sequence number {}; the first is 0", number));
  if (samplers_.size() == 1) return {0, number};
  const std::int64_t block = number / kBlock;
  const std::uint64_t key = ~epoch_key(seed_, static_cast<std::uint64_t>(block));  // not that of an epoch
  const auto within = permuted(static_cast<std::uint64_t>(number % kBlock), kBlock, key);
  return of_slot(block * kBlock + static_cast<std::int64_t>(within));
}

void Mixture::sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                       std::span<std::int64_t> starts) const {
  const Origin from = origin(number);
  samplers_[from.stream].sequence(from.number, tokens, target, starts);
}

std::int64_t Mixture::per_epoch() const {
  std::int64_t count = 0;
  for (const Sampler& sampler : samplers_) count += sampler.per_epoch();
  return count;
}

}  // namespace cautious::data
