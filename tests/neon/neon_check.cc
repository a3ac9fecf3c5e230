// The kernels of AArch64 against the portable ones, bit for bit: every rule under every decay of Algorithm 1's form, tile by
// tile, and the walks. Built by a cross compiler and run under an emulator (`make neon`), so it knows neither gtest nor a BLAS.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <cautious/decays.h>
#include <cautious/rules.h>

#include "kernels/kernels.h"

namespace cautious {
namespace portable {
const kernels::Kernels& all_kernels();
}
namespace neon {
const kernels::Kernels& all_kernels();
}

namespace {

using kernels::Counted;
using kernels::Prepared;

// Values of all sizes with zeros, infinities and NaN among them, the same in both runs.
template <class T>
std::vector<T> values(std::size_t n, std::uint32_t seed) {
  std::vector<T> made(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t z = (static_cast<std::uint32_t>(i) + 1) * 0x9e3779b1u + seed * 0x85ebca6bu;
    z = (z ^ (z >> 15)) * 0x846ca68bu;
    const T unit = static_cast<T>(static_cast<std::int32_t>(z)) / static_cast<T>(0x80000000u);
    const int kind = static_cast<int>(z >> 8) % 64;
    made[i] = kind == 0 ? T(0) : kind == 1 ? T(-0.0) : kind == 2 ? unit * T(1e-25) : kind == 3 ? unit * T(1e25) : unit;
  }
  if (n > 40 && seed == 2) made[33] = static_cast<T>(__builtin_inf()), made[40] = static_cast<T>(__builtin_nan(""));
  return made;
}

template <class T>
struct Run {
  std::vector<T> x, m, v, u;
  std::vector<std::uint16_t> x16;
  Counted counted;
};

template <class T>
std::vector<unsigned char> bytes(const std::vector<T>& of) {
  std::vector<unsigned char> made(of.size() * sizeof(T));
  if (!of.empty()) std::memcpy(made.data(), of.data(), made.size());
  return made;
}

// Any NaN agrees with any NaN.
template <class T>
bool same(std::vector<T> a, std::vector<T> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) a[i] = b[i] = 0;
  }
  return bytes(a) == bytes(b);
}

bool same_number(double a, double b) { return a == b || (a != a && b != b); }

bool same(const Counted& a, const Counted& b) {
  return a.decayed == b.decayed && a.active == b.active && a.nonfinite == b.nonfinite && same_number(a.x2, b.x2) &&
         same_number(a.g2, b.g2) && same_number(a.u2, b.u2) && same_number(a.pull, b.pull);
}

template <class T>
const kernels::Table<T>& table_of(const kernels::Kernels& k) {
  return kernels::table<T>(k);
}

template <class T>
Run<T> tile(const kernels::Kernels& all, const Rule& rule, const Decay& decay, std::size_t n, bool sums) {
  const kernels::Table<T>& table = table_of<T>(all);
  Run<T> run{values<T>(n, 1), values<T>(n, 3), values<T>(n, 4), std::vector<T>(n), {}, {}};
  for (T& v : run.v) v = v < 0 ? -v : v;
  const auto g = values<T>(n, 2), x0 = values<T>(n, 5);
  const std::vector<std::int32_t> odds(kSizeBins, 1 << 23);
  Prepared prepared;
  kernels::Terms<T> terms{T(0.01), T(0.1), {}, {7, 9}};
  std::visit([&](const auto& r) { table.fill[rule.index()].prepare(&r, 3, prepared); }, rule);
  table.fill[rule.index()].run(prepared, g.data(), run.m.data(), run.v.data(), run.u.data(), n);
  const auto& apply = table.apply[decay.index()];
  if (apply.prepare != nullptr) {
    std::visit([&](const auto& d) { apply.prepare(&d, {1, 1, 1, 1, {odds.data()}}, terms.decay); }, decay);
  }
  const auto move = apply.prepare != nullptr ? apply.run[0][sums ? 1 : 0] : table.project[sums ? 1 : 0];
  move(terms, {run.u.data(), g.data(), run.x.data(), x0.data(), 0, run.m.data()}, n, run.counted);
  return run;
}

