#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <cautious/error.h>
#include "base/hash.h"
#include "data/permutation.h"

namespace cautious::data {

Stream::Stream(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
  std::erase_if(pieces_, [](const Piece& piece) { return piece.first >= piece.last; });
  for (const Piece& piece : pieces_) {
    starts_.push_back(size_);
    size_ += piece.last - piece.first;
  }
}

Stream Stream::first(std::int64_t count) const {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < pieces_.size() && starts_[i] < count; ++i) {
    Piece& piece = pieces.emplace_back(pieces_[i]);
    piece.last = std::min(piece.last, piece.first + count - starts_[i]);
  }
  return Stream(std::move(pieces));
}

Token Stream::largest() const {
  Token largest = 0;
  for (const Piece& piece : pieces_) largest = std::max(largest, piece.tokens->largest());
  return largest;
}

std::int64_t Stream::fingerprint() const {
  constexpr std::int64_t kSamples = 4096;
  std::uint64_t hash = static_cast<std::uint64_t>(size_);
  for (std::int64_t i = 0; i < std::min(kSamples, size_); ++i) {
    std::int64_t token = 0;
    read(static_cast<std::int64_t>(static_cast<double>(i) / static_cast<double>(std::min(kSamples, size_)) *
                                   static_cast<double>(size_)),
         {&token, 1});
    hash = (hash ^ static_cast<std::uint64_t>(token)) * base::kGolden;
    hash ^= hash >> 29;
  }
  return static_cast<std::int64_t>(hash >> 1);
}

void Stream::copy(std::int64_t first, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                  std::span<std::int64_t> starts) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (target.size() != tokens.size() || starts.size() != tokens.size() || first < 0 || count >= size_ ||
      first > size_ - count - 1)
    throw Error(Fault::usage, fmt::format("{} tokens from {} on, {} targets and {} starts wanted of a stream of {}", count,
                                          first, target.size(), starts.size(), size_));
  if (count == 0) return;
  read(first, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), target.begin());
  read(first + count, target.last(1));
  mask_beginnings(first, target);
  starts[0] = 0;
  for (std::size_t i = 1; i < starts.size(); ++i) starts[i] = target[i - 1] < 0 ? static_cast<std::int64_t>(i) : starts[i - 1];
}

std::size_t Stream::piece_at(std::int64_t position) const {
  return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin() - 1);
}

void Stream::read(std::int64_t position, std::span<std::int64_t> out) const {
  for (std::size_t at = piece_at(position); !out.empty(); ++at) {
    const Piece& piece = pieces_[at];
    const std::int64_t from = piece.first + (position - starts_[at]);
    const auto part = out.first(std::min(out.size(), static_cast<std::size_t>(piece.last - from)));
    piece.tokens->copy(from, part);
    position += static_cast<std::int64_t>(part.size());
    out = out.subspan(part.size());
  }
}

void Stream::mask_beginnings(std::int64_t first, std::span<std::int64_t> target) const {
  const std::int64_t end = first + static_cast<std::int64_t>(target.size()) + 1;
  const auto mask = [&](std::int64_t position) {
    if (position > first && position < end) target[static_cast<std::size_t>(position - first - 1)] = -1;
  };
  for (std::size_t at = piece_at(first); at < pieces_.size() && starts_[at] < end; ++at) {
    const Piece& piece = pieces_[at];
    const std::int64_t shift = piece.first - starts_[at];  // from positions in the stream to those in the file
    mask(starts_[at]);
    const auto documents = piece.tokens->documents();
    auto next = std::lower_bound(documents.begin(), documents.end(), std::max(first, starts_[at]) + shift);
    for (; next != documents.end() && *next < std::min(piece.last, end + shift); ++next) mask(*next - shift);
  }
}

void check_room(const Stream& stream, std::int64_t length, const std::string& name) {
  if (length < 1) throw Error(Fault::usage, fmt::format("a sequence of {} tokens; at least 1", length));
  if (stream.size() > length) return;
  throw Error(Fault::data, fmt::format("{} has {} tokens, but sequences of {} need at least {}: give more text or a smaller "
                                       "train.seq_len",
                                       name, stream.size(), length, length + 1));
}

// At least length - 1 tokens are left over, so that the offset moves every cut between windows.
Sampler::Sampler(const Stream& stream, std::int64_t length, std::uint64_t seed)
    : stream_(&stream), length_(length), per_epoch_(0), seed_(seed) {
  check_room(stream, length);
  per_epoch_ = std::max<std::int64_t>(1, (stream.size() - length) / length);
}

std::int64_t Sampler::first_of(std::int64_t number) const {
  if (number < 0) throw Error(Fault::usage, fmt::format("sequence number {}; the first is 0", number));
  const std::uint64_t key = epoch_key(seed_, static_cast<std::uint64_t>(number / per_epoch_));
  const auto offsets = static_cast<std::uint64_t>(stream_->size() - per_epoch_ * length_);
  const auto window = permuted(static_cast<std::uint64_t>(number % per_epoch_), static_cast<std::uint64_t>(per_epoch_), key);
  return static_cast<std::int64_t>(base::mix64(key) % offsets) + static_cast<std::int64_t>(window) * length_;
}

void Sampler::sequence(std::int64_t number, std::span<std::int64_t> tokens, std::span<std::int64_t> target,
                       std::span<std::int64_t> starts) const {
  if (static_cast<std::int64_t>(tokens.size()) != length_)
    throw Error(Fault::usage, fmt::format("room for {} tokens; sequences have {}", tokens.size(), length_));
  stream_->copy(first_of(number), tokens, target, starts);
}

std::vector<std::int64_t> fixed_windows(const Stream& stream, std::int64_t length, std::int64_t count) {
  check_room(stream, length);
  if (count < 1) throw Error(Fault::usage, fmt::format("{} windows wanted; at least 1", count));
  const std::int64_t targets = stream.size() - 1;
  count = std::min(count, targets / length);
  std::vector<std::int64_t> firsts;
  std::int64_t first = 0, rest = 0;  // first + rest / count = i * targets / count, without overflow
  for (std::int64_t i = 0; i < count; ++i) {
    firsts.push_back(first);
    first += targets / count;
    rest += targets % count;
    first += rest / count;
    rest %= count;
  }
  return firsts;
}

}  // namespace cautious::data
