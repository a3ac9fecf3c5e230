// Muon with cautious decay. The nuclear norm is a norm, so at a fixed point the gradient vanishes (appendix C). But algorithm 5
// masks by the entries of the orthogonal factor O, and the norm does not look at entries: while the gradient has one singular
// value that is not 0, entries of O can change sign from step to step, and masked decay then balances the update on average.
//
// Such an average has O-bar + lambda s X = 0 with s in [0, 1] and O-bar in the subdifferential of the nuclear norm at M* != 0,
// whose spectral norm is 1: so lambda |X|_F >= 1 is necessary. With the mask by the momentum there is none: the entries of
// O-bar M* add up to |M*|_* > 0, so one of them is positive; there the mask is off, or X has the sign of M* and the sum is not
// 0. For a K that is a sum over coordinates there is none either, as an update changes sign only where its gradient is 0.
//
// 2 x 2, M* of rank one: its factors are a rotation and a reflection, taken for the parts theta and 1 - theta of the time. An
// entry where both have the same sign cannot balance, which leaves the pair I and J = [0 1; 1 0], up to signs. The diagonal
// then moves for the part theta and is 0, of either sign, for the rest, where the mask is on at most always: lambda |x_ii| >=
// theta / (1 - theta), and lambda |x_ij| >= (1 - theta) / theta. So lambda^2 min(|x11|, |x22|) min(|x12|, |x21|) >= 1 is
// necessary.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/hash.h"
#include "lab/fixedpoint/fixedpoint.h"
#include "lab/linear.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr std::uint64_t kMuonProblems = 12, kMuonSeeds = 4;

struct Mask {
  const char* name;
  Decay decay;
};
const std::array<Mask, 4> kMasks{
    {{"O (algorithm 5)", Cautious{}}, {"M", Cautious{MaskBy::momentum}}, {"∇f", Gradient{}}, {"no decay", None{}}}};

double slope_of(const Posed& problem, PointView y) { return residual_at({.target = Target::original}, problem, y); }

bool is_biased(double slope) { return !(slope <= kSolved); }

// The end after an eighth of the steps; where that has a bias, after half of them.
struct Ended {
  Point y;
  double slope = 0;  // the largest entry of grad f
};
Ended ended(const Arm& arm, const Posed& problem, const FixedpointOptions& options) {
  Ended found;
  for (const std::int64_t steps : {options.steps / 8, std::max<std::int64_t>(options.steps / 2, 10000)}) {
    found.y = rest(arm, problem, {.steps = steps});
    found.slope = slope_of(problem, found.y);
    if (!is_biased(found.slope)) break;
  }
  return found;
}

// One problem: the largest entry of grad f at the end, for every mask.
struct MuonTrial {
  std::array<double, kMasks.size()> rest{};
  double shorter = 0;            // mask by O, after a quarter of the steps
  double from_minimiser = 0;     // started where grad f = 0, after an eighth of them
  double small = 0;              // mask by O, the problem scaled to lambda |X*|_F = 0.9
  double first = 0, second = 0;  // singular values of grad f, mask by O
  double extent = 0;             // lambda |X|_F there
};

Matrix minimiser_of(const MatrixLeastSquares& problem) {
  return solve_definite(problem.a.transpose() * problem.a, Matrix(problem.a.transpose() * problem.b));
}

MuonTrial muon_trial(const MatrixLeastSquares& least_squares, const FixedpointOptions& options) {
  const Pace pace = pace_of(options), quarter{.steps = options.steps / 4}, eighth{.steps = options.steps / 8};
  const Posed problem = pose("least squares", least_squares, kWeightDecay);
  const Matrix minimiser = minimiser_of(least_squares);
  Posed solved = problem;
  for (std::size_t i = 0; i < solved.start.size(); ++i) solved.start[i] = minimiser.data()[i] / kWeightDecay;
  MuonTrial trial;
  const Point y = rest(muon_cwd(kRows), problem, pace), g = slope_at(problem, y);
  const Eigen::VectorXd values = lab::singular_values(Matrix(Eigen::Map<const Matrix>(g.data(), kRows, kColumns)));
  trial.rest[0] = largest(g);
  trial.first = values(0), trial.second = values(1);
  trial.extent = as_vector(PointView(y)).norm();
  for (std::size_t k = 1; k < kMasks.size(); ++k) {
    trial.rest[k] = ended(muon_cwd(kRows, kMasks[k].decay), problem, options).slope;
  }
  trial.shorter = slope_of(problem, rest(muon_cwd(kRows), problem, quarter));
  trial.from_minimiser = slope_of(problem, rest(muon_cwd(kRows), solved, eighth));
  const Posed small = pose("small", {least_squares.a, least_squares.b * (0.9 / minimiser.norm())}, kWeightDecay);
  trial.small = slope_of(small, rest(muon_cwd(kRows), small, eighth));
  return trial;
}

