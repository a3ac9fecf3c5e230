// Memory for benchmarks: 64-byte aligned, at distances of our choosing. Buffers at equal distances of a power of two evict each
// other from the caches, so a benchmark that takes whatever malloc gives measures its luck.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace cautious::bench {

enum class Spacing { staggered, aliased };  // aliased: starts exactly 2^28 bytes apart

class Buffers {
 public:
  // `count` buffers of `bytes` each.
  Buffers(std::size_t count, std::size_t bytes, Spacing spacing) {
    constexpr std::size_t kStagger = (64 + 4) * 1024 + 256, kAlias = std::size_t{1} << 28;
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    const std::size_t step = spacing == Spacing::aliased ? (rounded + kAlias - 1) / kAlias * kAlias : rounded + kStagger;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (step * count + 4095) / 4096 * 4096)));
    for (std::size_t i = 0; i < count; ++i) starts_.push_back(memory_.get() + i * step);
  }
  template <class T>
  T* at(std::size_t i) const {
    return reinterpret_cast<T*>(starts_[i]);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::byte*> starts_;
};

}  // namespace cautious::bench
