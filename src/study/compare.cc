#include "study/compare.h"

#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/text.h"

namespace cautious::study {
namespace {

struct Setup {
  std::string_view optimizer;
  double lr;  // best of a few, for byte models of 100 to 300 thousand parameters at batch 8
  std::vector<std::pair<std::string_view, std::string_view>> keys;
};

const std::vector<Setup>& setups() {
  static const std::vector<Setup> all{
      {"sgd", 0.5, {}},
      {"sgdm", 2, {}},
      {"adam", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"adamw", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"adamc", 5e-3, {{"optimizer.beta2", "0.95"}}},
      {"lion", 1e-3, {{"optimizer.beta2", "0.95"}}},
      {"lion-k", 2e-3, {}},
      {"muon", 1e-2, {{"optimizer.scale", "rms"}, {"optimizer.nesterov", "on"}, {"optimizer.rest.beta2", "0.95"}}},
  };
  return all;
}

const Setup& setup_of(const std::string& optimizer) {
  std::vector<std::string_view> names;
  for (const Setup& setup : setups()) names.push_back(setup.optimizer);
  return setups()[base::index_of_name("optimizer", optimizer, names)];
}

double lr_of(const Comparison& c) { return c.lr > 0 ? c.lr : setup_of(c.optimizer).lr; }

Overrides base_of(const Comparison& c) {
  Overrides base{{"model.preset", c.preset},
                 {"data.path", c.data},
                 {"optimizer.name", c.optimizer},
                 {"optimizer.lr", base::to_text(lr_of(c))}};
  for (const auto& [key, value] : setup_of(c.optimizer).keys) base.emplace_back(key, value);
  base.emplace_back("schedule.warmup_ratio", "0.1");
  base.emplace_back(c.steps > 0 ? "train.steps" : "train.tokens_per_param", c.steps > 0 ? fmt::format("{}", c.steps) : "20");
  base.emplace_back("train.batch_size", "8");
  base.emplace_back("checkpoint.every", "0");
  base.emplace_back("log.tensorboard", "false");
  return base;
}

// What decays in a step is lr times lambda.
std::vector<double> usual_lambdas(double lr) {
  std::vector<double> lambdas;
  for (const double lambda : {0.1, 0.4, 1.0}) lambdas.push_back(lambda * setup_of("adamw").lr / lr);
  return lambdas;
}

Axis lambdas_of(const Comparison& c) {
  Axis axis{"optimizer.weight_decay", {}};
  for (const double lambda : c.lambdas.empty() ? usual_lambdas(lr_of(c)) : c.lambdas) {
    base::check_range("a value of lambdas", lambda, kPositive);
    axis.values.push_back(fmt::format("{:.6g}", lambda));
  }
  return axis;
}

}  // namespace

Plan compare_plan(const Comparison& c) {
  base::check_range("seeds", static_cast<double>(c.seeds), {1, 10000, false, false});
  Plan plan;
  plan.title = fmt::format("Does cautious weight decay help {}?", c.optimizer);
  plan.about = fmt::format(
      "{} with a model of {} on {}. At equal lambda, CWD spends about half of plain decay's budget, so each is taken at its "
      "best "
      "lambda; random has CWD's density and budget is plain decay that spends what CWD spends.",
      c.optimizer, c.preset, c.data);
  plan.base = base_of(c);
  plan.grid = {lambdas_of(c)};
  plan.seeds.resize(c.seeds);
  std::iota(plan.seeds.begin(), plan.seeds.end(), 0);
  const auto arm = [](std::string name, std::string decay) {
    return Arm{
        .name = std::move(name), .overrides = {{"optimizer.decay", std::move(decay)}}, .density_of = "", .budget_of = ""};
  };
  plan.arms = {arm("none", "none"), arm("plain", "decoupled"), arm("cwd", "cautious"),
               Arm{.name = "random", .overrides = {}, .density_of = "cwd", .budget_of = ""},
               Arm{.name = "budget", .overrides = {}, .density_of = "", .budget_of = "cwd"}};
  plan.arms.front().grid = false;
  plan.contrasts = {{.a = "cwd", .b = "plain", .best = true, .primary = true},
                    {.a = "cwd", .b = "random", .best = true, .primary = true},
                    {.a = "cwd", .b = "budget", .best = true, .primary = false},
                    {.a = "cwd", .b = "none", .best = true, .primary = false},
                    {.a = "plain", .b = "none", .best = true, .primary = false}};
  return plan;
}

}  // namespace cautious::study