// On how many problems of another seed the mask leaves a bias.
std::size_t biased_of_seed(std::uint64_t seed, const Decay& decay, const FixedpointOptions& options) {
  std::size_t biased = 0;
  for (const MatrixLeastSquares& one : muon_cwd_problems(seed)) {
    const Posed problem = pose("least squares", one, kWeightDecay);
    biased += is_biased(ended(muon_cwd(kRows, decay), problem, options).slope);
  }
  return biased;
}

struct SeedRange {
  std::array<std::vector<std::size_t>, 2> counts;  // of the first two masks, one per seed

  std::string text(std::size_t mask, std::uint64_t seed) const {
    const auto [least, most] = std::ranges::minmax(counts[mask]);
    return fmt::format("{} of {} over seeds {} to {}",
                       least == most ? std::to_string(least) : fmt::format("{} to {}", least, most), kMuonProblems, seed,
                       seed + kMuonSeeds - 1);
  }
};

SeedRange over_muon_seeds(const std::vector<MuonTrial>& own, const FixedpointOptions& options) {
  SeedRange range;
  for (std::size_t mask = 0; mask < range.counts.size(); ++mask) {
    range.counts[mask].push_back(static_cast<std::size_t>(
        std::ranges::count_if(own, [&](const MuonTrial& trial) { return is_biased(trial.rest[mask]); })));
    for (std::uint64_t k = 1; k < kMuonSeeds; ++k) {
      range.counts[mask].push_back(biased_of_seed(options.seed + k, kMasks[mask].decay, options));
    }
  }
  return range;
}

report::Table trials_table(const std::vector<MuonTrial>& trials, std::int64_t steps) {
  report::Table table;
  table.name = "fixedpoint_muon_cwd";
  table.title = "Muon + CWD on random least squares: the largest entry of ∇f at the end, by what the mask looks at";
  table.head = {"problem"};
  for (const Mask& mask : kMasks) table.head.emplace_back(mask.name);
  table.head.insert(table.head.end(), {fmt::format("O, {} steps", steps / 4), "O, from the minimiser", "O, λ|X*| = 0.9",
                                       "O: singular values of ∇f", "second", "O: λ|X|"});
  double rank_one = 0;
  for (const MuonTrial& trial : trials) {
    std::vector<std::string> row{std::to_string(table.rows.size() + 1)};
    for (const double value : trial.rest) row.push_back(fmt::format("{:.1e}", value));
    for (const double value : {trial.shorter, trial.from_minimiser, trial.small, trial.first, trial.second}) {
      row.push_back(fmt::format("{:.1e}", value));
    }
    row.push_back(fmt::format("{:.1f}", trial.extent));
    table.rows.push_back(std::move(row));
    if (is_biased(trial.rest[0])) rank_one = std::max(rank_one, trial.second / trial.first);
  }
  if (rank_one > 0) {
    table.note = fmt::format("Where |∇f| stays above {:g}, the second singular value of ∇f is at most {:.1e} of the first.",
                             kSolved, rank_one);
  }
  return table;
}

// |X - C|^2 / 2 of 2 x 2 matrices in units of the box.
Posed pose_nearest(const Eigen::MatrixXd& c, double weight_decay) {
  return pose("nearest matrix", MatrixLeastSquares{Eigen::MatrixXd::Identity(2, 2), c}, weight_decay);
}

// C = -3 [1 1; 1 1], lambda = 1.
struct ByHand {
  Point x, g;
  double by_momentum = 0;
};

ByHand by_hand(const FixedpointOptions& options) {
  const Posed problem = pose_nearest(Eigen::MatrixXd::Constant(2, 2, -3), 1);
  const auto arm = [](Decay decay) {
    Arm made = muon_cwd(2, decay);
    made.recipe.weight_decay = 1;
    return made;
  };
  ByHand found{.x = rest(arm(Cautious{}), problem, pace_of(options)), .g = {}};
  found.g = slope_at(problem, found.x);
  found.by_momentum = slope_of(problem, rest(arm(Cautious{MaskBy::momentum}), problem, pace_of(options)));
  return found;
}

// Random 2 x 2 targets of several sizes.
struct TwoByTwo {
  double size = 0;
  std::size_t biased = 0, count = 0;
  std::size_t by_momentum = 0;                               // of the biased: those that the mask by M does not cure
  double least_product = INFINITY, least_extent = INFINITY;  // of the biased: the necessary conditions
};

