// A table of merges by pair, and a heap of those that can be applied: a piece of n tokens takes n log n steps.
#include "data/tokenizer/merges.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace cautious::data {
namespace {

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

void Merges::apply(MergeBuffer& buffer, std::vector<Token>& out) const {
  auto& parts = buffer.parts_;
  auto& heap = buffer.heap_;
  const auto count = static_cast<std::uint32_t>(parts.size());
  for (std::uint32_t i = 0; i < count; ++i) look_at(buffer, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kLater);
    const MergeBuffer::Candidate first = heap.back();
    heap.pop_back();
    if (parts[first.part].rank == first.rank) join(buffer, first.part);
  }
  for (std::uint32_t i = count == 0 ? kNone : 0; i != kNone; i = parts[i].next) out.push_back(parts[i].token);
  parts.clear();
}

}  // namespace cautious::data
