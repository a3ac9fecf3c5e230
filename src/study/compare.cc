#include "study/compare.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/text.h"
#include "run/config_table.h"
#include "run/usual.h"

namespace cautious::study {
namespace {

// The optimizer with that model, whatever it is trained on.
run::RunConfig usual_of(const Comparison& c) {
  Overrides settings{{"optimizer.name", c.optimizer}};
  for (const auto& [key, value] : c.settings) {
    if (key.starts_with("model.") || key == "data.tokenizer") settings.emplace_back(key, value);
  }
  return run::read_config({.files = {}, .preset = c.preset, .overrides = settings});
}

std::vector<double> lrs_of(const Comparison& c) { return c.lrs.empty() ? std::vector{usual_of(c).optimizer.lr} : c.lrs; }

// Ten times in a run, where its length is known without its data.
void evaluate_often(Overrides& base) {
  const auto is = [&](std::string_view key) {
    return std::ranges::find(base, key, &Overrides::value_type::first) != base.end();
  };
  if (is("eval.every") || is("train.epochs")) return;
  const auto steps = steps_of(run::read_config({.files = {}, .preset = "", .overrides = base, .typed = false}));
  base.emplace_back("eval.every", fmt::format("{}", std::max<std::int64_t>(1, steps / 10)));
}

std::string in_short(double number) { return fmt::format("{:.6g}", number); }

// Keys that the comparison itself decides, and how to say it.
constexpr std::array<DecidedKey, 7> kComparisonDecides{{{"model.preset", "give --preset NAME"},
                                                        {"data.path", "give --data PATH"},
                                                        {"train.steps", "give --steps N"},
                                                        {"optimizer.name", "give --optimizer NAME"},
                                                        {"optimizer.lr", "give --lr RATE, or several to choose from"},
                                                        {"optimizer.weight_decay", "give --lambdas A,B,... to choose from"},
                                                        {"optimizer.decay", "every arm has its own"}}};

Overrides base_of(const Comparison& c) {
  Overrides base{{"model.preset", c.preset}, {"data.path", c.data}, {"optimizer.name", c.optimizer}};
  if (lrs_of(c).size() == 1) base.emplace_back("optimizer.lr", base::to_text(lrs_of(c).front()));
  for (const auto& [key, value] : run::usual_fields(c.optimizer)) base.emplace_back(key, value);
  base.emplace_back("schedule.warmup_ratio", base::to_text(run::kUsualWarmup));
  const bool image = model::is_image_preset(c.preset);
  if (c.steps > 0) {
    base.emplace_back("train.steps", fmt::format("{}", c.steps));
  } else {
    base.emplace_back(image ? "train.epochs" : "train.tokens_per_param", image ? "5" : "20");
  }
  base.emplace_back("train.batch_size", image ? "128" : "8");
  base.emplace_back("checkpoint.every", "0");
  base.emplace_back("log.tensorboard", "false");
  put(base, c.settings);
  evaluate_often(base);
  return base;
}

// What decays in a step is lr times lambda.
std::vector<double> usual_lambdas(double lr) {
  std::vector<double> lambdas;
  for (const double lambda : {0.1, 0.3, 1.0, 3.0}) lambdas.push_back(lambda * run::usual_lr("adamw") / lr);
  return lambdas;
}

// No decay, then the given lambdas times `reach`, at every learning rate.
std::vector<Axis> grid_of(const Comparison& c, double reach) {
  std::vector<Axis> axes;
  const std::vector<double> lrs = lrs_of(c);
  if (lrs.size() > 1) {
    Axis& axis = axes.emplace_back(Axis{"optimizer.lr", {}});
    for (const double lr : lrs) axis.values.push_back(base::to_text(lr));
  }
  Axis& axis = axes.emplace_back(Axis{"optimizer.weight_decay", {"0"}});
  for (const double lambda : c.lambdas.empty() ? usual_lambdas(lrs.front()) : c.lambdas) {
    base::check_range("a value of lambdas", lambda, kPositive);
    axis.values.push_back(in_short(reach * lambda));
  }
  return axes;
}

Arm arm_of(std::string name, std::string decay) {
  return {.name = std::move(name), .overrides = {{"optimizer.decay", std::move(decay)}}, .density_of = "", .budget_of = ""};
}

constexpr std::array<DecidedKey, 5> kExternalDecides{{{"task", "its runs are external"},
                                                      {"log.decay_trace", "runs that a control repeats have it"},
                                                      {"optimizer.lr", "give lr, or several to choose from"},
                                                      {"optimizer.weight_decay", "give lambdas to choose from"},
                                                      {"optimizer.decay", "every arm has its own"}}};

// At equal lambda CWD removes less than half of what plain decay does.
constexpr double kReach = 2.5;

// As it is written in papers.
std::string proper_name(const std::string& optimizer) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kProper{{{"adam", "Adam"},
                                                                                  {"adamw", "AdamW"},
                                                                                  {"adamc", "AdamC"},
                                                                                  {"lion", "Lion"},
                                                                                  {"lion-k", "Lion-K"},
                                                                                  {"muon", "Muon"},
                                                                                  {"sgd", "SGD"},
                                                                                  {"sgdm", "SGDM"}}};
  const auto found = std::ranges::find(kProper, std::string_view(optimizer), [](const auto& entry) { return entry.first; });
  return found == kProper.end() ? optimizer : std::string(found->second);
}

// `trained`: what with which model on which data.
Plan plan_of(const Comparison& c, const std::string& trained, Overrides base) {
  base::check_range("seeds", static_cast<double>(c.seeds), {1, 10000, false, false});
  base::check_range("tune-seeds", static_cast<double>(c.tune_seeds), {1, 10000, false, false});
  Plan plan;
  plan.title = fmt::format("Does cautious weight decay help {}?", proper_name(c.optimizer));
  plan.about = fmt::format(
      "{}. Plain decay and CWD are each taken at the lambda that is best on {}, which "
      "are not judged; both may choose no decay. At CWD's lambda, shuffled decays as many weights of each size as CWD would, "
      "whatever their direction, and opposed decays exactly those that CWD spares.",
      trained, base::counted(c.tune_seeds, "tuning seed"));
  plan.base = std::move(base);
  plan.grid = grid_of(c, 1);
  plan.seeds.resize(c.seeds);
  std::iota(plan.seeds.begin(), plan.seeds.end(), 0);
  plan.tune_seeds = tuning_seeds(c.tune_seeds);
  Arm none = arm_of("none", "none"), cwd = arm_of("cwd", "cautious");
  cwd.axes = grid_of(c, kReach);
  none.axes = {cwd.axes.begin(), cwd.axes.end() - 1};
  none.grid = !none.axes.empty();
  Arm shuffled = arm_of("shuffled", "shuffled"), opposed = arm_of("opposed", "opposed");
  shuffled.point_of = opposed.point_of = "cwd";
  plan.arms = {none, arm_of("plain", "decoupled"), cwd, shuffled, opposed};
  plan.contrasts = {{.a = "plain", .b = "none", .best = true, .primary = true},
                    {.a = "cwd", .b = "plain", .best = true, .primary = true},
                    {.a = "cwd", .b = "shuffled", .best = true, .primary = true},
                    {.a = "cwd", .b = "opposed", .best = true, .primary = false},
                    {.a = "cwd", .b = "none", .best = true, .primary = false}};
  if (run::works_on_matrices(recipe(c.optimizer).rule)) {
    Arm momentum = arm_of("cwd-momentum", "cautious");
    momentum.overrides.emplace_back("optimizer.mask", "momentum");
    momentum.point_of = "cwd";
    plan.arms.push_back(momentum);
    plan.contrasts.push_back({.a = "cwd-momentum", .b = "cwd", .best = true, .primary = false});
  }
  return plan;
}

}  // namespace