TwoByTwo two_by_two(double size, const FixedpointOptions& options) {
  TwoByTwo found{.size = size, .count = 30};
  Random random((options.seed + 1) * base::kGolden + 99);
  for (std::size_t n = 0; n < found.count; ++n) {
    const Posed problem = pose_nearest(size * random_matrix(random, 2, 2), kWeightDecay);
    const auto [y, slope] = ended(muon_cwd(2), problem, options);
    if (!is_biased(slope)) continue;
    ++found.biased;
    found.by_momentum += is_biased(ended(muon_cwd(2, Cautious{MaskBy::momentum}), problem, options).slope);
    const auto size_of = [&](std::size_t i) { return std::abs(y[i]); };
    found.least_product = std::min(found.least_product, std::min(size_of(0), size_of(3)) * std::min(size_of(1), size_of(2)));
    found.least_extent = std::min(found.least_extent, as_vector(PointView(y)).norm());
  }
  return found;
}

report::Table two_by_two_table(const std::vector<TwoByTwo>& rows) {
  report::Table table;
  table.name = "fixedpoint_muon_2x2";
  table.title = "Muon + CWD on |X - C|²/2, random 2 x 2 C: problems with an entry of ∇f above 0.01 at the end";
  table.head = {"size of C, over 1/λ", "mask by O", "of these, mask by M", "least λ² min(|x11|,|x22|) min(|x12|,|x21|)",
                "least λ|X|"};
  for (const TwoByTwo& row : rows) {
    table.rows.push_back({fmt::format("{:g}", row.size), fmt::format("{} of {}", row.biased, row.count),
                          row.biased > 0 ? fmt::format("{} of {}", row.by_momentum, row.biased) : "-",
                          row.biased > 0 ? fmt::format("{:.2f}", row.least_product) : "-",
                          row.biased > 0 ? fmt::format("{:.2f}", row.least_extent) : "-"});
  }
  table.note = "The last columns are over the biased ends; both must be at least 1.";
  return table;
}

Claim bias_claim(const std::vector<MuonTrial>& trials, const SeedRange& range, const ByHand& hand,
                 const FixedpointOptions& options) {
  const MuonTrial& worst = *std::ranges::max_element(trials, {}, [](const MuonTrial& trial) { return trial.rest[0]; });
  const auto from = std::ranges::count_if(trials, [](const MuonTrial& trial) { return is_biased(trial.from_minimiser); });
  double without = 0;
  for (const MuonTrial& trial : trials) without = std::max(without, trial.rest[3]);
  return {
      "Muon with CWD approaches points with ∇f = 0 (the nuclear norm is least at 0 alone)", "section 3, unbiased optimization",
      outcome_of(range.counts[0].front() == 0),
      fmt::format("|∇f| stays above {:g} on {}; at seed {} on {} when started at the minimiser, at most {:.1e}, there "
                  "{:.1e} after a quarter of the steps, singular values of ∇f {:.1e}, then {:.1e}; without decay |∇f| at most "
                  "{:.1e}",
                  kSolved, range.text(0, options.seed), options.seed, from, worst.rest[0], worst.shorter, worst.first,
                  worst.second, without),
      fmt::format("f = |X - C|²/2 with C = -3 [1 1; 1 1], λ = 1: at X = x [1 1; 1 1] ∇f = (x + 3) [1 1; 1 1] has the "
                  "orthogonal factors I and J = [0 1; 1 0], taken half of the time each, and the mask is on for half of the "
                  "time in which an entry is 0, with either sign: 1/2 + λx/4 = 0, so x = -2 and every entry of ∇f is 1. This "
                  "run: X = [{:.3f} {:.3f}; {:.3f} {:.3f}], ∇f = [{:.3f} {:.3f}; {:.3f} {:.3f}]",
                  hand.x[0], hand.x[1], hand.x[2], hand.x[3], hand.g[0], hand.g[1], hand.g[2], hand.g[3])};
}

Claim cure_claim(const std::vector<MuonTrial>& trials, const SeedRange& range, const ByHand& hand,
                 const std::vector<TwoByTwo>& small, const FixedpointOptions& options) {
  double by_m = 0, by_g = 0;
  for (const MuonTrial& trial : trials) by_m = std::max(by_m, trial.rest[1]), by_g = std::max(by_g, trial.rest[2]);
  std::size_t of_small = 0, count = 0;
  for (const TwoByTwo& row : small) of_small += row.by_momentum, count += row.biased;
  return observed(
      std::ranges::max(range.counts[1]) == 0,
      "With the mask by the momentum M, as in the flow of Table 1, Muon + CWD has no biased equilibrium",
      fmt::format("|∇f| stays above {:g} on {}, at most {:.1e}, and on {} of the {} biased 2 x 2 problems; with the mask by ∇f "
                  "at most {:.1e}; on C = -3 [1 1; 1 1] it is {:.0e} at the end",
                  kSolved, range.text(1, options.seed), by_m, of_small, count, by_g, hand.by_momentum));
}

