// Two limits of Adam + CWD on the front that do not agree: the learning rate to 0 with fixed betas, and with betas that go to 1
// along with it, which is the flow of Table 1.
#include "lab/dynamics/convergence.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "lab/problem/problem.h"

namespace cautious::lab {
namespace {

constexpr double kRadian = std::numbers::pi / 180;
constexpr double kFixedTime = 100, kFlowTime = 40;  // steps times learning rate
constexpr double kFixedBeta1 = 0.9, kFixedBeta2 = 0.99;

// Plain steps, on the circle about (3, 3) from 0.02 outside. Returns the mean angle over the last tenth.
double angle_after(double start, double lr, double beta1, double beta2, double lambda, double eps, double time) {
  const Problem& circle = problem("circle");
  Point x = {3 + 1.02 * std::cos(start * kRadian), 3 + 1.02 * std::sin(start * kRadian)}, g(2);
  double m[2] = {}, v[2] = {}, sum = 0;
  const auto steps = std::llround(time / lr), late = steps - steps / 10;
  double power1 = 1, power2 = 1;
  for (auto n = 0LL; n < steps; ++n) {
    circle.gradient(x, g);
    power1 *= beta1, power2 *= beta2;
    for (std::size_t i = 0; i < 2; ++i) {
      m[i] += (1 - beta1) * (g[i] - m[i]);
      v[i] += (1 - beta2) * (g[i] * g[i] - v[i]);
      const double u = m[i] / (1 - power1) / (std::sqrt(v[i] / (1 - power2)) + eps);
      x[i] -= lr * (u + (u * x[i] >= 0 ? lambda * x[i] : 0));
    }
    if (n >= late) sum += std::fmod(std::atan2(x[1] - 3, x[0] - 3) / kRadian + 360, 360);
  }
  return sum / static_cast<double>(steps - late);
}

}  // namespace

AdamLimits adam_limits(double lambda, double eps) {
  AdamLimits limits;
  for (const double lr : {0.01, 0.003, 0.001}) {
    const auto end = [&](double start) { return angle_after(start, lr, kFixedBeta1, kFixedBeta2, lambda, eps, kFixedTime); };
    limits.fixed.push_back({lr, end(205), end(250)});
  }
  for (const double lr : {1e-3, 2e-4, 5e-5}) {
    const auto end = [&](double start) { return angle_after(start, lr, 1 - lr, 1 - lr, lambda, eps, kFlowTime); };
    limits.flowing.push_back({lr, end(205), end(250)});
  }
  return limits;
}

bool toward_balance(const LimitRow& row) {
  return row.from_205 > 205 && row.from_205 < 250 && row.from_250 < 250 && row.from_250 > 205;
}
bool from_balance(const LimitRow& row) { return row.from_205 < 205 && row.from_250 > 250; }

report::Table limits_table(const AdamLimits& limits) {
  report::Table table{
      .name = "dynamics_limits",
      .title = "Adam + CWD on the circle's front: steps with a learning rate that goes to 0",
      .head = {"betas", "learning rate", "from 205° to", "from 250° to", "|x| = |y| is at 225°"},
      .rows = {},
      .note =
          "Mean angle over the last tenth of the steps; steps times learning rate: 100 with fixed betas, 40 with "
          "betas that go to 1, whose places are not those of the flow yet."};
  const auto add = [&](const std::string& betas, const std::vector<LimitRow>& rows) {
    for (const LimitRow& row : rows) {
      table.rows.push_back({betas, fmt::format("{:g}", row.lr), fmt::format("{:.1f}°", row.from_205),
                            fmt::format("{:.1f}°", row.from_250),
                            toward_balance(row) ? "towards it"
                            : from_balance(row) ? "away from it"
                                                : "neither"});
    }
  };
  add(fmt::format("{:g}, {:g}", kFixedBeta1, kFixedBeta2), limits.fixed);
  add("1 - lr, 1 - lr", limits.flowing);
  return table;
}

}  // namespace cautious::lab
