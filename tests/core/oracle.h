// The oracle: the paper's appendix "Pseudocode of Optimizers with CWD" and every decay in naive double precision, one
// coordinate after the other. It shares no line with the library and takes names and fields as plain data. Beside each result
// it tells how large the terms behind it were (rounding errors are proportional to those, not to the result) and whether all
// decisions of the coordinate are clear of rounding. It does not model bf16 storage, threads or denormals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "polar_oracle.h"
#include "size_oracle.h"

namespace oracle {

using Vector = std::vector<double>;

struct Setup {
  std::string rule = "sgd", k = "l1", decay = "none", coupling = "plain", name = "x";
  double beta = 0.9, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double p = 2, e = 1e-3, fraction = 0.1, density = 0.5, weight_decay = 0;
  double update_rms_clip = 0;
  std::string schedule = "paper", scale = "none";  // of muon and nuclear, as are the matrix's rows and cols
  bool nesterov = false;
  bool by_momentum = false;  // the mask of cautious, opposed and shuffled
  std::size_t rows = 0, cols = 0;
  std::uint64_t seed = 0;
  double doubt = 1e-12;  // a decision nearer than this, relative to its terms, is not clear
};

struct Memory {
  Vector x, m, v, x0;
  std::int64_t t = 0;
};

struct Rates {
  double lr = 0, lr_max = 0, decay_factor = 1, gradient_scale = 1;
};

struct Outcome {
  Vector u;
  Vector u_size, m_size, change;  // magnitude of the terms behind u, m and x' - x
  std::vector<char> clear;
  std::int64_t decayed = 0, active = 0;
  std::int64_t decayed_doubt = 0;  // how far `decayed` may be off where x does not notice: selective with r near 0
  double x2 = 0, g2 = 0, u2 = 0, budget = 0;
  double u2_size = 0;      // of the terms behind u2 where u is not a matter of one coordinate
  double budget_size = 0;  // of the terms behind the budget where it is a small difference
};

inline std::uint64_t name_hash(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const unsigned char letter : text) hash = (hash ^ letter) * 1099511628211ull;
  return hash;
}

