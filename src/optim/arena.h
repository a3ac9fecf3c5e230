// Memory for the optimizer's state, placed so that its streams never evict each other from the caches.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace cautious::optim {

// Zeroed blocks. Blocks of one stream lie side by side; streams start at distances that are no multiple of any cache's way
// size (64 KiB + 4 KiB + 256 B more each), since x, m and v at equal distances of 2^27 bytes run up to six times slower.
class Arena {
 public:
  // One row per tensor, one column per stream, in bytes. Returns the address of every block, in the same layout; an empty
  // block has no address.
  std::vector<std::vector<std::byte*>> allocate(const std::vector<std::vector<std::size_t>>& bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
};

}  // namespace cautious::optim
