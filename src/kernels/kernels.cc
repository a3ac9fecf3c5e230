// The kernels of one instruction set: compiled once for each, with CAUTIOUS_ISA naming the namespace. Nothing here may
// instantiate a function outside that namespace, or the linker could hand AVX code to a CPU without it.
#include "kernels/kernels.h"

#include "kernels/apply.h"
#include "kernels/bf16.h"
#include "kernels/walk.h"

namespace cautious::CAUTIOUS_ISA {
namespace {

using kernels::Counted;
using kernels::kTile;
using kernels::Prepared;

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
void fill(const Prepared& rule, const T* __restrict g, T* __restrict m, T* __restrict v, T* __restrict u, std::size_t n) {
  const DirectionOf<R, T> direction_of = *reinterpret_cast<const DirectionOf<R, T>*>(rule.bytes);
  each_pack<T>(n, [&](auto at, std::size_t i, auto) {
    const Pack<T> gradient = at.load(g + i);
    if constexpr (moments_of<R, T>() == 2) {
      Pack<T> first = at.load(m + i), second = at.load(v + i);
      at.store(u + i, direction_of(gradient, first, second));
      at.store(m + i, first);
      at.store(v + i, second);
    } else if constexpr (moments_of<R, T>() == 1) {
      Pack<T> first = at.load(m + i);
      at.store(u + i, direction_of(gradient, first));
      at.store(m + i, first);
    } else {
      at.store(u + i, direction_of(gradient));
    }
  });
}

template <class T>
void scale(double factor, const T* in, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(factor * static_cast<double>(in[i]));
}

template <class T>
double survey(const T* g, std::size_t n, std::int64_t& nonfinite) {
  Columns<double> squares;
  each_pack<double>(n, [&](auto at, std::size_t i, auto column) {
    const Pack<double> value = at.load_double(g + i);
    squares.packs[column] = fma(value, value, squares.packs[column]);
  });
  const double sum = total(squares);
  if (!(sum <= __DBL_MAX__)) {
    for (std::size_t i = 0; i < n; ++i) nonfinite += !(abs(g[i]) < static_cast<T>(__builtin_inf()));
  }
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
    made = {&prepare_decay<D, T>, {{&apply<D, false, false, T>, &apply<D, true, false, T>}, {}}};
    if constexpr (kMaskBy<D>) made.run[1][0] = &apply<D, false, true, T>, made.run[1][1] = &apply<D, true, true, T>;
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

void load(const std::uint16_t* __restrict in, float* __restrict out, std::size_t n) {
  each_pack<float>(n, [&](auto at, std::size_t i, auto) { at.store(out + i, float_of(at.load(in + i) << 16)); });
}

void store_nearest(const float* __restrict in, std::uint16_t* __restrict out, std::size_t n) {
  each_pack<float>(n, [&](auto at, std::size_t i, auto) { at.store(out + i, nearest(at.load(in + i))); });
}

void store_stochastic(const float* __restrict in, std::uint16_t* __restrict out, std::size_t n, kernels::Stream stream,
                      std::uint64_t first) {
  const InBf16AtRandom::Key key(stream, first);
  each_pack<float>(n, [&](auto at, std::size_t i, auto) { InBf16AtRandom::store(at, out + i, at.load(in + i), i, key); });
}

void load_split(const std::uint16_t* __restrict high, const std::int16_t* __restrict low, float* __restrict out,
                std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = float_of(join<std::uint32_t>(high[i], static_cast<std::uint32_t>(static_cast<std::int32_t>(low[i]))));
  }
}

void store_split(const float* __restrict in, std::uint16_t* __restrict high, std::int16_t* __restrict low, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = splittable(word_of(in[i]));
    high[i] = static_cast<std::uint16_t>(split_high(bits));
    low[i] = static_cast<std::int16_t>(split_low(bits));
  }
}

// Rules that keep moments and do not shape their direction, under the decays that most steps use.
template <class R, class D>
inline constexpr bool kWalks = kFuses&& moments_of<R, float>() > 0 && !requires(R rule) {
  shaping(rule);
}
&&(std::is_same_v<D, None> || std::is_same_v<D, Decoupled> || std::is_same_v<D, Cautious>);

template <class Memory, class R, class... D>
constexpr void set_walks_of(kernels::WalkRun (&runs)[sizeof...(D)][2], const std::variant<D...>*) {
  std::size_t i = 0;
  const auto set = [&]<class Of>() {
    if constexpr (kWalks<R, Of>) runs[i][0] = &walk<R, Of, Memory, false>, runs[i][1] = &walk<R, Of, Memory, true>;
    ++i;
  };
  (set.template operator()<D>(), ...);
}

template <class Memory, class... R>
constexpr void set_walks(kernels::WalkRun (&runs)[sizeof...(R)][std::variant_size_v<Decay>][2], const std::variant<R...>*) {
  std::size_t i = 0;
  (set_walks_of<Memory, R>(runs[i++], static_cast<const Decay*>(nullptr)), ...);
}

#define CAUTIOUS_TEXT_OF(name) #name
#define CAUTIOUS_TEXT(name) CAUTIOUS_TEXT_OF(name)

constexpr kernels::Kernels make_kernels() {
  kernels::Kernels made{CAUTIOUS_TEXT(CAUTIOUS_ISA),
                        make_table<float>(),
                        make_table<double>(),
                        {&load, &store_nearest, &store_stochastic, &load_split, &store_split},
                        {}};
  const auto rules = static_cast<const Rule*>(nullptr);
  set_walks<InF32>(made.walk[static_cast<int>(kernels::Memory::f32)], rules);
  set_walks<InBf16>(made.walk[static_cast<int>(kernels::Memory::nearest)], rules);
  set_walks<InBf16AtRandom>(made.walk[static_cast<int>(kernels::Memory::stochastic)], rules);
  return made;
}

constexpr kernels::Kernels kKernels = make_kernels();

}  // namespace

const kernels::Kernels& all_kernels() { return kKernels; }

}  // namespace cautious::CAUTIOUS_ISA
