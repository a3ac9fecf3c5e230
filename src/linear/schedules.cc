// The published coefficients, and what follows from them.
#include "linear/orthogonal.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious {
namespace {

// Jordan's, of the paper's code base: chosen for its slope at 0; it never settles on 1.
constexpr std::array<Quintic, 5> kPaper{{{3.4445, -4.7750, 2.0315},
                                         {3.4445, -4.7750, 2.0315},
                                         {3.4445, -4.7750, 2.0315},
                                         {3.4445, -4.7750, 2.0315},
                                         {3.4445, -4.7750, 2.0315}}};
// You's, one polynomial per step.
constexpr std::array<Quintic, 5> kQuintic{{{4.0848, -6.8946, 2.9270},
                                           {3.9505, -6.3029, 2.6377},
                                           {3.7418, -5.5913, 2.3037},
                                           {2.8769, -3.1427, 1.2046},
                                           {2.8366, -3.0525, 1.2012}}};
// Amsel et al., "The Polar Express": greedily optimal polynomials, in the five-step form in use and in the eight-step one.
constexpr std::array<Quintic, 5> kPolarExpress{{{8.156554524902461, -22.48329292557795, 15.878769915207462},
                                                {4.042929935166739, -2.808917465908714, 0.5000178451051316},
                                                {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
                                                {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
                                                {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}}};
constexpr std::array<Quintic, 8> kPolarExpress8{{{8.2051, -22.9019, 16.4607},
                                                 {4.0664, -2.8612, 0.5184},
                                                 {3.9096, -2.8234, 0.5250},
                                                 {3.2856, -2.4153, 0.4853},
                                                 {2.2779, -1.6198, 0.3985},
                                                 {1.8726, -1.2307, 0.3585},
                                                 {1.8564, -1.2132, 0.3568},
                                                 {1.875, -1.25, 0.375}}};
// Grishina et al., Chebyshev-optimised Newton-Schulz.
constexpr std::array<Quintic, 5> kCans{{{8.4703, -25.1081, 18.6293},
                                        {4.1828, -3.1087, 0.5806},
                                        {3.9619, -2.9541, 0.5630},
                                        {3.2866, -2.4647, 0.5074},
                                        {2.2737, -1.6447, 0.4162}}};

std::span<const Quintic> published(NewtonSchulz schedule) {
  switch (schedule) {
    case NewtonSchulz::paper:
      return kPaper;
    case NewtonSchulz::quintic:
      return kQuintic;
    case NewtonSchulz::polar_express:
      return kPolarExpress;
    case NewtonSchulz::polar_express_8:
      return kPolarExpress8;
    case NewtonSchulz::cans:
      return kCans;
    case NewtonSchulz::turbo:  // Boissin et al.: the preconditioner replaces You's first step
      return std::span(kQuintic).last<4>();
    case NewtonSchulz::exact:
    case NewtonSchulz::custom:
      break;
  }
  return {};
}

double after(std::span<const Quintic> steps, double sigma) {
  for (const Quintic& step : steps) {
    const double square = sigma * sigma;
    sigma *= step.a + square * (step.b + square * step.c);
  }
  return sigma;
}

}  // namespace

namespace linear {

Beginning beginning(NewtonSchulz schedule) {
  switch (schedule) {
    case NewtonSchulz::polar_express:
      return {.factor = 1.02};
    case NewtonSchulz::polar_express_8:
      return {.factor = 1.01};
    case NewtonSchulz::turbo:
      return {.start = Start::rows};
    default:
      return {};
  }
}

}  // namespace linear

void check(const Polar& how) {
  const std::size_t given = how.coefficients.size();
  const bool custom = how.schedule == NewtonSchulz::custom;
  if (given > 0 && !custom) {
    throw Error(Fault::usage, fmt::format("coefficients are given, but schedule is '{}'; they belong to schedule 'custom'",
                                          name_of(how.schedule)));
  }
  if (custom && (given == 0 || given % 3 != 0)) {
    throw Error(Fault::usage,
                fmt::format("coefficients has {} numbers; schedule 'custom' needs three for each step: a,b,c", given));
  }
  if (how.schedule == NewtonSchulz::exact && how.steps > 0) {
    throw Error(Fault::usage, fmt::format("steps is {}, but schedule 'exact' has none; leave it 0", how.steps));
  }
}

std::vector<Quintic> quintics(const Polar& how) {
  const std::span<const Quintic> known = published(how.schedule);
  std::vector<Quintic> steps(known.begin(), known.end());
  for (std::size_t i = 0; i + 2 < how.coefficients.size(); i += 3) {
    steps.push_back({how.coefficients[i], how.coefficients[i + 1], how.coefficients[i + 2]});
  }
  if (how.steps > 0 && !steps.empty()) steps.resize(static_cast<std::size_t>(how.steps), steps.back());
  return steps;
}

Band band(const Polar& how, double from) {
  check(how);
  if (how.schedule == NewtonSchulz::exact) return {1, 1};
  const std::vector<Quintic> steps = quintics(how);
  const double factor = linear::beginning(how.schedule).factor;
  // Evenly in the logarithm: the polynomials oscillate faster the smaller the singular value.
  constexpr int kPoints = 200'000;
  Band seen{after(steps, from / factor), after(steps, from / factor)};
  for (int i = 1; i <= kPoints; ++i) {
    const double sigma = after(steps, std::pow(from, 1 - i / double(kPoints)) / factor);
    seen.low = std::min(seen.low, sigma);
    seen.high = std::max(seen.high, sigma);
  }
  return seen;
}

}  // namespace cautious
