// Both stages of a chunk in one loop, for the rules and decays that most steps use. Not the number of operations limits such a
// loop but the number of them in flight: the chain of one coordinate (moments, root, division, Algorithm 1) is longer than the
// window of a processor. So the stages work on different tiles: while one begins, the division of the one before ends, and the
// one before that is applied. The same operations as tile by tile, and the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/rules.h>

#include "kernels/apply.h"
#include "kernels/bf16.h"
#include "kernels/kernels.h"
#include "kernels/look.h"
#include "kernels/pack.h"
#include "kernels/random_bits.h"
#include "kernels/rows.h"
#include "kernels/words.h"

namespace cautious::CAUTIOUS_ISA {

// How x and g lie in memory. Key is what storing needs to know of the tile.
struct InF32 {
  using Stored = float;
  struct Key {
    Key(kernels::Stream, std::uint64_t) {}
  };
  static constexpr std::size_t kRows = 1;  // that share something
  template <class At>
  static Pack<float> load(At at, const float* from) {
    return at.load(from);
  }
  template <class At>
  static void store(At at, float* to, Pack<float> x, std::size_t, const Key&) {
    at.store(to, x);
  }
  static float number(float stored) { return stored; }
};

struct InBf16 {
  using Stored = std::uint16_t;
  using Key = InF32::Key;
  static constexpr std::size_t kRows = 1;
  template <class At>
  static Pack<float> load(At at, const std::uint16_t* from) {
    return float_of(at.load(from) << 16);
  }
  template <class At>
  static void store(At at, std::uint16_t* to, Pack<float> x, std::size_t, const Key&) {
    at.store(to, nearest(x));
  }
  static float number(std::uint16_t stored) { return widen(stored); }
};

struct Spread {
  static constexpr std::size_t kWords = kernels::kTile / 2;
  constexpr Spread() {
    for (std::uint32_t c = 0; c < kWords; ++c) words[c] = spread_of(c);
  }
  std::uint32_t words[kWords + kColumns] = {};  // with room for the whole of a last pack
};
inline constexpr Spread kSpread;

struct InBf16AtRandom : InBf16 {
  struct Key : RoundingKey<Words<float>> {
    Key(kernels::Stream stream, std::uint64_t first) {
      const std::uint64_t even = first / kernels::kTile * 2;
      const auto word = [&](std::uint64_t at) {
        return random_bits(stream, tile_salt(stream, at), static_cast<std::uint32_t>(at));
      };
      const RoundingKey<std::uint32_t> key = rounding_key(word(even), word(even + 1));
      factor = all_words<float>(key.factor), shift = all_words<float>(key.shift);
    }
  };
  // A word serves the same column of two rows.
  static constexpr std::size_t kRows = 2;
  template <class At>
  static void store(At at, std::uint16_t* to, Pack<float> x, std::size_t i, const Key& key) {
    const std::size_t pair = i / (2 * kColumns), column = i % kColumns;
    const auto word = rounding_word<Words<float>>(key, Full{}.load(kSpread.words + pair * kColumns + column));
    const bool second = i / kColumns % 2 == 1;
    at.store(to, rounded(x, second ? second_chance(word) : first_chance(word)));
  }
};

template <class R>
inline constexpr bool kUnit = requires {
  R::unit;
};

// The stages of the pack at i of a tile: begin, end (of a direction in two parts) and apply.
template <class R, class D, class Memory>
struct Stages {
  using T = float;
  using Stored = typename Memory::Stored;
  using Key = typename Memory::Key;
  static constexpr bool kTwoParts = requires(DirectionOf<R, T> of) { of.begin; };
  static constexpr std::size_t kDelay = kTwoParts ? 2 : 1;  // of apply behind begin, in tiles

  DirectionOf<R, T> direction;
  MaskOf<D, T> decays;
  T lr, wd;
  T *us, *ws;  // a tile of directions, and one of what their first part made

  template <class At, class Column, class Look>
  [[gnu::always_inline]] void begin(const kernels::Walk& tile, At at, std::size_t i, Column column, Look& look) const {
    const Pack<T> g = Memory::load(at, static_cast<const Stored*>(tile.g) + i);
    look.at(column, g);
    Pack<T> m = at.load(static_cast<const T*>(tile.m) + i);
    if constexpr (moments_of<R, T>() == 2) {
      Pack<T> v = at.load(static_cast<const T*>(tile.v) + i);
      if constexpr (kTwoParts) {
        Full{}.store(ws + i, direction.begin(g, m, v));
      } else {
        Full{}.store(us + i, direction(g, m, v));
      }
      at.store(tile.v + i, v);
    } else {
      Full{}.store(us + i, direction(g, m));
    }
    at.store(tile.m + i, m);
  }

