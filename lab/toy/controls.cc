// Arms with something broken on purpose: what a claim says of an arm should not be true of these.
#include <fmt/format.h>

#include <cautious/error.h>

#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

ToyArm with_decay(ToyArm arm, const Decay& decay) {
  arm.recipe.decay = decay;
  return arm;
}

// A slope of its own, so that no stationary point of the problem is one.
constexpr double kBias = 0.1;

Problem biased(Problem problem) {
  problem.gradient = [slope = problem.gradient](PointView x, std::span<double> g) {
    slope(x, g);
    for (double& value : g) value += kBias;
  };
  return problem;
}

}  // namespace

ToyQuestion question_of(const ToyArm& arm, const ToyOptions& options) {
  const Recipe& recipe = arm.recipe;
  const bool sign_like = std::holds_alternative<Adam>(recipe.rule) || std::holds_alternative<Lion>(recipe.rule);
  const bool same_box = recipe.weight_decay == options.weight_decay && recipe.coupling == Coupling::plain;
  if (std::holds_alternative<None>(recipe.decay)) return ToyQuestion::minimiser;
  if (std::holds_alternative<Cautious>(recipe.decay)) return ToyQuestion::front;
  if (std::holds_alternative<Decoupled>(recipe.decay) && sign_like && same_box) return ToyQuestion::box;
  return ToyQuestion::none;
}

std::vector<ToyBroken> broken_arms(const Problem& problem, const ToyArm& arm, const ToyOptions& options) {
  std::vector<ToyBroken> broken;
  const auto add = [&](std::string change, const Problem& where, const Decay& decay) {
    try {
      broken.push_back({std::move(change), toy_path(where, with_decay(arm, decay), options)});
    } catch (const Error& error) {
      if (error.fault() != Fault::failure) throw;  // it diverged: no end to compare
    }
  };
  switch (question_of(arm, options)) {
    case ToyQuestion::minimiser:
      add(fmt::format("{} added to every entry of the gradient", kBias), biased(problem), None{});
      break;
    case ToyQuestion::box:
      add("without decay", problem, None{});
      add("with the mask of CWD", problem, Cautious{});
      break;
    case ToyQuestion::front:
      add("without decay", problem, None{});
      add("decay where u x < 0", problem, Opposed{});
      break;
    case ToyQuestion::none:
      break;
  }
  return broken;
}

}  // namespace cautious::lab
