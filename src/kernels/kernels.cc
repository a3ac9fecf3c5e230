// The kernels of one instruction set: compiled once for each, with CAUTIOUS_ISA naming the namespace. Nothing here may
// instantiate a function outside that namespace, or the linker could hand AVX code to a CPU without it.
#include "kernels/kernels.h"

#include "kernels/algorithm1.h"
#include "kernels/bf16.h"

namespace cautious::CAUTIOUS_ISA {
namespace {

using kernels::Counted;
using kernels::kTile;
using kernels::Prepared;

// Runs body with FullTile for a full tile and with n otherwise: one source for both loops.
template <class Body>
inline void by_count(std::size_t n, Body body) {
  if (n == kTile) {
    body(kernels::FullTile{});
  } else {
    body(n);
  }
}

template <class Ready>
void store_ready(const Ready& ready, Prepared& out) {
  static_assert(sizeof(ready) <= sizeof(out.bytes) && __is_trivially_copyable(Ready));
  __builtin_memcpy(out.bytes, &ready, sizeof(ready));
}

template <class R, class T>
void prepare_rule(const void* rule, std::int64_t t, Prepared& out) {
  store_ready(direction<T>(*static_cast<const R*>(rule), t), out);
}

template <class D, class T>
void prepare_decay(const void* decay, const kernels::SeenNumbers& seen, Prepared& out) {
  store_ready(ready_mask<T>(*static_cast<const D*>(decay), seen), out);
}

template <class R, class T>
void fill(const Prepared& rule, const T* __restrict g, T* __restrict m, T* __restrict v, T* __restrict u, std::size_t count) {
  const DirectionOf<R, T> direction_of = *reinterpret_cast<const DirectionOf<R, T>*>(rule.bytes);
  by_count(count, [&](auto n) {
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (moments_of<R, T>() == 2) {
        u[i] = direction_of(g[i], m[i], v[i]);
      } else if constexpr (moments_of<R, T>() == 1) {
        u[i] = direction_of(g[i], m[i]);
      } else {
        u[i] = direction_of(g[i]);
      }
    }
  });
}

template <class D, bool sums, class T, bool momentum = false>
void apply(const kernels::Terms<T>& terms, const kernels::Streams<T>& at, std::size_t count, Counted& counted) {
  by_count(count, [&](auto n) { apply_tile<D, sums, momentum>(terms, at.u, at.g, at.x, at.x0, at.m, at.first, n, counted); });
}

template <bool sums, class T>
void apply_projection(const kernels::Terms<T>& terms, const kernels::Streams<T>& at, std::size_t count, Counted& counted) {
  by_count(count, [&](auto n) { project_tile<sums>(terms, at.u, at.g, at.x, at.x0, n, counted); });
}

template <class T>
void scale(double factor, const T* in, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(factor * static_cast<double>(in[i]));
}

template <class T>
double survey(const T* g, std::size_t n, std::int64_t& nonfinite) {
  const double sum = exact_sum_squares(g, n);
  if (!(sum <= __DBL_MAX__)) nonfinite += count_nonfinite(g, n);
  return sum;
}

template <class T, class... R>
constexpr void set_fills(kernels::Table<T>& table, const std::variant<R...>*) {
  std::size_t i = 0;
  ((table.fill[i++] = {moments_of<R, T>(), &prepare_rule<R, T>, &fill<R, T>}), ...);
}

template <class T, class D>
constexpr kernels::Apply<T> apply_under() {
  kernels::Apply<T> made{};
  if constexpr (!kProjects<D>) {
    made = {&prepare_decay<D, T>, {{&apply<D, false, T>, &apply<D, true, T>}, {}}};
    if constexpr (kMaskBy<D>) made.run[1][0] = &apply<D, false, T, true>, made.run[1][1] = &apply<D, true, T, true>;
  }
  return made;
}

template <class T, class... D>
constexpr void set_applies(kernels::Table<T>& table, const std::variant<D...>*) {
  std::size_t i = 0;
  ((table.apply[i++] = apply_under<T, D>()), ...);
}

template <class T>
constexpr kernels::Table<T> make_table() {
  kernels::Table<T> table{};
  set_fills(table, static_cast<const Rule*>(nullptr));
  set_applies(table, static_cast<const Decay*>(nullptr));
  table.project[0] = &apply_projection<false, T>;
  table.project[1] = &apply_projection<true, T>;
  table.scale = &scale<T>;
  table.survey = &survey<T>;
  return table;
}

void load(const std::uint16_t* __restrict in, float* __restrict out, std::size_t count) {
  by_count(count, [&](auto n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = widen(in[i]);
  });
}

void store_nearest(const float* __restrict in, std::uint16_t* __restrict out, std::size_t count) {
  by_count(count, [&](auto n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = nearest(in[i]);
  });
}

void store_stochastic(const float* in, std::uint16_t* out, std::size_t count, kernels::Stream stream, std::uint64_t first) {
  if (count == kTile) {
    store_stochastic_tile(in, out, stream, first);
    return;
  }
  float tile[kTile] = {};
  std::uint16_t stored[kTile];
  __builtin_memcpy(tile, in, count * sizeof(float));
  store_stochastic_tile(tile, stored, stream, first);
  __builtin_memcpy(out, stored, count * sizeof(std::uint16_t));
}

void load_split(const std::uint16_t* __restrict high, const std::int16_t* __restrict low, float* __restrict out,
                std::size_t count) {
  by_count(count, [&](auto n) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = float_of(join<std::uint32_t>(high[i], static_cast<std::uint32_t>(static_cast<std::int32_t>(low[i]))));
    }
  });
}

void store_split(const float* __restrict in, std::uint16_t* __restrict high, std::int16_t* __restrict low, std::size_t count) {
  by_count(count, [&](auto n) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t bits = splittable(word_of(in[i]));
      high[i] = static_cast<std::uint16_t>(split_high(bits));
      low[i] = static_cast<std::int16_t>(split_low(bits));
    }
  });
}

#define CAUTIOUS_TEXT_OF(name) #name
#define CAUTIOUS_TEXT(name) CAUTIOUS_TEXT_OF(name)

constexpr kernels::Kernels kKernels{CAUTIOUS_TEXT(CAUTIOUS_ISA),
                                    make_table<float>(),
                                    make_table<double>(),
                                    {&load, &store_nearest, &store_stochastic, &load_split, &store_split}};

}  // namespace

const kernels::Kernels& all_kernels() { return kKernels; }

}  // namespace cautious::CAUTIOUS_ISA
