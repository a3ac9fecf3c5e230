// Muon + CWD on matrices that are too large for locating every switch.
#include <algorithm>
#include <vector>

#include <cautious/polar.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/momenta.h"

namespace cautious::lab {
namespace {

// x' = O - lambda 1(m x <= 0) x,  m' = -alpha (x - c) - gamma m.
struct LargeState {
  Matrix x, m;
};

LargeState large_field(const System& system, const Matrix& c, const LargeState& at) {
  Matrix o = at.m;
  polar(std::span<double>(o.data(), static_cast<std::size_t>(o.size())), o.rows(), o.cols(), {.schedule = NewtonSchulz::exact},
        1);
  const auto decays = (at.m.array() * at.x.array() <= 0).cast<double>();
  return {.x = o.array() - system.lambda * decays * at.x.array(), .m = -system.alpha * (at.x - c) - system.gamma * at.m};
}

LargeState moved(const LargeState& from, const LargeState& by, double step) {
  return {.x = from.x + step * by.x, .m = from.m + step * by.m};
}

Point flat(const LargeState& state) {
  Point z(state.x.data(), state.x.data() + state.x.size());
  z.insert(z.end(), state.m.data(), state.m.data() + state.m.size());
  return z;
}

}  // namespace

LargeFlow large_flow(const System& system, const Matrix& c, double t_end, std::size_t steps) {
  const Problem problem = nearest_matrix(c);
  const double dt = t_end / static_cast<double>(steps);
  LargeFlow found{.first = signs_of({c}).ratio};
  // At time 0 m is 0; the orthogonal factor is that of C as soon as it is not.
  LargeState at{.x = Matrix::Zero(c.rows(), c.cols()), .m = 1e-12 * c};
  std::vector<double> h;
  std::vector<Matrix> momenta;
  for (std::size_t n = 0; n <= steps; ++n) {
    h.push_back(lyapunov(system, problem, 0, flat(at)));
    momenta.push_back(at.m);
    const LargeState a = large_field(system, c, at), b = large_field(system, c, moved(at, a, dt / 2));
    const LargeState d = large_field(system, c, moved(at, b, dt / 2)), e = large_field(system, c, moved(at, d, dt));
    at.x += dt / 6 * (a.x + 2 * b.x + 2 * d.x + e.x);
    at.m += dt / 6 * (a.m + 2 * b.m + 2 * d.m + e.m);
  }
  const double rise = largest_rise(h);
  found.rise = rise / (h.front() - *std::min_element(h.begin(), h.end()));
  found.of_h = rise / h.front();
  double least = h.front(), most = 0;
  for (std::size_t n = 0; n < h.size(); ++n) {
    least = std::min(least, h[n]);
    if (h[n] - least > most) most = h[n] - least, found.until = static_cast<double>(n) * dt;
  }
  found.against = signs_of(momenta).differ;
  return found;
}

}  // namespace cautious::lab
