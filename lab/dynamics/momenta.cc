// Momenta that Muon's direction opposes as much as possible, and random ones.
#include "lab/dynamics/momenta.h"

#include <cmath>
#include <limits>
#include <utility>

#include <cautious/polar.h>

#include "lab/linear.h"

namespace cautious::lab {
namespace {

// The orthogonal matrix nearest in the sense of QR: columns keep their directions in turn.
Eigen::MatrixXd retract(const Eigen::MatrixXd& a) {
  Eigen::MatrixXd q = orthogonal_factor(a);
  for (Eigen::Index j = 0; j < q.cols(); ++j) {
    if (q.col(j).dot(a.col(j)) < 0) q.col(j) *= -1;
  }
  return q;
}

Eigen::MatrixXd kronecker(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  Eigen::MatrixXd product(a.rows() * b.rows(), a.cols() * b.cols());
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    for (Eigen::Index j = 0; j < a.cols(); ++j) {
      product.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
    }
  }
  return product;
}

// Uphill from there, until no step helps.
RankOne climb(RankOne m) {
  double best = opposition(m), step = 0.5;
  const auto n = static_cast<double>(m.p.size());
  for (int round = 0; round < 800 && step > 1e-9; ++round) {
    const Eigen::VectorXd u = m.o * m.p, sizes = m.o.cwiseAbs() * m.p.cwiseAbs();
    const Eigen::VectorXd turned = u.array().sign() * sizes.array();
    const Eigen::MatrixXd of_o = (u.cwiseAbs() * m.p.cwiseAbs().transpose()).cwiseProduct(Eigen::MatrixXd(m.o.array().sign())) +
                                 turned * m.p.transpose();
    const Eigen::VectorXd of_p =
        Eigen::VectorXd(m.p.array().sign() * (m.o.cwiseAbs().transpose() * u.cwiseAbs()).array()) + m.o.transpose() * turned;
    const Eigen::MatrixXd turn = m.o.transpose() * of_o;
    const Eigen::MatrixXd along = m.o * (turn - turn.transpose()) / 2;  // tangent to the orthogonal matrices
    const RankOne next{.o = retract(m.o + step * std::sqrt(n) / (along.norm() + 1e-300) * along),
                       .p = (m.p + step / of_p.norm() * of_p).normalized()};
    if (const double found = opposition(next); found > best) {
      best = found;
      m = next;
      step *= 1.3;
    } else {
      step /= 2;
    }
  }
  return m;
}

// S has kinks, where the gradient leads nowhere: random steps, shorter after every failure.
RankOne polish(RankOne m, Random& random) {
  double best = opposition(m);
  Eigen::MatrixXd turn(m.o.rows(), m.o.cols());
  Eigen::VectorXd move(m.p.size());
  double step = 0.1;
  for (int tried = 0; tried < 2000 && step > 1e-7; ++tried) {
    for (double& entry : turn.reshaped()) entry = random.normal();
    for (double& entry : move) entry = random.normal();
    const RankOne next{.o = retract(m.o + step / turn.norm() * m.o * (turn - turn.transpose())),
                       .p = (m.p + step / move.norm() * move).normalized()};
    if (const double found = opposition(next); found > best) {
      best = found;
      m = next;
      step *= 1.5;
    } else {
      step *= 0.97;
    }
  }
  return m;
}

}  // namespace

double opposition(const RankOne& m) { return (m.o * m.p).cwiseAbs().dot(m.o.cwiseAbs() * m.p.cwiseAbs()); }

double least_threshold(std::int64_t n) { return threshold_of(std::sqrt(static_cast<double>(n))); }

RankOne climb_from_random(Random& random, std::int64_t n, std::size_t starts) {
  RankOne best;
  double most = 0;
  for (std::size_t start = 0; start < starts; ++start) {
    RankOne m{.o = Eigen::MatrixXd(n, n), .p = Eigen::VectorXd(n)};
    for (double& entry : m.o.reshaped()) entry = random.normal();
    for (double& entry : m.p) entry = random.normal();
    m = climb({.o = retract(m.o), .p = m.p.normalized()});
    if (const double found = opposition(m); found > most) most = found, best = m;
  }
  return polish(std::move(best), random);
}

