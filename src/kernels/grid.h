// A step as a grid: many tensors in one launch, a block per chunk, a thread per coordinate. Rules, decays, Algorithm 1, random
// bits and roundings are those of the other instruction sets, with numbers as values. cuda.cu launches it; tests run the same
// functions on the CPU, as loops over blocks and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include <cautious/optimizer.h>

#include "kernels/algorithm1.h"
#include "kernels/bf16.h"
#include "kernels/kernels.h"
#include "kernels/random_bits.h"

namespace cautious::kernels {

inline constexpr std::uint32_t kGridThreads = kTile;     // of a block
inline constexpr std::uint64_t kGridChunk = 16 * kTile;  // coordinates of a block
inline constexpr std::size_t kGridSeen = 7;              // numbers that are reported of a tensor

// One tensor of a launch. Pointers are the device's; null where the recipe has no such thing.
struct GridTensor {
  void* x;
  const void* g;
  void* m;
  void* v;
  std::int16_t* low;  // lower halves under split rounding
  const void* x0;     // in x's element type
  std::uint64_t count;
  Element parameter, gradient, moments;  // f32 or bf16
  Rounding rounding;
  float lr, wd;
  double spent;  // lr wd: the budget of one unit of pull
  Stream chance, round;
  Prepared rule, decay;
  std::uint32_t first_block, blocks;
};

struct GridBlock {
  std::uint32_t tensor, chunk;
};

struct Grid {
  const GridTensor* tensors;
  const GridBlock* blocks;
  Counted* counted;  // of every block
  double* seen;      // of every tensor: decayed, active, nonfinite, x2, g2, u2, budget
  std::uint32_t tensor_count, block_count;
};

// Sets which blocks the tensors have, and returns all of them.
inline std::vector<GridBlock> cut_into_blocks(std::span<GridTensor> tensors) {
  std::vector<GridBlock> blocks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].first_block = static_cast<std::uint32_t>(blocks.size());
    tensors[i].blocks = static_cast<std::uint32_t>((tensors[i].count + kGridChunk - 1) / kGridChunk);
    for (std::uint32_t chunk = 0; chunk < tensors[i].blocks; ++chunk) blocks.push_back({static_cast<std::uint32_t>(i), chunk});
  }
  return blocks;
}

// Where a grid runs. Both functions know the rules and decays of on_grid() only.
struct GridDevice {
  void (*prepare)(const Rule& rule, std::int64_t t, const Decay& decay, GridTensor& tensor);
  void (*launch)(const Rule& rule, const Decay& decay, const Grid& grid);
};

// cuda.cu: the current device's default stream; only in a build with CAUTIOUS_CUDA.
extern const GridDevice kCuda;

}  // namespace cautious::kernels