// A walk, or the same in two stages where there is none.
Run<float> walk(const kernels::Kernels& all, const Rule& rule, const Decay& decay, std::size_t n, bool sums, int memory) {
  Run<float> run{values<float>(n, 1),   values<float>(n, 3),           values<float>(n, 4),
                 std::vector<float>(n), std::vector<std::uint16_t>(n), {}};
  for (float& v : run.v) v = v < 0 ? -v : v;
  auto g = values<float>(n, 2);
  std::vector<std::uint16_t> g16(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto upper = [](float a) { return static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, a) >> 16); };
    run.x16[i] = upper(run.x[i]), g16[i] = upper(g[i]);
  }
  Prepared prepared;
  kernels::Terms<float> terms{0.01f, 0.1f, {}, {}};
  const kernels::Stream stream{5, 6};
  std::visit([&](const auto& r) { all.f32.fill[rule.index()].prepare(&r, 3, prepared); }, rule);
  std::visit([&](const auto& d) { all.f32.apply[decay.index()].prepare(&d, {}, terms.decay); }, decay);
  if (const kernels::WalkRun fast = all.walk[memory][rule.index()][decay.index()][sums ? 1 : 0]) {
    const kernels::Walk chunk{memory == 0 ? static_cast<void*>(run.x.data()) : run.x16.data(),
                              memory == 0 ? static_cast<const void*>(g.data()) : g16.data(),
                              run.m.data(),
                              run.v.data(),
                              n,
                              0,
                              stream};
    fast(prepared, terms, &chunk, 1, &run.counted);
    return run;
  }
  std::vector<float> x(kernels::kTile);
  for (std::size_t first = 0; first < n; first += kernels::kTile) {
    const std::size_t count = n - first < kernels::kTile ? n - first : kernels::kTile;
    float* at = memory == 0 ? run.x.data() + first : x.data();
    if (memory != 0)
      all.bf16.load(g16.data() + first, g.data() + first, count), all.bf16.load(run.x16.data() + first, at, count);
    all.f32.fill[rule.index()].run(prepared, g.data() + first, run.m.data() + first, run.v.data() + first, run.u.data(), count);
    all.f32.apply[decay.index()].run[0][sums ? 1 : 0](terms, {run.u.data(), g.data() + first, at, nullptr, first, nullptr},
                                                      count, run.counted);
    if (memory == 1) all.bf16.store_nearest(at, run.x16.data() + first, count);
    if (memory == 2) all.bf16.store_stochastic(at, run.x16.data() + first, count, stream, first);
  }
  return run;
}

template <class List, class Body>
void each(const Body& body) {
  [&]<std::size_t... k>(std::index_sequence<k...>) { (body(List(std::in_place_index<k>)), ...); }
  (std::make_index_sequence<std::variant_size_v<List>>{});
}

}  // namespace
}  // namespace cautious

int main() {
  using namespace cautious;
  const kernels::Kernels &plain = portable::all_kernels(), &fast = neon::all_kernels();
  int checked = 0, wrong = 0;
  const auto check = [&](const auto& a, const auto& b) {
    ++checked;
    wrong += !(same(a.x, b.x) && same(a.m, b.m) && same(a.v, b.v) && a.x16 == b.x16 && same(a.counted, b.counted));
  };
  each<Rule>([&](const Rule& rule) {
    each<Decay>([&](const Decay& decay) {
      for (const bool sums : {false, true}) {
        for (const std::size_t n : {1, 3, 4, 15, 16, 17, 100, 255, 256}) {
          check(tile<float>(plain, rule, decay, n, sums), tile<float>(fast, rule, decay, n, sums));
          check(tile<double>(plain, rule, decay, n, sums), tile<double>(fast, rule, decay, n, sums));
        }
        for (int memory = 0; memory < 3; ++memory) {
          if (fast.walk[memory][rule.index()][decay.index()][0] == nullptr) continue;
          for (const std::size_t n : {5, 160, 256, 700, 1024, 3001}) {
            check(walk(plain, rule, decay, n, sums, memory), walk(fast, rule, decay, n, sums, memory));
          }
        }
      }
    });
  });
  std::printf("%d runs compared, %d differ\n", checked, wrong);
  return wrong == 0 && checked > 0 ? 0 : 1;
}