RankOne flat_momentum(std::int64_t n) {
  RankOne four{.o = Eigen::MatrixXd(4, 4), .p = Eigen::VectorXd(4)};
  four.o << 1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1;
  four.o /= 2;
  four.p << 0.5, 0.5, 0.5, -0.5;
  RankOne m = four;
  while (m.p.size() < n) m = {.o = kronecker(m.o, four.o), .p = kronecker(m.p, four.p)};
  return m;
}

RankOne turned_momentum() {
  RankOne m{.o = Eigen::MatrixXd(2, 2), .p = Eigen::VectorXd(2)};
  const double c = std::sqrt(3.0) / 2;
  m.o << c, -0.5, 0.5, c;
  m.p << c, 0.5;
  return m;
}

double worst_rate(const RankOne& m, double lambda, double gamma) {
  constexpr double kFull = 1e-9, kTiny = 1e-9;
  const Eigen::Index n = m.p.size();
  const Matrix momentum = m.o * (m.p * m.p.transpose() + kFull * Eigen::MatrixXd::Identity(n, n));
  const Matrix against = Eigen::MatrixXd(momentum).cwiseProduct(m.o);
  const System system{.flow = Flow::lion_k,
                      .lambda = lambda,
                      .gamma = gamma,
                      .k = {.k = Convex::nuclear},
                      .rows = static_cast<std::int64_t>(n),
                      .cols = static_cast<std::int64_t>(n)};
  const Problem problem = nearest_matrix(momentum);
  const auto d = static_cast<std::size_t>(n * n);
  Point z(2 * d), side(d + 1);
  for (std::size_t i = 0; i < d; ++i) {
    z[d + i] = momentum.data()[i];
    side[i] = sign(z[d + i]);
    z[i] = kTiny * (against.data()[i] < 0 ? -side[i] : side[i]);
  }
  side[d] = determinant(Matrix(m.o)) < 0 ? -1 : 1;
  return lyapunov_rate(system, problem, 1, z, side) / k_value(system, PointView(z).subspan(d));
}

Matrix near_rank_one(Random& random, std::int64_t n, double noise) {
  Eigen::VectorXd u(n), v(n);
  for (double& entry : u) entry = random.normal();
  for (double& entry : v) entry = random.normal();
  Matrix c = u * v.transpose();
  for (double& entry : c.reshaped()) entry += noise * random.normal();
  return c;
}

Problem nearest_matrix(const Matrix& c) {
  Problem problem;
  problem.title = problem.name = "nearest matrix";
  problem.formula = "|X - C|^2 / 2";
  problem.start = Point(static_cast<std::size_t>(c.size()), 0);
  problem.least = 0;
  problem.value = [c](PointView x) { return (as_vector(x) - as_vector(PointView(c.data(), x.size()))).squaredNorm() / 2; };
  problem.gradient = [c](PointView x, std::span<double> g) {
    as_vector(g) = as_vector(x) - as_vector(PointView(c.data(), x.size()));
  };
  problem.hessian = [](PointView x, Matrix& h) {
    h = Matrix::Identity(static_cast<Eigen::Index>(x.size()), static_cast<Eigen::Index>(x.size()));
  };
  return problem;
}

Signs signs_of(const std::vector<Matrix>& matrices) {
  Signs signs{.ratio = std::numeric_limits<double>::infinity()};
  double seen = 0;
  for (const Matrix& m : matrices) {
    Matrix u = m;
    polar(std::span<double>(u.data(), static_cast<std::size_t>(u.size())), u.rows(), u.cols(),
          {.schedule = NewtonSchulz::exact}, 1);
    const Eigen::ArrayXXd product = (u.array() * m.array()).eval();
    const double against = -product.min(0).sum();
    signs.differ += static_cast<double>((product < 0).count());
    seen += static_cast<double>(m.size());
    if (against > 0) signs.ratio = std::min(signs.ratio, product.sum() / against);
  }
  signs.differ /= seen;
  return signs;
}

}  // namespace cautious::lab