  template <class At>
  [[gnu::always_inline]] void end(const kernels::Walk& tile, At at, std::size_t i) const {
    if constexpr (kTwoParts) {
      const T *const w = ws + i, *const m = tile.m + i;
      Full{}.store(us + i, direction.end(Full{}.load(w), at.load(m)));
    }
  }

  template <class At, class Column, class Look>
  [[gnu::always_inline]] void apply(const kernels::Walk& tile, At at, std::size_t i, Column column, const Key& key,
                                    Look& look) const {
    Stored* const x = static_cast<Stored*>(tile.x) + i;
    const Pack<T> u{held(Full{}.load(static_cast<const T*>(us) + i).of)};
    const Pack<T> old{held(Memory::load(at, static_cast<const Stored*>(x)).of)};
    Pack<T> fresh;
    if constexpr (kUnit<R>) {
      const Lane<Pack<T>, Words<T>, Unit<Pack<T>>> lane{u, u, old, {}, {u}};
      fresh = moved(at, column, lr, wd, decays, old, Unit<Pack<T>>{u}, lane, look);
    } else {
      const Lane<Pack<T>, Words<T>> lane{u, u, old, {}, u};
      fresh = moved(at, column, lr, wd, decays, old, u, lane, look);
    }
    Memory::store(at, x, fresh, i, key);
  }
};

// The tiles of a walk: those of one chunk, or several chunks of one tile each.
template <class R, class Memory>
struct Tiles {
  using Stored = typename Memory::Stored;
  const kernels::Walk* chunks;
  std::size_t count;
  bool list;  // several chunks

