#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <cautious/error.h>
#include "base/hash.h"
#include "data/corpus.h"

namespace cautious::data {

Stream::Stream(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
  std::erase_if(pieces_, [](const Piece& piece) { return piece.first >= piece.last; });
  for (const Piece& piece : pieces_) {
    starts_.push_back(size_);
    size_ += piece.last - piece.first;
  }
}

Token Stream::largest() const {
  Token largest = 0;
  for (const Piece& piece : pieces_) largest = std::max(largest, piece.tokens->largest());
  return largest;
}

std::int64_t Stream::fingerprint() const {
  constexpr std::int64_t kPlaces = 4096;
  std::uint64_t hash = static_cast<std::uint64_t>(size_);
  for (std::int64_t i = 0; i < std::min(kPlaces, size_); ++i) {
    std::int64_t token = 0;
    read(static_cast<std::int64_t>(static_cast<double>(i) / static_cast<double>(std::min(kPlaces, size_)) *
                                   static_cast<double>(size_)),
         {&token, 1});
    hash = (hash ^ static_cast<std::uint64_t>(token)) * base::kGolden;
    hash ^= hash >> 29;
  }
  return static_cast<std::int64_t>(hash >> 1);
}

void Stream::copy(std::int64_t first, std::span<std::int64_t> tokens, std::span<std::int64_t> target) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (target.size() != tokens.size() || first < 0 || count >= size_ || first > size_ - count - 1)
    throw Error(Fault::usage, fmt::format("{} tokens from {} on and {} targets wanted of a stream of {}", count, first,
                                          target.size(), size_));
  if (count == 0) return;
  read(first, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), target.begin());
  read(first + count, target.last(1));
  mask_beginnings(first, target);
}

std::size_t Stream::piece_at(std::int64_t place) const {
  return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), place) - starts_.begin() - 1);
}

void Stream::read(std::int64_t place, std::span<std::int64_t> out) const {
  for (std::size_t at = piece_at(place); !out.empty(); ++at) {
    const Piece& piece = pieces_[at];
    const std::int64_t from = piece.first + (place - starts_[at]);
    const auto part = out.first(std::min(out.size(), static_cast<std::size_t>(piece.last - from)));
    piece.tokens->copy(from, part);
    place += static_cast<std::int64_t>(part.size());
    out = out.subspan(part.size());
  }
}

void Stream::mask_beginnings(std::int64_t first, std::span<std::int64_t> target) const {
  const std::int64_t end = first + static_cast<std::int64_t>(target.size()) + 1;
  const auto mask = [&](std::int64_t place) {
    if (place > first && place < end) target[static_cast<std::size_t>(place - first - 1)] = -1;
  };
  for (std::size_t at = piece_at(first); at < pieces_.size() && starts_[at] < end; ++at) {
    const Piece& piece = pieces_[at];
    const std::int64_t shift = piece.first - starts_[at];  // from places in the stream to those in the file
    mask(starts_[at]);
    const auto documents = piece.tokens->documents();
    auto next = std::lower_bound(documents.begin(), documents.end(), std::max(first, starts_[at]) + shift);
    for (; next != documents.end() && *next < std::min(piece.last, end + shift); ++next) mask(*next - shift);
  }
}

}  // namespace cautious::data