inline std::uint64_t scramble(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

inline std::uint32_t bits_of(std::uint64_t key, std::uint64_t j) {
  std::uint32_t z = static_cast<std::uint32_t>(j) ^ static_cast<std::uint32_t>(key);
  z *= 0x9e3779b1u;
  z ^= z >> 15;
  z += static_cast<std::uint32_t>(key >> 32) + static_cast<std::uint32_t>(j >> 32) * 0x85ebca6bu;
  z ^= z >> 16;
  z *= 0x7feb352du;
  z ^= z >> 15;
  z *= 0x846ca68bu;
  return z ^ (z >> 16);
}

// 32 random bits of coordinate j in the tensor's step t; purpose 1 is the random decay, 2 stochastic rounding.
inline std::uint32_t random_bits(std::uint64_t seed, std::uint64_t purpose, std::int64_t t, const std::string& name,
                                 std::uint64_t j) {
  std::uint64_t key = scramble(seed + 0x9e3779b97f4a7c15ull);
  key = scramble(key + purpose);
  key = scramble(key + static_cast<std::uint64_t>(t));
  key = scramble(key + name_hash(name));
  return bits_of(key, j);
}

// What stochastic rounding adds: two coordinates, 16 apart in a block of 256, share a word of the block.
inline std::uint32_t rounding_bits(std::uint64_t seed, std::int64_t t, const std::string& name, std::uint64_t j) {
  const std::uint64_t block = j / 256, at = j % 256;
  const std::uint32_t factor = random_bits(seed, 2, t, name, 2 * block) | 1u;
  const std::uint32_t word =
      (bits_of(0, at / 32 * 16 + at % 16 + 1) | 1u) * factor + random_bits(seed, 2, t, name, 2 * block + 1);
  return at % 32 < 16 ? (word ^ word >> 16) & 0xffffu : word >> 16;
}

inline int sign_of(double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }

// 1(u * x >= 0) by signs, so that the product cannot underflow.
inline bool agree(double u, double x) { return sign_of(u) * sign_of(x) >= 0; }

// Long sums are wider, so that the oracle's own rounding stays out of sight.
inline double norm(const Vector& a) {
  long double sum = 0;
  for (const double value : a) sum += static_cast<long double>(value) * value;
  return static_cast<double>(std::sqrt(sum));
}

// Lion-K's u from z, in place in `out`.
inline void shape(const Setup& s, const Vector& z, const Vector& z_size, Outcome& out) {
  const std::size_t n = z.size();
  const auto entry = [&](std::size_t i, double u, double size, bool clear) {
    out.u[i] = u;
    out.u_size[i] = size;
    if (!clear) out.clear[i] = 0;
  };
  if (s.k == "l2" || s.k == "lp") {
    const double p = s.k == "l2" ? 2 : s.p;
    long double sum = 0;
    for (const double value : z) sum += std::pow(std::fabs(value), p);
    const double whole = std::pow(static_cast<double>(sum), 1 / p);
    for (std::size_t i = 0; i < n; ++i) {
      const double u = z[i] == 0 || whole == 0 ? 0 : sign_of(z[i]) * std::pow(std::fabs(z[i]) / whole, p - 1);
      const double relative = z[i] == 0 ? 0 : z_size[i] / std::fabs(z[i]);
      entry(i, u, std::fabs(u) * (1 + relative) * std::max(1.0, p), std::fabs(z[i]) >= s.doubt * z_size[i]);
    }
  } else if (s.k == "topk") {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::fabs(z[a]) > std::fabs(z[b]); });
    const auto k = static_cast<std::size_t>(std::ceil(s.fraction * static_cast<double>(n)));
    for (std::size_t rank = 0; rank < n; ++rank) {
      const std::size_t i = order[rank];
      const bool kept = rank < k;
      bool clear = std::fabs(z[i]) >= s.doubt * z_size[i];
      if (kept ? k < n : k > 0) {
        const std::size_t rival = order[kept ? k : k - 1];
        const bool both_zero = z[i] == 0 && z[rival] == 0;
        clear =
            clear && (both_zero || std::fabs(std::fabs(z[i]) - std::fabs(z[rival])) > s.doubt * (z_size[i] + z_size[rival]));
      }
      entry(i, kept ? sign_of(z[i]) : 0, kept && z[i] != 0, clear);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const double a = std::fabs(z[i]), doubt = s.doubt * z_size[i];
      if (s.k == "l1") {
        entry(i, sign_of(z[i]), z[i] != 0, a >= doubt);
      } else if (s.k == "huber") {
        entry(i, std::max(-1.0, std::min(1.0, z[i] / s.e)), a - doubt > s.e ? 1 : z_size[i] / s.e, true);
      } else if (s.k == "relativistic") {
        const double root = std::sqrt(z[i] * z[i] + s.e * s.e);
        entry(i, z[i] / root, a / root + z_size[i] / root, true);
      } else if (s.k == "threshold") {
        entry(i, a > s.e ? sign_of(z[i]) : 0, a > s.e, std::fabs(a - s.e) > doubt);
      } else {
        throw std::logic_error("oracle: no K named " + s.k);
      }
    }
  }
}

// u = scale * NewtonSchulz(z). Every entry is made of all of z, so all have terms of one size. Steps that are steep multiply
// the errors of earlier ones: plain f32 products of random matrices are off by up to 4e-6 of the largest entry of u, by 4e-5
// with polar-express and 4e-4 with cans. In f32 the product test allows 8 * 2^-23 of these sizes: 2e-5, 6e-5 and 6e-4.
inline void orthogonalise(const Setup& s, const Vector& z, Outcome& out) {
  const double steepness = s.schedule == "cans" ? 630 : s.schedule == "polar-express" ? 63 : 21;
  polar_oracle::Matrix m(static_cast<int>(s.rows), static_cast<int>(s.cols));
  m.data = z;
  if (polar_oracle::norm(m) == 0) return;
  m = s.schedule == "exact" ? polar_oracle::svd(m).polar : polar_oracle::newton_schulz(m, s.schedule);
  out.u = polar_oracle::times(polar_oracle::scale_of(s.scale, m.rows, m.cols), m).data;
  double size = 0;
  for (const double u : out.u) size = std::max(size, steepness * std::fabs(u));
  for (std::size_t i = 0; i < z.size(); ++i) out.u_size[i] = out.u[i] == 0 ? 0 : size;  // 0: a zero of a vector
  for (const double u : out.u) out.u2_size += 2 * size * std::fabs(u);
}

