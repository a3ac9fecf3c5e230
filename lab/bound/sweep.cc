// Left sides and bounds over steps, step sizes and batches, and in settings drawn at random.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/runs.h"

namespace cautious::lab {
namespace {

BoundPoint at_end(const BoundCase& here, std::size_t steps, double at) {
  BoundPoint point = over_steps(here, {steps}).front();
  point.at = at;
  return point;
}

double ten_to(Random& random, double low, double high) { return std::pow(10, random.uniform(low, high)); }

BoundSetting random_setting(Random& random) {
  constexpr std::array kBetas{0.0, 0.5, 0.9, 0.95, 0.999};
  constexpr std::array kParts{0.0, 0.5, 0.9, 1.0};
  BoundSetting setting;
  setting.beta2 = kBetas[random.below(kBetas.size())];
  setting.beta1 = setting.beta2 * kParts[random.below(kParts.size())];
  setting.eps = ten_to(random, -8, 1.5);
  setting.eta = ten_to(random, -3, -0.3);
  setting.weight_decay = random.below(3) == 0 ? 0 : ten_to(random, -2, 0);
  setting.batch = 1 + random.below(64);
  return setting;
}

std::string in_words(const BoundCase& here) {
  const BoundSetting& s = here.setting;
  return fmt::format("{}, noise {:.2g}, η {:.2g}, β₁ {:.2g}, β₂ {:.3g}, ε {:.2g}, λ {:.2g}, n {}", here.problem->name,
                     here.noise.size, s.eta, s.beta1, s.beta2, s.eps, s.weight_decay, s.batch);
}

}  // namespace

BoundCase usual_case(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds, std::uint64_t seed) {
  return {&problem, problem.noise, setting, problem.start, seeds, seed};
}

BoundCurve over_steps(const BoundCase& usual, const std::vector<std::size_t>& steps) {
  const LeftSide left = left_side(*usual.problem, usual.noise, usual.setting, usual.start, steps, usual.seeds, usual.seed);
  const BoundConstants constants = constants_of(*usual.problem, usual.noise, usual.setting, usual.start, left.radius);
  BoundCurve curve;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const BoundTerms terms = bound_terms(constants, usual.setting, steps[k]);
    curve.push_back({static_cast<double>(steps[k]), left.mean_stationarity[k], terms.sum(),
                     sharper_bound(constants, usual.setting, steps[k]), terms});
  }
  return curve;
}

BoundCurve over_eta(const BoundCase& usual, const std::vector<double>& etas, std::size_t steps) {
  BoundCurve curve;
  for (const double eta : etas) {
    BoundCase here = usual;
    here.setting.eta = eta;
    curve.push_back(at_end(here, steps, eta));
  }
  return curve;
}

BoundCurve over_batch(const BoundCase& usual, const std::vector<std::size_t>& batches, std::size_t steps) {
  BoundCurve curve;
  for (const std::size_t batch : batches) {
    BoundCase here = usual;
    here.setting.batch = batch;
    curve.push_back(at_end(here, steps, static_cast<double>(batch)));
  }
  return curve;
}

BoundCurve along_rate(const BoundCase& usual, const std::vector<std::size_t>& steps, bool batch_is_steps) {
  BoundCurve curve;
  for (const std::size_t count : steps) {
    BoundCase here = usual;
    here.setting.eta = 1 / std::sqrt(static_cast<double>(count));
    if (batch_is_steps) here.setting.batch = count;
    curve.push_back(at_end(here, count, static_cast<double>(count)));
  }
  return curve;
}

Estimate slope_of(const BoundCurve& curve) {
  std::vector<double> x, y;
  for (const BoundPoint& point : curve) {
    x.push_back(point.at);
    y.push_back(point.left.mean);
  }
  return log_log_slope(x, y);
}

const std::vector<BoundMutation>& bound_mutations() {
  using Terms = const BoundTerms&;
  static const std::vector<BoundMutation> mutations{
      {"without K1", [](Terms t) { return t.sum() - t.k1; }},
      {"K1 without its factor G + ε", [](Terms t) { return t.sum() - t.k1 + t.k1 / t.scale; }},
      {"K1 halved", [](Terms t) { return t.sum() - t.k1 / 2; }},
      {"without K2", [](Terms t) { return t.sum() - t.k2; }},
      {"without K3", [](Terms t) { return t.sum() - t.k3; }},
      {"K3 divided by 3", [](Terms t) { return t.sum() - t.k3 * 2 / 3; }},
      {"K3 without the lag of momentum", [](Terms t) { return t.sum() - t.lag; }},
      {"without K4", [](Terms t) { return t.sum() - t.k4; }},
      {"K4 divided by 50", [](Terms t) { return t.sum() - t.k4 + t.k4 / 50; }},
      {"the whole bound halved", [](Terms t) { return t.sum() / 2; }},
  };
  return mutations;
}

void BoundTally::add(const BoundCurve& curve, const std::string& where) {
  for (const BoundPoint& point : curve) {
    ++count;
    if (point.left.mean > point.paper) ++paper_violated;
    if (point.left.mean > point.sharper) ++sharper_violated;
    for (std::size_t k = 0; k < mutants_violated.size(); ++k) {
      if (point.left.mean > bound_mutations()[k].bound(point.terms)) ++mutants_violated[k];
    }
    if (const double ratio = point.left.mean / point.paper; ratio > paper) {
      paper = ratio;
      paper_where = where;
    }
    if (const double ratio = point.left.mean / point.sharper; ratio > sharper) {
      sharper = ratio;
      sharper_where = where;
    }
  }
}

void BoundTally::add(const BoundTally& other) {
  count += other.count;
  paper_violated += other.paper_violated;
  sharper_violated += other.sharper_violated;
  for (std::size_t k = 0; k < mutants_violated.size(); ++k) mutants_violated[k] += other.mutants_violated[k];
  if (other.paper > paper) {
    paper = other.paper;
    paper_where = other.paper_where;
  }
  if (other.sharper > sharper) {
    sharper = other.sharper;
    sharper_where = other.sharper_where;
  }
}

BoundTally random_settings(std::size_t count, std::size_t seeds, std::uint64_t seed) {
  const std::vector<std::size_t> steps{1, 2, 4, 8, 16, 32, 64, 128, 256};
  Random random(seed);
  BoundTally tally;
  for (std::size_t k = 0; k < count; ++k) {
    const BoundProblem& problem = bound_problems()[k % bound_problems().size()];
    BoundCase here = usual_case(problem, random_setting(random), seeds, seed + k);
    here.noise.rarity = 1 + static_cast<int>(random.below(3));
    if (random.below(2) == 0) here.noise.size = 0;
    if (random.below(2) == 0) {
      here.start = problem.minimiser;
      for (double& x : here.start) x += random.uniform(-1e-3, 1e-3);
    }
    tally.add(over_steps(here, steps), in_words(here));
  }
  return tally;
}

}  // namespace cautious::lab
