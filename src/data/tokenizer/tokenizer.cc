// Merging, encoding, decoding and the byte tokenizer. Long texts are cut where the split pattern cuts anyway (split_pattern.h),
// so any number of threads gives the same ids.
#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <cautious/error.h>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {
namespace {

constexpr std::size_t kChunk = 256 * 1024;  // bytes of text that a thread takes at a time
constexpr std::size_t kSlots = 1 << 15;

std::size_t mixed(Token left, Token right) {
  std::uint64_t x = (static_cast<std::uint64_t>(left) << 32 | right) * base::kGolden;
  return static_cast<std::size_t>(x ^ x >> 32);
}

// std's heaps have the largest on top, hence the reversed order.
constexpr auto kLater = [](const auto& a, const auto& b) { return std::pair(a.rank, a.part) > std::pair(b.rank, b.part); };

}  // namespace

std::size_t Merges::slot(Token left, Token right) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = mixed(left, right) & mask;
  while (table_[at] != kNone && (merges_[table_[at]].left != left || merges_[table_[at]].right != right)) at = (at + 1) & mask;
  return at;
}

std::uint32_t Merges::rank(Token left, Token right) const { return table_.empty() ? kNone : table_[slot(left, right)]; }

void Merges::grow() {
  table_.assign(std::max<std::size_t>(1024, 2 * table_.size()), kNone);
  for (std::size_t i = 0; i < merges_.size(); ++i)
    table_[slot(merges_[i].left, merges_[i].right)] = static_cast<std::uint32_t>(i);
}

bool Merges::add(const Merge& merge) {
  if (2 * (merges_.size() + 1) > table_.size()) grow();
  std::uint32_t& at = table_[slot(merge.left, merge.right)];
  if (at != kNone) return false;
  at = static_cast<std::uint32_t>(merges_.size());
  merges_.push_back(merge);
  return true;
}

void Merges::look_at(MergeBuffer& buffer, std::uint32_t index) const {
  MergeBuffer::Part& part = buffer.parts_[index];
  part.rank = part.next == kNone ? kNone : rank(part.token, buffer.parts_[part.next].token);
  if (part.rank == kNone) return;
  buffer.heap_.push_back({part.rank, index});
  std::push_heap(buffer.heap_.begin(), buffer.heap_.end(), kLater);
}

void Merges::join(MergeBuffer& buffer, std::uint32_t index) const {
  auto& parts = buffer.parts_;
  MergeBuffer::Part& part = parts[index];
  MergeBuffer::Part& gone = parts[part.next];
  part.token = merges_[part.rank].made;
  part.next = gone.next;
  gone.rank = kNone;
  if (part.next != kNone) parts[part.next].previous = index;
  look_at(buffer, index);
  if (part.previous != kNone) look_at(buffer, part.previous);
}

void Merges::apply(std::string_view piece, const std::array<Token, 256>& bytes, MergeBuffer& buffer,
                   std::vector<Token>& out) const {
  auto& parts = buffer.parts_;
  auto& heap = buffer.heap_;
  parts.clear();
  const auto count = static_cast<std::uint32_t>(piece.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const Token token = bytes[static_cast<unsigned char>(piece[i])];
    parts.push_back({token, kNone, i == 0 ? kNone : i - 1, i + 1 < count ? i + 1 : kNone});
  }
  for (std::uint32_t i = 0; i < count; ++i) look_at(buffer, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kLater);
    const MergeBuffer::Candidate first = heap.back();
    heap.pop_back();
    if (parts[first.part].rank == first.rank) join(buffer, first.part);
  }
  for (std::uint32_t i = count == 0 ? kNone : 0; i != kNone; i = parts[i].next) out.push_back(parts[i].token);
}

std::size_t PieceCache::slot_of(std::string_view piece) { return std::hash<std::string_view>{}(piece) & (kSlots - 1); }

PieceCache::PieceCache() : entries_(kSlots) {}

std::span<const Token> PieceCache::find(std::string_view piece) const {
  const Entry& entry = entries_[slot_of(piece)];
  if (entry.bytes != piece.size() || !std::equal(piece.begin(), piece.end(), entry.piece.begin())) return {};
  return {entry.token.data(), entry.tokens};
}

void PieceCache::keep(std::string_view piece, std::span<const Token> tokens) {
  if (piece.size() > kLongest || tokens.size() > kMostTokens) return;
  Entry& entry = entries_[slot_of(piece)];
  entry.bytes = static_cast<std::uint8_t>(piece.size());
  entry.tokens = static_cast<std::uint8_t>(tokens.size());
  std::copy(piece.begin(), piece.end(), entry.piece.begin());
  std::copy(tokens.begin(), tokens.end(), entry.token.begin());
}

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Tokenizer Tokenizer::bytes() {
  TokenizerBuilder builder{""};
  for (int byte = 0; byte < 256; ++byte) builder.add_token(byte, std::string(1, static_cast<char>(byte)));
  builder.find_bytes();
  return builder.build();
}

Tokenizer Tokenizer::named(const std::string& name) { return name == "bytes" ? bytes() : read(name); }

std::int64_t Tokenizer::vocab() const { return static_cast<std::int64_t>(parts_->tokens.size()); }
Token Tokenizer::document_end() const { return parts_->document_end; }
const std::vector<std::uint16_t>& Tokenizer::lengths() const { return parts_->lengths; }
const std::string& Tokenizer::fingerprint() const { return parts_->fingerprint; }

std::unique_ptr<Workplace> Tokenizer::Parts::take_workplace() const {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) return std::make_unique<Workplace>();
  auto workplace = std::move(free_.back());
  free_.pop_back();
  return workplace;
}

void Tokenizer::Parts::put_back(std::unique_ptr<Workplace> workplace) const {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(workplace));
}

std::vector<Token> Tokenizer::Parts::encode(std::string_view text) const {
  std::vector<Token> out;
  out.reserve(text.size() / 3);
  auto workplace = take_workplace();
  pattern.each_piece(text, [&](std::string_view piece) {
    if (const auto known = workplace->cache.find(piece); !known.empty()) {
      out.insert(out.end(), known.begin(), known.end());
      return;
    }
    const std::size_t before = out.size();
    merges.apply(piece, bytes, workplace->buffer, out);
    workplace->cache.keep(piece, std::span(out).subspan(before));
  });
  put_back(std::move(workplace));
  return out;
}

std::vector<Token> Tokenizer::encode(std::string_view text, int threads) const {
  if (parts_->plain_bytes) {
    const auto* const first = reinterpret_cast<const unsigned char*>(text.data());
    return {first, first + text.size()};
  }
  if (threads <= 1 || text.size() <= kChunk) return parts_->encode(text);
  const std::vector<std::string_view> pieces = parts_->pattern.parts(text, kChunk);
  std::vector<std::vector<Token>> tokens(pieces.size());
  const int workers = static_cast<int>(std::min(static_cast<std::size_t>(threads), pieces.size()));
  base::parallel_for(pieces.size(), workers, [&](std::size_t i) { tokens[i] = parts_->encode(pieces[i]); });

  std::size_t size = 0;
  for (const auto& some : tokens) size += some.size();
  std::vector<Token> out;
  out.reserve(size);
  for (const auto& some : tokens) out.insert(out.end(), some.begin(), some.end());
  return out;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= parts_->tokens.size()) {
      throw Error(Fault::data, fmt::format("token {} of {} is {}; this tokenizer has ids in [0, {})", i + 1, tokens.size(),
                                           tokens[i], parts_->tokens.size()));
    }
    out += parts_->tokens[tokens[i]];
  }
  return out;
}

}  // namespace cautious::data