  Tiles(const kernels::Walk* given, std::size_t chunk_count)
      : chunks(given),
        count(chunk_count > 1 ? chunk_count : (given[0].n + kernels::kTile - 1) / kernels::kTile),
        list(chunk_count > 1) {}
  std::size_t chunk_of(std::size_t k) const { return list ? k : 0; }
  // How many coordinates tile k has; 0: there is no such tile.
  std::size_t size(std::size_t k) const {
    if (k >= count) return 0;
    if (list) return chunks[k].n;
    return k + 1 < count ? kernels::kTile : chunks[0].n - k * kernels::kTile;
  }
  kernels::Walk at(std::size_t k) const {
    kernels::Walk tile = chunks[chunk_of(k)];
    if (list) return tile;
    const std::size_t first = k * kernels::kTile;
    tile.x = static_cast<Stored*>(tile.x) + first;
    tile.g = static_cast<const Stored*>(tile.g) + first;
    tile.m += first;
    if constexpr (moments_of<R, float>() == 2) tile.v += first;
    tile.first += first;
    return tile;
  }
};

// Each of the following looks for itself and adds what it saw; and what it works with is its own: what no one else can see
// stays in registers.

// All stages side by side: begin of the tiles from `first` to `last`, and end and apply of those before them. All have n
// coordinates, whole rows.
template <class R, class D, class Memory, bool sums>
[[gnu::noinline]] void side_by_side(const Stages<R, D, Memory> stages, const Tiles<R, Memory> tiles, std::size_t first,
                                    std::size_t last, std::size_t n, kernels::Counted* counted) {
  using T = float;
  using S = Stages<R, D, Memory>;
  GradientLook<T, sums> gradients;
  ParameterLook<T, sums, OnOf<D, T>> parameters;
  const auto* first_g = static_cast<const typename Memory::Stored*>(tiles.at(first).g);
  kernels::Walk ended = tiles.at(first - S::kDelay), begun = tiles.at(first - 1);
  for (std::size_t k = first; k < last; ++k) {
    const kernels::Walk applied = S::kTwoParts ? ended : begun;
    ended = begun, begun = tiles.at(k);
    const typename Memory::Key key(applied.rounding, applied.first);
    for (std::size_t row = 0; row < n; row += Memory::kRows * kColumns) {
      unrolled<Memory::kRows * kPacks<T>>([&](auto pack) __attribute__((always_inline)) {
        constexpr Index<pack % kPacks<T>> column;
        const std::size_t i = row + pack * Pack<T>::kLanes;
        stages.apply(applied, Full{}, i, column, key, parameters);
        stages.end(ended, Full{}, i);
        stages.begin(begun, Full{}, i, column, gradients);
      });
    }
    kernels::Counted &of_begun = counted[tiles.chunk_of(k)], &of_applied = counted[tiles.chunk_of(k - S::kDelay)];
    gradients.end_tile(of_begun);
    parameters.end_tile(of_applied);
    if (!tiles.list && k + 1 < last) continue;
    const auto* g = tiles.list ? static_cast<const typename Memory::Stored*>(begun.g) : first_g;
    const std::size_t covered = tiles.list ? n : (last - first) * n;
    gradients.end(of_begun, covered, [=](std::size_t i) { return Memory::number(g[i]); });
    parameters.end(of_applied, covered, everywhere<D, T>(stages.decays));
    gradients = {}, parameters = {};
  }
}

// One stage alone, of a tile of n coordinates.
template <bool sums, class R, class D, class Memory>
[[gnu::noinline]] void begin(const Stages<R, D, Memory> stages, const kernels::Walk tile, std::size_t n,
                             kernels::Counted& counted) {
  GradientLook<float, sums> look;
  each_pack<float>(n, [&](auto at, std::size_t i, auto column) { stages.begin(tile, at, i, column, look); });
  look.end_tile(counted);
  const auto* g = static_cast<const typename Memory::Stored*>(tile.g);
  look.end(counted, n, [=](std::size_t i) { return Memory::number(g[i]); });
}

template <class R, class D, class Memory>
[[gnu::noinline]] void end(const Stages<R, D, Memory> stages, const kernels::Walk tile, std::size_t n) {
  each_pack<float>(n, [&](auto at, std::size_t i, auto) { stages.end(tile, at, i); });
}

template <bool sums, class R, class D, class Memory>
[[gnu::noinline]] void apply(const Stages<R, D, Memory> stages, const kernels::Walk tile, std::size_t n,
                             kernels::Counted& counted) {
  ParameterLook<float, sums, OnOf<D, float>> look;
  const typename Memory::Key key(tile.rounding, tile.first);
  each_pack<float>(n, [&](auto at, std::size_t i, auto column) { stages.apply(tile, at, i, column, key, look); });
  look.end_tile(counted);
  look.end(counted, n, everywhere<D, float>(stages.decays));
}

template <class R, class D, class Memory, bool sums>
void walk(const kernels::Prepared& rule, const kernels::Terms<float>& terms, const kernels::Walk* chunks, std::size_t count,
          kernels::Counted* counted) {
  using T = float;
  using S = Stages<R, D, Memory>;
  constexpr std::size_t kTile = kernels::kTile, kDelay = S::kDelay;
  alignas(64) T us[kTile + kColumns], ws[kTile + kColumns];  // with room for the whole of a last pack
  const S stages{*reinterpret_cast<const DirectionOf<R, T>*>(rule.bytes),
                 *reinterpret_cast<const MaskOf<D, T>*>(terms.decay.bytes),
                 terms.lr,
                 terms.wd,
                 us,
                 ws};
  const Tiles<R, Memory> tiles(chunks, count);
  for (std::size_t k = 0; k < tiles.count + kDelay;) {
    const std::size_t n = tiles.size(k);
    std::size_t last = k;
    if (k >= kDelay && n % (Memory::kRows * kColumns) == 0 && tiles.size(k - 1) == n && tiles.size(k - kDelay) == n) {
      while (last < tiles.count && tiles.size(last) == n) ++last;
    }
    if (last > k) {
      side_by_side<R, D, Memory, sums>(stages, tiles, k, last, n, counted);
      k = last;
      continue;
    }
    const std::size_t before = k - 1, old = k - kDelay;  // if there are such tiles
    if (tiles.size(old) > 0) apply<sums>(stages, tiles.at(old), tiles.size(old), counted[tiles.chunk_of(old)]);
    if constexpr (S::kTwoParts) {
      if (tiles.size(before) > 0) end(stages, tiles.at(before), tiles.size(before));
    }
    if (n > 0) begin<sums>(stages, tiles.at(k), n, counted[tiles.chunk_of(k)]);
    ++k;
  }
}

}  // namespace cautious::CAUTIOUS_ISA