Claim condition_claim(const std::vector<MuonTrial>& trials, const std::vector<TwoByTwo>& small) {
  double extent = INFINITY, product = INFINITY, slope = 0;
  for (const MuonTrial& trial : trials) {
    slope = std::max(slope, trial.small);
    if (is_biased(trial.rest[0])) extent = std::min(extent, trial.extent);
  }
  for (const TwoByTwo& row : small) {
    product = std::min(product, row.least_product), extent = std::min(extent, row.least_extent);
  }
  return observed(
      extent >= 1 && product >= 1 && slope <= kSolved,
      "The bias needs strong decay: λ|X| ≥ 1 (Frobenius), and for 2 x 2 λ² min(|x11|,|x22|) min(|x12|,|x21|) ≥ 1",
      fmt::format("λ|X| of the biased ends at least {:.2f}, the product of the 2 x 2 ones at least {:.2f}; on the {} "
                  "problems scaled to λ|X*| = 0.9 |∇f| is at most {:.1e}",
                  extent, product, trials.size(), slope));
}

// The worst problem again with smaller learning rates and as many more steps.
Claim rate_claim(const std::vector<MuonTrial>& trials, const FixedpointOptions& options) {
  const auto worst =
      std::ranges::max_element(trials, {}, [](const MuonTrial& trial) { return trial.rest[0]; }) - trials.begin();
  const Posed problem = pose("least squares", muon_cwd_problems(options.seed)[static_cast<std::size_t>(worst)], kWeightDecay);
  std::string found;
  double least = INFINITY;
  for (const double lr : {0.03, 0.01, 0.003, 0.001}) {
    const double slope = slope_of(problem, rest(muon_cwd(kRows), problem, {.lr = lr, .steps = options.steps}));
    least = std::min(least, slope);
    found += fmt::format("{}{:.3f} at {:g}", found.empty() ? "" : ", ", slope, lr);
  }
  return observed(is_biased(least), "The bias of Muon + CWD does not go with the learning rate",
                  fmt::format("the problem with the largest |∇f| again, by peak learning rate over 1/λ: {}", found));
}

}  // namespace

Arm muon_cwd(Eigen::Index rows, Decay decay) {
  Arm arm = with_cwd(muon(kWeightDecay, rows));
  arm.recipe.decay = decay;
  return arm;
}

MatrixLeastSquares random_least_squares(Random& random) {
  const Eigen::MatrixXd a = random_matrix(random, kRows + 1, kRows) / 2;
  return {a, random_matrix(random, kRows + 1, kColumns)};
}

// Multiplied so that neighbouring seeds share no problem.
std::vector<MatrixLeastSquares> muon_cwd_problems(std::uint64_t seed) {
  std::vector<MatrixLeastSquares> problems;
  for (std::uint64_t i = 0; i < kMuonProblems; ++i) {
    Random random((seed + 1) * base::kGolden + i);
    problems.push_back(random_least_squares(random));
  }
  return problems;
}

Section bias_section(const FixedpointOptions& options) {
  std::vector<MuonTrial> trials;
  for (const MatrixLeastSquares& problem : muon_cwd_problems(options.seed)) trials.push_back(muon_trial(problem, options));
  const SeedRange range = over_muon_seeds(trials, options);
  const ByHand hand = by_hand(options);
  std::vector<TwoByTwo> small;
  for (const double size : {1.0, 2.0, 4.0, 8.0}) small.push_back(two_by_two(size, options));
  Section section;
  section.title = "Muon + CWD: a mask by O has biased equilibria";
  section.text =
      "Algorithm 5 masks by the orthogonal factor O of the momentum M, Table 1's flow by M itself. Random least squares |AX - "
      "B|²/2 (A 6 x 5, X 5 x 4), exact factors, from X = 0. With a gradient of rank one O is not determined: its entries "
      "change sign from step to step, the mask follows these signs, and decay can balance the update on average.";
  section.claims = {bias_claim(trials, range, hand, options), cure_claim(trials, range, hand, small, options),
                    condition_claim(trials, small), rate_claim(trials, options)};
  section.tables = {trials_table(trials, options.steps), two_by_two_table(small)};
  return section;
}

}  // namespace cautious::lab::fixedpoint