namespace cautious::CAUTIOUS_ISA {

template <class R>
inline constexpr bool kShapes = requires(R rule) {
  shaping(rule);
};

// Elementwise recipes. A rule with a shaping stage and a decay that looks at the whole tensor first need more than one pass.
template <class R, class D>
inline constexpr bool kOnGrid = !kShapes<R> && !kLooksFirst<D> && !kProjects<D>;

template <class D>
using ElementwiseMask = decltype(mask<float>(D{}));

// Calls body(rule, decay) with what they hold, if that is for a grid.
template <class Body>
bool visit_on_grid(const Rule& rule, const Decay& decay, Body body) {
  return std::visit(
      [&]<class R, class D>(const R& r, const D& d) {
        if constexpr (kOnGrid<R, D>) body(r, d);
        return kOnGrid<R, D>;
      },
      rule, decay);
}

inline bool on_grid(const Rule& rule, const Decay& decay) {
  return visit_on_grid(rule, decay, [](const auto&, const auto&) {});
}

template <class Ready>
kernels::Prepared as_prepared(const Ready& ready) {
  static_assert(sizeof(Ready) <= sizeof(kernels::Prepared) && std::is_trivially_copyable_v<Ready>);
  kernels::Prepared bytes{};
  if constexpr (!std::is_empty_v<Ready>) __builtin_memcpy(bytes.bytes, &ready, sizeof(ready));
  return bytes;
}

inline void prepare_on_grid(const Rule& rule, std::int64_t t, const Decay& decay, kernels::GridTensor& tensor) {
  visit_on_grid(rule, decay, [&](const auto& r, const auto& d) {
    tensor.rule = as_prepared(direction<float>(r, t));
    tensor.decay = as_prepared(mask<float>(d));
  });
}

CAUTIOUS_DEVICE inline float load_at(Element element, const void* memory, std::uint64_t j) {
  if (element == Element::bf16) return widen(static_cast<const std::uint16_t*>(memory)[j]);
  return static_cast<const float*>(memory)[j];
}

CAUTIOUS_DEVICE inline void store_moment(Element element, void* memory, std::uint64_t j, float value) {
  if (element == Element::bf16) {
    static_cast<std::uint16_t*>(memory)[j] = static_cast<std::uint16_t>(nearest(value));
  } else {
    static_cast<float*>(memory)[j] = value;
  }
}

CAUTIOUS_DEVICE inline std::uint32_t random_at(kernels::Stream stream, std::uint64_t j) {
  return random_bits(stream, tile_salt(stream, j), static_cast<std::uint32_t>(j));
}

// What stochastic rounding adds to coordinate j: two rows of sixteen coordinates share the words of random bits.
CAUTIOUS_DEVICE inline std::uint32_t rounding_chance(kernels::Stream stream, std::uint64_t j) {
  const std::uint64_t even = j / kernels::kTile * 2;
  const auto i = static_cast<std::uint32_t>(j % kernels::kTile);
  const RoundingKey<std::uint32_t> key = rounding_key(random_at(stream, even), random_at(stream, even + 1));
  const std::uint32_t word = rounding_word(key, spread_of(i / 32 * 16 + i % 16));
  return i / 16 % 2 == 0 ? first_chance(word) : second_chance(word);
}

CAUTIOUS_DEVICE inline float load_parameter(const kernels::GridTensor& tensor, std::uint64_t j) {
  if (tensor.low == nullptr) return load_at(tensor.parameter, tensor.x, j);
  const auto low = static_cast<std::uint32_t>(static_cast<std::int32_t>(tensor.low[j]));
  return float_of(join<std::uint32_t>(static_cast<const std::uint16_t*>(tensor.x)[j], low));
}

// The one rounding of a step.
CAUTIOUS_DEVICE inline void store_parameter(const kernels::GridTensor& tensor, std::uint64_t j, float x) {
  if (tensor.parameter == Element::f32) {
    static_cast<float*>(tensor.x)[j] = x;
    return;
  }
  auto& to = static_cast<std::uint16_t*>(tensor.x)[j];
  if (tensor.low != nullptr) {
    const std::uint32_t bits = splittable(word_of(x));
    to = static_cast<std::uint16_t>(split_high(bits));
    tensor.low[j] = static_cast<std::int16_t>(split_low(bits));
  } else if (tensor.rounding == Rounding::stochastic) {
    to = static_cast<std::uint16_t>(rounded(x, rounding_chance(tensor.round, j)));
  } else {
    to = static_cast<std::uint16_t>(nearest(x));
  }
}

CAUTIOUS_DEVICE inline void add_to(kernels::Counted& sum, const kernels::Counted& seen) {
  sum.decayed += seen.decayed, sum.active += seen.active, sum.nonfinite += seen.nonfinite;
  sum.x2 += seen.x2, sum.g2 += seen.g2, sum.u2 += seen.u2, sum.pull += seen.pull;
}

CAUTIOUS_DEVICE inline double square_of(float value) { return static_cast<double>(value) * static_cast<double>(value); }

// One coordinate of a tensor: the rule, Algorithm 1, the store.
template <class R, class D>
CAUTIOUS_DEVICE inline void step_at(const kernels::GridTensor& tensor, const DirectionOf<R, float>& direction_of,
                                    const ElementwiseMask<D>& decays, std::uint64_t j, kernels::Counted& counted) {
  // All loads come first: the compiler must not move them before a store.
  const float g = load_at(tensor.gradient, tensor.g, j), x = load_parameter(tensor, j);
  float pull = x;
  if constexpr (kAnchored<D>) pull = x - load_at(tensor.parameter, tensor.x0, j);
  float m = 0, v = 0, u;
  if constexpr (moments_of<R, float>() > 0) m = load_at(tensor.moments, tensor.m, j);
  if constexpr (moments_of<R, float>() > 1) {
    v = load_at(tensor.moments, tensor.v, j);
    u = direction_of(g, m, v);
    store_moment(tensor.moments, tensor.v, j, v);
  } else if constexpr (moments_of<R, float>() > 0) {
    u = direction_of(g, m);
  } else {
    u = direction_of(g);
  }
  if constexpr (moments_of<R, float>() > 0) store_moment(tensor.moments, tensor.m, j, m);

  Lane<float, std::int32_t> lane{u, g, pull, 0, u};
  if constexpr (kRandom<D>) lane.chance = static_cast<std::int32_t>(random_at(tensor.chance, j) >> 8);
  const bool on = decays(lane);
  const Moved<float> moved = algorithm1(tensor.lr, tensor.wd, x, u, pull, on);
  store_parameter(tensor, j, moved.x);

  counted.decayed += on;
  counted.active += signed_product(u, pull) > 0;
  counted.nonfinite += !(abs(g) < __builtin_inff());
  counted.x2 += square_of(x), counted.g2 += square_of(g), counted.u2 += square_of(u);
  counted.pull += static_cast<double>(abs(moved.shrunk));
}

// all_threads(body) calls body(thread) for every thread of the block and returns when all have: on a device each thread calls
// its own and waits at a barrier, on the CPU it is a loop. `counted` is the block's own memory, one of each thread.

// Adds up in a fixed order, so that sums repeat; the result is counted[0].
template <class Threads>
CAUTIOUS_DEVICE inline void add_up_block(kernels::Counted* counted, Threads all_threads) {
  for (std::uint32_t width = kernels::kGridThreads / 2; width > 0; width /= 2) {
    all_threads([=](std::uint32_t thread) {
      if (thread < width) add_to(counted[thread], counted[thread + width]);
    });
  }
}

// The first pass: one block moves one chunk of one tensor.
template <class R, class D, class Threads>
CAUTIOUS_DEVICE inline void move_chunk(const kernels::Grid& grid, std::uint32_t block, kernels::Counted* counted,
                                       Threads all_threads) {
  const kernels::GridBlock at = grid.blocks[block];
  const kernels::GridTensor& tensor = grid.tensors[at.tensor];
  const DirectionOf<R, float> direction_of = *reinterpret_cast<const DirectionOf<R, float>*>(tensor.rule.bytes);
  const ElementwiseMask<D> decays = *reinterpret_cast<const ElementwiseMask<D>*>(tensor.decay.bytes);
  const std::uint64_t first = at.chunk * kernels::kGridChunk, rest = tensor.count - first;
  const std::uint64_t end = first + (rest < kernels::kGridChunk ? rest : kernels::kGridChunk);
  all_threads([&](std::uint32_t thread) {
    kernels::Counted own;
    for (std::uint64_t j = first + thread; j < end; j += kernels::kGridThreads)
      step_at<R, D>(tensor, direction_of, decays, j, own);
    counted[thread] = own;
  });
  add_up_block(counted, all_threads);
  all_threads([&](std::uint32_t thread) {
    if (thread == 0) grid.counted[block] = counted[0];
  });
}

// The second pass: one block adds up what the blocks of one tensor have seen.
template <class Threads>
CAUTIOUS_DEVICE inline void report_tensor(const kernels::Grid& grid, std::uint32_t index, kernels::Counted* counted,
                                          Threads all_threads) {
  const kernels::GridTensor& tensor = grid.tensors[index];
  all_threads([&](std::uint32_t thread) {
    kernels::Counted own;
    for (std::uint32_t b = thread; b < tensor.blocks; b += kernels::kGridThreads) {
      add_to(own, grid.counted[tensor.first_block + b]);
    }
    counted[thread] = own;
  });
  add_up_block(counted, all_threads);
  all_threads([&](std::uint32_t thread) {
    if (thread > 0) return;
    const kernels::Counted& sum = counted[0];
    double* seen = grid.seen + kernels::kGridSeen * index;
    seen[0] = static_cast<double>(sum.decayed), seen[1] = static_cast<double>(sum.active);
    seen[2] = static_cast<double>(sum.nonfinite);
    seen[3] = sum.x2, seen[4] = sum.g2, seen[5] = sum.u2, seen[6] = tensor.spent * sum.pull;
  });
}

}  // namespace cautious::CAUTIOUS_ISA
