// The paper's central claim with controls: least squares drawn at random, with more unknowns than equations, so that the
// minimisers are a plane, most of it beaten by smaller ones.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/linear.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

struct Size {
  Eigen::Index equations, unknowns;
  std::vector<std::int64_t> shape;  // of x
};

// The rows of A are orthonormal, so that every optimizer converges; their span is as random as that of any.
Problem one_of(Random& random, const Size& size) {
  const auto normal = [&] { return random.normal(); };
  const Eigen::MatrixXd columns = Eigen::MatrixXd::NullaryExpr(size.unknowns, size.equations, normal);
  const Matrix a = orthogonal_factor(columns).leftCols(size.equations).transpose();
  const Eigen::VectorXd b = Eigen::VectorXd::NullaryExpr(size.equations, [&] { return random.sign() * random.uniform(1, 6); });
  Problem problem;
  problem.name = "random least squares";
  problem.tensors = {{"x", size.shape}};
  for (Eigen::Index i = 0; i < size.unknowns; ++i) problem.start.push_back(4 * random.normal());
  problem.least = 0;
  problem.value = [=](PointView x) { return 0.5 * (a * as_vector(x) - b).squaredNorm(); };
  problem.gradient = [=](PointView x, std::span<double> g) { as_vector(g) = a.transpose() * (a * as_vector(x) - b); };
  problem.hessian = [=](PointView, Matrix& h) { h = a.transpose() * a; };
  return problem;
}

// Ends at a minimiser, within kOn of its size, and that one is Pareto-optimal by the linear program.
bool ends_pareto(const Problem& problem, const Point& end) {
  const auto nearest = nearest_stationary(problem, end, 1);
  const double size = as_vector(PointView(end)).norm();
  return nearest && nearest->distance <= kOn * (1 + size) && pareto(problem, *nearest, kOn).pareto == Pareto::optimal;
}

constexpr std::size_t kDraws = 3;  // of all problems: how much of a count is chance?

std::vector<Problem> drawn(const Size& size, std::size_t problems, std::size_t draw) {
  Random random(1000 * draw + static_cast<std::uint64_t>(10 * size.equations + size.unknowns));
  std::vector<Problem> all;
  for (std::size_t k = 0; k < problems; ++k) all.push_back(one_of(random, size));
  return all;
}

// How many of the problems end so, for an arm, and on the first draw for its controls.
struct Counts {
  std::array<std::size_t, kDraws> cautious{};
  std::size_t none = 0, plain = 0, opposed = 0;

  void add(const Counts& other) {
    for (std::size_t k = 0; k < kDraws; ++k) cautious[k] += other.cautious[k];
    none += other.none;
    plain += other.plain;
    opposed += other.opposed;
  }
};

Counts count(const Size& size, std::size_t problems, const ToyArm& arm, const ToyOptions& options) {
  const auto with = [&](const Decay& decay) {
    ToyArm other = arm;
    other.recipe.decay = decay;
    return other;
  };
  Counts counts;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    for (const Problem& problem : drawn(size, problems, draw)) {
      const auto ends = [&](const ToyArm& one) {
        return ends_pareto(problem, toy_path(problem, one, options).back()) ? 1u : 0u;
      };
      counts.cautious[draw] += ends(arm);
      if (draw > 0) continue;
      counts.none += ends(with(None{}));
      counts.plain += ends(with(Decoupled{}));
      counts.opposed += ends(with(Opposed{}));
    }
  }
  return counts;
}

struct Family {
  std::string_view arm;  // with CWD
  bool matrices = false;
  std::string_view by_hand = {};  // why it may fail
  std::string_view source = "section 3.2";
};
const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"adam decay=cautious beta2=0.95"},
      {"lion decay=cautious"},
      {"sgd decay=cautious lr=0.5"},
      {"sgdm decay=cautious lr=0.1"},
      {"muon schedule=exact decay=cautious", true, kMuonByHand},
      {"muon schedule=exact decay=cautious mask=momentum", true, kMuonByMomentum, "section 3.2, with the mask of Table 1"},
  };
  return all;
}

Claim claim_of(const std::string& arm, const Counts& counts, std::size_t count, const Family& family) {
  const auto mutation = [&](std::string change, std::size_t found) {
    return Mutation{std::move(change), fmt::format("{} of {}", found, count), found < count};
  };
  Claim claim{.text = fmt::format("{} ends at a locally Pareto-optimal minimiser, from any start", arm),
              .source = std::string(family.source),
              .outcome = outcome_of(std::ranges::count(counts.cautious, count) == kDraws),
              .evidence = fmt::format(
                  "{} of {} runs on random least squares do, by the linear program, and {} and {} on two other draws",
                  counts.cautious[0], count, counts.cautious[1], counts.cautious[2])};
  if (claim.outcome == Outcome::holds) {
    claim.mutations = {mutation("without decay", counts.none), mutation("decay without a mask", counts.plain),
                       mutation("decay where u x < 0", counts.opposed)};
  } else {
    claim.evidence += fmt::format("; without decay {} do, with plain decay {}", counts.none, counts.plain);
    claim.by_hand = family.by_hand;
  }
  return claim;
}

}  // namespace

Section random_problems(std::size_t problems_per_size, const Progress& progress) {
  const ToyOptions options;
  const std::vector<Size> vectors{{1, 4, {4}}, {3, 8, {8}}, {5, 8, {8}}},
      matrices{{1, 4, {2, 2}}, {3, 8, {2, 4}}, {5, 8, {2, 4}}};
  Section section;
  section.title = "Random problems, with controls";
  section.text = fmt::format(
      "One start on one problem can be luck. Here are {} least-squares problems |A x - b|²/2 of each size, A (with orthonormal "
      "rows), b and the start "
      "drawn at random, with fewer equations than unknowns. With CWD, does every run end at a minimiser that is "
      "Pareto-optimal, and how "
      "many do without decay, with plain decay, and with decay where CWD would not decay? {}.",
      problems_per_size, settings(options));
  section.command = "cautious lab toy";
  report::Table table{
      .name = "toy_random",
      .title = "Ends at a locally Pareto-optimal minimiser",
      .head = {"arm", "equations", "unknowns", "problems", "CWD", "no decay", "plain decay", "decay where u x < 0"},
      .rows = {},
      .note =
          "More equations leave fewer minimisers, of which more are Pareto-optimal: 5 of 8 hardly tells the "
          "arms apart, 1 of 4 does. Plain decay stops beside the minimisers, at a bias."};
  double done = 0;
  for (const Family& family : families()) {
    const ToyArm arm = parse_arm(family.arm, options.weight_decay);
    Counts all;
    std::size_t total = 0;
    for (const Size& size : family.matrices ? matrices : vectors) {
      progress(done / static_cast<double>(families().size() * vectors.size()), "random problems, " + arm.name);
      ++done;
      const Counts counts = count(size, problems_per_size, arm, options);
      table.rows.push_back({arm.name, fmt::format("{}", size.equations), fmt::format("{}", size.unknowns),
                            fmt::format("{}", problems_per_size), fmt::format("{}", counts.cautious[0]),
                            fmt::format("{}", counts.none), fmt::format("{}", counts.plain),
                            fmt::format("{}", counts.opposed)});
      all.add(counts);
      total += problems_per_size;
    }
    section.claims.push_back(claim_of(arm.name, all, total, family));
  }
  section.claims.push_back(muon_claim());
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace cautious::lab