// The rule: u and the new moments.
inline void direction(const Setup& s, Memory& at, const Vector& g, Outcome& out) {
  const std::size_t n = g.size();
  const auto average = [](double beta, double old, double fresh) { return beta * old + (1 - beta) * fresh; };
  const auto average_size = [](double beta, double old, double fresh) {
    return std::fabs(beta * old) + std::fabs((1 - beta) * fresh);
  };
  if (s.rule == "sgd") {
    for (std::size_t i = 0; i < n; ++i) out.u_size[i] = std::fabs(out.u[i] = g[i]);
  } else if (s.rule == "sgdm") {
    for (std::size_t i = 0; i < n; ++i) {
      out.u_size[i] = out.m_size[i] = average_size(s.beta, at.m[i], g[i]);
      out.u[i] = at.m[i] = average(s.beta, at.m[i], g[i]);
    }
  } else if (s.rule == "adam") {
    const auto t = static_cast<double>(at.t);
    for (std::size_t i = 0; i < n; ++i) {
      out.m_size[i] = average_size(s.beta1, at.m[i], g[i]);
      at.m[i] = average(s.beta1, at.m[i], g[i]);
      at.v[i] = average(s.beta2, at.v[i], g[i] * g[i]);
      const double m_hat = at.m[i] / (1 - std::pow(s.beta1, t));
      const double v_hat = at.v[i] / (1 - std::pow(s.beta2, t));
      const double below = std::sqrt(v_hat) + s.eps;
      out.u[i] = below == 0 ? 0 : m_hat / below;
      out.u_size[i] = below == 0 ? 0 : out.m_size[i] / (1 - std::pow(s.beta1, t)) / below;
    }
  } else if (s.rule == "lion" || s.rule == "lion-k") {
    Vector z(n), z_size(n);
    for (std::size_t i = 0; i < n; ++i) {
      z[i] = average(s.beta1, at.m[i], g[i]);
      z_size[i] = average_size(s.beta1, at.m[i], g[i]);
      out.m_size[i] = average_size(s.beta2, at.m[i], g[i]);
      at.m[i] = average(s.beta2, at.m[i], g[i]);
    }
    Setup shaped = s;
    if (s.rule == "lion") shaped.k = "l1";
    if (shaped.k == "nuclear") return orthogonalise(s, z, out);
    shape(shaped, z, z_size, out);
  } else if (s.rule == "muon") {
    Vector z(n);
    for (std::size_t i = 0; i < n; ++i) {
      out.m_size[i] = std::fabs(s.beta * at.m[i]) + std::fabs(g[i]);
      at.m[i] = s.beta * at.m[i] + g[i];
      z[i] = s.nesterov ? s.beta * at.m[i] + g[i] : at.m[i];
    }
    orthogonalise(s, z, out);
  } else {
    throw std::logic_error("oracle: no rule named " + s.rule);
  }
}

// lr * wd of the step.
inline double shrink(const Setup& s, const Rates& r) {
  const double wd = s.weight_decay * r.decay_factor;
  if (s.coupling == "plain") return r.lr * wd;
  if (s.coupling == "corrected") return r.lr * r.lr / r.lr_max * wd;
  if (s.coupling == "independent") return r.lr / r.lr_max * wd;
  if (s.coupling == "squared") return r.lr * r.lr * wd;
  throw std::logic_error("oracle: no coupling named " + s.coupling);
}

// Selective projection decay: the step without decay, then a pull toward x0 if <g, x - x0> > 0.
inline void selective(const Setup& s, Memory& at, const Vector& g, const Rates& r, Outcome& out) {
  const std::size_t n = g.size();
  const double wd = s.weight_decay * r.decay_factor;
  Vector from(n), to(n), size(n);
  double dot = 0, dot_size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    from[i] = at.x[i] - at.x0[i];
    to[i] = at.x[i] - r.lr * out.u[i] - at.x0[i];
    size[i] = std::fabs(at.x[i]) + std::fabs(at.x0[i]) + r.lr * out.u_size[i];
    dot += g[i] * from[i];
    dot_size += std::fabs(g[i] * from[i]);
  }
  const double far = norm(to), near = norm(from);
  if (std::fabs(dot) < s.doubt * dot_size) std::fill(out.clear.begin(), out.clear.end(), char{0});
  if (std::fabs(far - near) < s.doubt * norm(size)) out.decayed_doubt = static_cast<std::int64_t>(n);
  double ratio = far == 0 ? 0 : std::max(0.0, std::min(1.0, (far - near) / far));
  if (!(dot > 0)) ratio = 0;
  if (ratio > 0) out.decayed = static_cast<std::int64_t>(n);
  const double spread = far == 0 ? 0 : norm(size) / far;
  for (std::size_t i = 0; i < n; ++i) {
    out.change[i] = r.lr * out.u_size[i] + (1 + wd) * size[i] + wd * spread * std::fabs(to[i]);
    out.budget += std::fabs(wd * ratio * to[i]);
    out.budget_size += wd * (size[i] + spread * std::fabs(to[i]));
    at.x[i] = at.x[i] - r.lr * out.u[i] - wd * ratio * to[i];
  }
}

