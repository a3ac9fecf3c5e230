#include "bench/machine.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "bench/rounds.h"

// The body for the widest vectors that this CPU has, chosen at run time.
#if defined(__x86_64__)
#define CAUTIOUS_WIDEST(name, parameters, arguments)                                                         \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"), flatten)) void name##_avx512 parameters { \
    name##_body arguments;                                                                                   \
  }                                                                                                          \
  __attribute__((target("avx2,fma"), flatten)) void name##_avx2 parameters { name##_body arguments; }        \
  void name##_any parameters { name##_body arguments; }                                                      \
  void name parameters {                                                                                     \
    if (__builtin_cpu_supports("avx512vl")) return name##_avx512 arguments;                                  \
    if (__builtin_cpu_supports("avx2")) return name##_avx2 arguments;                                        \
    name##_any arguments;                                                                                    \
  }
#else
#define CAUTIOUS_WIDEST(name, parameters, arguments) \
  void name parameters { name##_body arguments; }
#endif

namespace cautious::bench {
namespace {

constexpr std::size_t kChunk = 64 * 1024;  // what is smaller runs on one thread

[[gnu::always_inline]] inline void traffic3_body(float* __restrict x, const float* __restrict g, float* __restrict m,
                                                 float* __restrict v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = 0.5f * m[i] + g[i];
    v[i] = 0.5f * v[i] + g[i];
    x[i] = 0.5f * x[i] + g[i];
  }
}
CAUTIOUS_WIDEST(traffic3,
                (float* __restrict x, const float* __restrict g, float* __restrict m, float* __restrict v, std::size_t n),
                (x, g, m, v, n))

[[gnu::always_inline]] inline void traffic2_body(float* __restrict x, const float* __restrict g, float* __restrict m,
                                                 std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = 0.5f * m[i] + g[i];
    x[i] = 0.5f * x[i] + g[i];
  }
}
CAUTIOUS_WIDEST(traffic2, (float* __restrict x, const float* __restrict g, float* __restrict m, std::size_t n), (x, g, m, n))

[[gnu::always_inline]] inline void traffic16_body(std::uint16_t* __restrict x, const std::uint16_t* __restrict g,
                                                  std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<std::uint16_t>(x[i] + g[i]);
}
CAUTIOUS_WIDEST(traffic16, (std::uint16_t* __restrict x, const std::uint16_t* __restrict g, std::size_t n), (x, g, n))

[[gnu::always_inline]] inline void halve_body(float* __restrict m, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) m[i] = 0.5f * m[i] + 1.0f;
}
CAUTIOUS_WIDEST(halve, (float* __restrict m, std::size_t n), (m, n))

[[gnu::always_inline]] inline void floor_tile_body(const float* __restrict g, const float* __restrict v, float* __restrict u,
                                                   std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) u[i] = g[i] / std::sqrt(v[i]);
}
CAUTIOUS_WIDEST(floor_tile, (const float* __restrict g, const float* __restrict v, float* __restrict u, std::size_t n),
                (g, v, u, n))

[[gnu::always_inline]] inline void read_sum_body(const float* x, std::size_t n, float* sum) {
  constexpr std::size_t kLanes = 64;
  float sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane];
  for (; i < n; ++i) sums[0] += x[i];
  for (const float lane : sums) *sum += lane;
}
CAUTIOUS_WIDEST(read_sum, (const float* x, std::size_t n, float* sum), (x, n, sum))

// 16-bit and 32-bit streams side by side in tiles, so that all of them are walked at once.
void mixed(const Traffic& t, std::size_t first, std::size_t count) {
  constexpr std::size_t kTile = 1024;
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t at = first + done, n = std::min(kTile, count - done);
    traffic16(t.x16 + at, t.g16 + at, n);
    halve(t.m + at, n);
    if (t.v != nullptr) halve(t.v + at, n);
  }
}

void chunk_of(const Traffic& t, std::size_t first, std::size_t count) {
  if (t.x16 != nullptr) {
    mixed(t, first, count);
  } else if (t.v != nullptr) {
    traffic3(t.x + first, t.g + first, t.m + first, t.v + first, count);
  } else {
    traffic2(t.x + first, t.g + first, t.m + first, count);
  }
}

std::size_t entries(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }

}  // namespace

void run_traffic(const Traffic& traffic, int threads) {
  const auto chunks = static_cast<std::ptrdiff_t>((traffic.n + kChunk - 1) / kChunk);
  if (threads == 1 || chunks == 1) {
    chunk_of(traffic, 0, traffic.n);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::ptrdiff_t c = 0; c < chunks; ++c) {
    const std::size_t first = static_cast<std::size_t>(c) * kChunk;
    chunk_of(traffic, first, std::min(kChunk, traffic.n - first));
  }
}

Floor::Floor(std::size_t n, int threads) : n_(n), threads_(threads), tiles_(static_cast<std::size_t>(threads)) {
  for (Tile& tile : tiles_) {
    for (std::size_t i = 0; i < kTile; ++i) tile.g[i] = tile.v[i] = 1.0f + static_cast<float>(i);
  }
}

void Floor::run() {
  const auto part = [this](std::size_t thread, std::size_t first, std::size_t last) {
    Tile& tile = tiles_[thread];
    for (; first < last; first += kTile) {
      floor_tile(tile.g, tile.v, tile.u, std::min(kTile, last - first));
      asm volatile("" : : "r"(tile.u) : "memory");  // keeps the work
    }
  };
  if (threads_ == 1 || n_ <= kChunk) {
    part(0, 0, n_);
    return;
  }
#pragma omp parallel num_threads(threads_)
  {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num()), count = static_cast<std::size_t>(omp_get_num_threads());
    part(thread, n_ * thread / count, n_ * (thread + 1) / count);
  }
}

void read_all(const float* values, std::size_t n) {
  float sum = 0;
  read_sum(values, n, &sum);
  asm volatile("" : : "r"(&sum) : "memory");  // keeps the work
}

Sgemm::Sgemm(int n) : n_(n), a_(entries(n), 0.5f), b_(entries(n), 0.25f), c_(entries(n)) {}

void Sgemm::run(int threads) {
  omp_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, n_, n_, 1, a_.data(), n_, b_.data(), n_, 0, c_.data(), n_);
}

double Sgemm::gflops(int threads) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    run(threads);
    best = std::max(best, flops() / 1e9 / seconds_since(start));
  }
  return best;
}

double Sgemm::flops() const { return 2.0 * n_ * n_ * n_; }

}  // namespace cautious::bench
