#include "optim/arena.h"

#include <algorithm>
#include <cstdint>
#include <new>

namespace cautious::optim {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kStagger = (64 + 4) * 1024 + 256;

constexpr std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

std::vector<std::vector<std::byte*>> Arena::allocate(const std::vector<std::vector<std::size_t>>& bytes) {
  std::size_t streams = 0, total = kAlign;
  for (const auto& row : bytes) {
    streams = std::max(streams, row.size());
    for (const std::size_t block : row) total += rounded_up(block);
  }
  // calloc leaves large blocks untouched until the first step writes them, on the thread that will use them.
  memory_.emplace_back(static_cast<std::byte*>(std::calloc(total + (streams + 1) * kStagger, 1)));
  if (memory_.back() == nullptr) throw std::bad_alloc();
  std::byte* next = memory_.back().get();
  next += (kAlign - reinterpret_cast<std::uintptr_t>(next) % kAlign) % kAlign;

  std::vector<std::vector<std::byte*>> blocks(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) blocks[i].resize(bytes[i].size());
  for (std::size_t stream = 0; stream < streams; ++stream) {
    next += kStagger;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (stream >= bytes[i].size() || bytes[i][stream] == 0) continue;
      blocks[i][stream] = next;
      next += rounded_up(bytes[i][stream]);
    }
  }
  return blocks;
}

}  // namespace cautious::optim
