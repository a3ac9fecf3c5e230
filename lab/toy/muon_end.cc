// Why Muon + CWD does not end on the Pareto front, on the smallest problem that shows it: f = (<A, X> - b)^2 / (2 |A|^2) with A
// = [[3, 1], [2, 3]]. The gradient is a multiple of A, so the update is +P or -P with P the polar factor of A, a rotation
// proportional to [[6, -1], [1, 6]]. The iterates slide to x parallel to the update, X = b P / <A, P>. There the entry above
// the diagonal is negative, though A's is positive: moving it to 0 raises <A, X>, and another entry can shrink in return.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr std::array<double, 4> kA{3, 1, 2, 3}, kP{6, -1, 1, 6};
constexpr double kB = 3.7;  // X = P / 10

double equation(PointView x) {
  double sum = -kB;
  for (std::size_t i = 0; i < 4; ++i) sum += kA[i] * x[i];
  return sum;
}

Problem one_equation() {
  constexpr double kScale = 1.0 / 23;  // 1 / |A|^2
  Problem problem;
  problem.name = problem.title = "one equation";
  problem.tensors = {{"X", {2, 2}}};
  problem.start = {1.5, 0.8, -0.5, 1};
  problem.least = 0;
  problem.value = [](PointView x) { return kScale / 2 * std::pow(equation(x), 2); };
  problem.gradient = [](PointView x, std::span<double> g) {
    for (std::size_t i = 0; i < 4; ++i) g[i] = kScale * equation(x) * kA[i];
  };
  problem.hessian = [](PointView, Matrix& h) {
    h = Matrix::NullaryExpr(4, 4, [](Eigen::Index i, Eigen::Index j) {
      return kScale * kA[static_cast<std::size_t>(i)] * kA[static_cast<std::size_t>(j)];
    });
  };
  return problem;
}

std::string as_matrix(const Point& x) { return fmt::format("[[{:.3f}, {:.3f}], [{:.3f}, {:.3f}]]", x[0], x[1], x[2], x[3]); }

}  // namespace

const std::string_view kMuonByHand =
    "f = (⟨A, X⟩ - 3.7)² with A = [[3, 1], [2, 3]], whose polar factor is P = [[6, -1], [1, 6]] / √37. Updates are ±P, so the "
    "slide ends where X is parallel to P, at X = [[0.6, -0.1], [0.1, 0.6]]: ⟨A, X⟩ = 1.8 - 0.1 + 0.2 + 1.8 = 3.7. But [[0.6, "
    "0], [0.1, 0.567]] has 1.8 + 0 + 0.2 + 1.7 = 3.7 too, and no entry is larger";

const std::string_view kMuonByMomentum =
    "the same A. The update still pushes x₁₂ toward the sign of P₁₂ = -1/√37, while the mask by m, whose signs are A's, lets "
    "decay pull it back in the other half of the time: x₁₂ rests below 0 though A₁₂ > 0. Such an X is beaten: x₁₂ = 0 raises "
    "⟨A, X⟩, and another entry can shrink in return";

MuonEnd muon_end(std::string_view arm) {
  const Problem problem = one_equation();
  ToyOptions options;
  options.steps = 20'000;
  MuonEnd found;
  found.end = toy_path(problem, parse_arm(arm, options.weight_decay), options).back();
  const auto nearest = nearest_stationary(problem, found.end, 1);
  if (nearest) found.pareto = pareto(problem, *nearest, kOn).pareto;
  for (std::size_t i = 0; i < 4; ++i) found.off = std::max(found.off, std::abs(found.end[i] - kP[i] * kB / 37));
  return found;
}

Claim muon_claim() {
  const auto ends = [](std::string_view arm) {
    const MuonEnd found = muon_end(arm);
    return fmt::format("{}, {}", as_matrix(found.end), found.pareto == Pareto::optimal ? "Pareto-optimal" : "beaten");
  };
  return {.text = "On the example by hand, Muon + CWD comes to rest where X is parallel to the polar factor",
          .source = "",
          .outcome = Outcome::noted,
          .evidence = fmt::format(
              "Muon + CWD ends at {}; with the mask by m at {}; Adam + CWD at {}", ends("muon schedule=exact decay=cautious"),
              ends("muon schedule=exact decay=cautious mask=momentum"), ends("adam decay=cautious beta2=0.95"))};
}

}  // namespace cautious::lab