Plan compare_plan(const Comparison& c) {
  (void)recipe(c.optimizer);  // an unknown one is named as it was given
  for (const auto& [key, value] : c.settings) refuse_decided(key, kComparisonDecides);
  return plan_of(c, fmt::format("{} with a model of {} on {}", proper_name(c.optimizer), c.preset, c.data), base_of(c));
}

Plan external_plan(const Comparison& c) {
  for (const auto& [key, value] : c.settings) refuse_decided(key, kExternalDecides);
  if (c.lrs.empty()) throw Error(Fault::usage, "lr is missing; give the learning rate that suits your model, or several");
  if (c.lambdas.empty()) {
    throw Error(Fault::usage, "lambdas is missing; give weight decays to choose from, around the one that you use now");
  }
  for (const double lr : c.lrs) base::check_range("lr", lr, kPositive);
  Overrides base{{"task", "external"}, {"optimizer.name", c.optimizer}};
  if (c.lrs.size() == 1) base.emplace_back("optimizer.lr", base::to_text(c.lrs.front()));
  put(base, c.settings);
  return plan_of(c, fmt::format("{} in a training program of your own", proper_name(c.optimizer)), std::move(base));
}

Plan recorded_plan(const Comparison& c) {
  Plan plan = external_plan(c);
  plan.about +=
      " Tensor by tensor and step by step, random has as many weights decay as CWD did and budget all of them, and both "
      "take as much from them as CWD did, random on average.";
  plan.arms.push_back({.name = "random", .overrides = {}, .density_of = "cwd", .budget_of = ""});
  plan.arms.push_back({.name = "budget", .overrides = {}, .density_of = "", .budget_of = "cwd"});
  for (const char* const control : {"random", "budget"}) {
    plan.contrasts.push_back({.a = "cwd", .b = control, .best = true, .primary = false});
  }
  return plan;
}

Overrides settings_of_recipe(const std::string& line) {
  (void)parse_recipe(line);
  Overrides settings;
  for (const base::Word& word : base::words_of(line)) {
    const std::string text(word.text);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) {
      settings.emplace_back("optimizer.name", text);
    } else {
      settings.emplace_back("optimizer." + text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return settings;
}

}  // namespace cautious::study
