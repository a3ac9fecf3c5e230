// What the kernels of one instruction set offer. A step walks each tensor in tiles: `fill` writes the direction u of a tile
// from the gradient and the moments, `apply` moves the parameters (Algorithm 1). Two stages over one tile in L1: still one pass
// over memory, but the compiled loops are rules + decays instead of rules x decays. For what is used most, `walk` does both
// stages of a whole chunk in one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include <cautious/decays.h>
#include <cautious/rules.h>

namespace cautious::kernels {

inline constexpr std::size_t kTile = 256;

// The coefficients of a rule or a decay at one step, ready for the loop.
struct alignas(32) Prepared {
  unsigned char bytes[96];
};

template <class T>
struct Fill {
  int moments;  // how many the rule keeps
  void (*prepare)(const void* rule, std::int64_t t, Prepared& out);
  void (*run)(const Prepared& rule, const T* g, T* m, T* v, T* u, std::size_t n);
};

// Random bits of one tensor at one step (docs/spec.md, "Random bits").
struct Stream {
  std::uint32_t k0 = 0, k1 = 0;
};

template <class T>
struct Terms {
  T lr, wd;
  Prepared decay;
  Stream chance;  // of a random decay
};

template <class T>
struct Streams {
  const T* u;
  const T* g;
  T* x;
  const T* x0;          // null without an anchor
  std::uint64_t first;  // index of the tile's first coordinate in its tensor
  const T* m;           // null unless the mask goes by the momentum
};

// What a pass over some coordinates saw; pull is the sum of |x| (or |x - x0|) over decayed coordinates.
struct Counted {
  std::int64_t decayed = 0, active = 0, nonfinite = 0;
  double x2 = 0, g2 = 0, u2 = 0, pull = 0;
};

// Odds by bins of size, for one bin or a pack of them.
struct Odds {
  const std::int32_t* of_bin = nullptr;
  template <class W>
  auto operator[](const W& bin) const {
    return looked_up(of_bin, bin);
  }
};

// What a decay may have seen of the whole tensor.
using SeenNumbers = Seen<double, Odds>;

// Stage 2 under one decay. Null where the decay is not of Algorithm 1's form.
template <class T>
struct Apply {
  using Run = void (*)(const Terms<T>&, const Streams<T>&, std::size_t n, Counted&);
  void (*prepare)(const void* decay, const SeenNumbers& seen, Prepared& out);
  Run run[2][2];  // by direction and by momentum (null where the decay does not choose); without and with sums
};

template <class T>
struct Table {
  Fill<T> fill[std::variant_size_v<Rule>];
  Apply<T> apply[std::variant_size_v<Decay>];
  typename Apply<T>::Run project[2];                                 // selective projection decay; k = wd r is passed as wd
  void (*scale)(double factor, const T* in, T* out, std::size_t n);  // the product is in double, then rounded to T
  // Sum of squares, and the number of non-finite entries added to `nonfinite`.
  double (*survey)(const T* g, std::size_t n, std::int64_t& nonfinite);
};

// A chunk to walk over: x and g in one type, moments in f32.
struct Walk {
  void* x;
  const void* g;
  float *m, *v;  // v is null with one moment
  std::size_t n;
  std::uint64_t first;  // index of the chunk's first coordinate in its tensor
  Stream rounding;
};
enum class Memory { f32, nearest, stochastic };  // the last two: bf16
inline constexpr std::size_t kMemories = 3;
// One chunk; or several small ones, of at most a tile each, which costs less than one at a time.
using WalkRun = void (*)(const Prepared& rule, const Terms<float>&, const Walk* chunks, std::size_t count, Counted* counted);

// bf16 in memory, f32 in the tile.
struct Bf16Table {
  void (*load)(const std::uint16_t* in, float* out, std::size_t n);
  void (*store_nearest)(const float* in, std::uint16_t* out, std::size_t n);
  void (*store_stochastic)(const float* in, std::uint16_t* out, std::size_t n, Stream stream, std::uint64_t first);
  void (*load_split)(const std::uint16_t* high, const std::int16_t* low, float* out, std::size_t n);
  void (*store_split)(const float* in, std::uint16_t* high, std::int16_t* low, std::size_t n);
};

struct Kernels {
  const char* name;
  Table<float> f32;
  Table<double> f64;
  Bf16Table bf16;
  // Without and with sums; null for a rule or decay that goes through fill and apply.
  WalkRun walk[kMemories][std::variant_size_v<Rule>][std::variant_size_v<Decay>][2];
};

template <class T>
const Table<T>& table(const Kernels& kernels) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

}  // namespace cautious::kernels