// One step of one tensor: `at` becomes the new x, moments and t.
inline Outcome step(const Setup& s, Memory& at, Vector g, const Rates& r) {
  const std::size_t n = g.size();
  Outcome out;
  out.u.assign(n, 0), out.u_size = out.m_size = out.change = out.u;
  out.clear.assign(n, 1);
  ++at.t;
  for (double& value : g) out.g2 += value * value, value *= r.gradient_scale;
  direction(s, at, g, out);
  const double rms = norm(out.u) / std::sqrt(static_cast<double>(n));
  if (s.update_rms_clip > 0 && rms > s.update_rms_clip) {
    for (double& value : out.u) value *= s.update_rms_clip / rms;
    for (double& value : out.u_size) value *= s.update_rms_clip / rms;
  }

  const bool anchored = s.decay == "anchored" || s.decay == "selective";
  double dot = 0, dot_size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double pull = anchored ? at.x[i] - at.x0[i] : at.x[i];
    out.x2 += at.x[i] * at.x[i], out.u2 += out.u[i] * out.u[i];
    out.active += sign_of(out.u[i]) * sign_of(pull) > 0;
    dot += out.u[i] * at.x[i];
    dot_size += out.u_size[i] * std::fabs(at.x[i]);
    if (std::fabs(out.u[i]) < s.doubt * out.u_size[i]) out.clear[i] = 0;
    if (s.by_momentum && std::fabs(at.m[i]) < s.doubt * out.m_size[i]) out.clear[i] = 0;
  }
  if (s.decay == "selective") {
    selective(s, at, g, r, out);
    return out;
  }
  if (s.decay == "layerwise" && std::fabs(dot) < s.doubt * dot_size) std::fill(out.clear.begin(), out.clear.end(), char{0});
  const double factor = shrink(s, r);
  const double odds = std::floor(s.density * 16777216 + 0.5);
  std::vector<char> struck(n);
  for (std::size_t i = 0; i < n; ++i) struck[i] = agree(s.by_momentum ? at.m[i] : out.u[i], at.x[i]);
  const std::vector<Odds> sizes = s.decay == "shuffled" ? shuffled_odds(at.x, struck, out.clear) : std::vector<Odds>{};
  std::vector<std::size_t> unclear;
  for (std::size_t i = 0; i < n; ++i) {
    const double pull = anchored ? at.x[i] - at.x0[i] : at.x[i];
    bool on = false;
    if (s.decay == "decoupled") on = true;
    if (s.decay == "cautious" || s.decay == "anchored") on = agree(s.by_momentum ? at.m[i] : out.u[i], pull);
    if (s.decay == "opposed") on = !struck[i];
    if (s.decay == "shuffled") {
      const double chance = random_bits(s.seed, 1, at.t, s.name, i) >> 8;
      on = chance < sizes[i].low;
      if (chance >= sizes[i].low && chance < sizes[i].high) unclear.push_back(i);
    }
    if (s.decay == "gradient") on = agree(g[i], at.x[i]);
    if (s.decay == "random") on = random_bits(s.seed, 1, at.t, s.name, i) >> 8 < odds;
    if (s.decay == "layerwise") on = dot >= 0;
    out.decayed += on;
    out.change[i] = r.lr * out.u_size[i] + (on ? std::fabs(factor * pull) : 0);
    if (on) out.budget += std::fabs(factor * pull);
    at.x[i] = at.x[i] - r.lr * out.u[i] - (on ? factor * pull : 0);
  }
  for (const std::size_t i : unclear) out.clear[i] = 0;
  return out;
}

}  // namespace oracle
