// The numbers of a verdict. Points are chosen on the tuning seeds alone, so on the judged seeds a study is a table of seeds and
// arms; a contrast is judged by the residuals of all arms that the plan's contrasts connect with it.
#include "study/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "run/config_table.h"

namespace cautious::study {
namespace {

constexpr double kNoTest = std::numeric_limits<double>::quiet_NaN();
constexpr double kLowestLevel = 0.0001;  // of a test whose power can be computed

// An arm at a point.
struct Cell {
  const Arm* arm;
  Overrides point;
};

using Cells = std::vector<Cell>;

const Arm& arm_named(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.arms, name, &Arm::name);
  if (found == plan.arms.end()) throw Error(Fault::usage, fmt::format("the plan has no arm '{}'", name));
  return *found;
}

bool is_complete(const std::vector<double>& losses) {
  return std::ranges::none_of(losses, [](double loss) { return std::isnan(loss); });
}

// The arms of a study: where each is judged, and which of them the contrasts connect.
class Arms {
 public:
  explicit Arms(const Results& results) : plan_(results.plan), group_(plan_.arms.size()) {
    for (std::size_t i = 0; i < group_.size(); ++i) group_[i] = i;
    for (const Contrast& contrast : plan_.contrasts) join(contrast.a, contrast.b);
    for (const Arm& arm : plan_.arms) {
      join(arm.name, arm.chooser());
      choices_.push_back(chosen_point(results, arm.name));
    }
  }

  const Choice& choice(const std::string& name) const { return choices_[number_of(name)]; }

  void join(const std::string& a, const std::string& b) {
    const std::size_t from = of(b), to = of(a);
    std::ranges::replace(group_, from, to);
  }
  std::size_t of(const std::string& name) const { return group_[number_of(name)]; }
  std::vector<const Arm*> with(const std::string& name) const {
    std::vector<const Arm*> arms;
    for (const Arm& arm : plan_.arms) {
      if (of(arm.name) == of(name)) arms.push_back(&arm);
    }
    return arms;
  }

 private:
  std::size_t number_of(const std::string& name) const {
    return static_cast<std::size_t>(&arm_named(plan_, name) - plan_.arms.data());
  }

  const Plan& plan_;
  std::vector<std::size_t> group_;
  std::vector<Choice> choices_;
};

// An arm at a point, seed by seed. Runs in the same folder are the same; equal losses alone may be chance, as of a benchmark
// with few items.
struct SeedRuns {
  std::vector<double> losses;
  std::vector<std::string> folders;
  friend bool operator==(const SeedRuns&, const SeedRuns&) = default;
};

SeedRuns seed_runs(const Results& results, const std::string& arm, const Overrides& point) {
  SeedRuns all{losses_of(results, arm, point), {}};
  for (const FinishedRun& run : results.runs) {
    if (!run.run.tuning && run.run.arm == arm && run.run.point == point) all.folders.push_back(run.run.folder);
  }
  return all;
}

// The cells that have every seed, each once: arms without weight decay have the same runs.
std::vector<SeedRuns> complete_runs(const Results& results, const Cells& cells) {
  std::vector<SeedRuns> all;
  for (const Cell& cell : cells) {
    SeedRuns runs = seed_runs(results, cell.arm->name, cell.point);
    if (is_complete(runs.losses) && std::ranges::find(all, runs) == all.end()) all.push_back(std::move(runs));
  }
  return all;
}

Layout layout_among(const std::vector<SeedRuns>& all, const SeedRuns& a, const SeedRuns& b) {
  const auto at_a = std::ranges::find(all, a), at_b = std::ranges::find(all, b);
  if (at_a == all.end() || at_b == all.end() || at_a == at_b) return {};
  std::vector<std::vector<double>> losses;
  std::ranges::transform(all, std::back_inserter(losses), &SeedRuns::losses);
  return layout_for(losses, static_cast<std::size_t>(at_a - all.begin()), static_cast<std::size_t>(at_b - all.begin()));
}

// The name of the axis and its value.
std::string edge_text(const Arm& arm, const Choice& choice) {
  Overrides at;
  std::ranges::copy_if(choice.point, std::back_inserter(at),
                       [&](const auto& entry) { return std::ranges::find(choice.edges, entry.first) != choice.edges.end(); });
  return fmt::format("{} is at the edge of its grid ({})", arm.name, point_text(at));
}

std::string contrast_name(const Contrast& contrast, const Overrides& a, const Overrides& b) {
  if (a == b && !a.empty()) return fmt::format("{} - {} at {}", contrast.a, contrast.b, point_text(a));
  return fmt::format("{} - {}", cell_text(contrast.a, a), cell_text(contrast.b, b));
}

// The difference of a and b at their points; `cells` are those that its residuals are pooled with.
ContrastResult judged(const Results& results, const Contrast& contrast, const Overrides& point_a, const Overrides& point_b,
                      const Cells& cells) {
  ContrastResult result;
  result.contrast = contrast;
  result.primary = contrast.primary;
  result.point_a = point_a;
  result.point_b = point_b;
  result.name = contrast_name(contrast, point_a, point_b);
  const SeedRuns runs_a = seed_runs(results, contrast.a, point_a), runs_b = seed_runs(results, contrast.b, point_b);
  const std::vector<double>&a = runs_a.losses, &b = runs_b.losses;
  result.planned = a.size();
  std::vector<double> kept_a, kept_b;
  for (std::size_t seed = 0; seed < a.size(); ++seed) {
    if (std::isnan(a[seed]) || std::isnan(b[seed])) continue;
    kept_a.push_back(a[seed]);
    kept_b.push_back(b[seed]);
  }
  result.paired = paired(kept_a, kept_b);
  result.complete = kept_a.size() == a.size();
  result.layout = layout_among(complete_runs(results, cells), runs_a, runs_b);
  if (result.layout.arms == 0) result.layout = layout_of({kept_a, kept_b});
  result.difference = difference_in(result.layout, result.paired.difference);
  const bool same = kept_a == kept_b && (runs_a.folders == runs_b.folders || result.layout.sd == 0);
  if (result.paired.n >= 2) result.outcome = same ? Outcome::same : Outcome::open;
  return result;
}

// What a better choice among the arm's points might gain. None for an arm that another one chooses for.
double regret_of(const Results& results, const Arm& arm, const Overrides& chosen, const Layout& layout) {
  const std::vector<Overrides> points = points_of(results, arm.name);
  if (arm.chooser() != arm.name || points.size() < 2) return 0;
  const double own = standing_of(tuning_losses_of(results, arm.name, chosen)).mean;
  double most = 0;
  for (const Overrides& point : points) {
    const std::vector<double> losses = tuning_losses_of(results, arm.name, point);
    if (point == chosen || !is_complete(losses)) continue;
    most = std::max(most, difference_in(layout, own - standing_of(losses).mean, losses.size()).interval.high);
  }
  return most;
}

ContrastResult at_chosen_points(const Results& results, const Contrast& contrast, const Arms& arms) {
  const Arm &a = arm_named(results.plan, contrast.a), &b = arm_named(results.plan, contrast.b);
  const Choice &choice_a = arms.choice(a.name), &choice_b = arms.choice(b.name);
  if (!choice_a.decided || !choice_b.decided) {
    ContrastResult result;
    result.contrast = contrast;
    result.name = fmt::format("{} - {}", a.name, b.name);
    result.primary = contrast.primary;
    result.planned = results.plan.seeds.size();
    result.paired = paired({}, {});
    result.difference = difference_in({}, kNoTest);
    return result;
  }
  Cells cells;
  for (const Arm* const arm : arms.with(a.name)) {
    if (const Choice& choice = arms.choice(arm->name); choice.decided) cells.push_back({arm, choice.point});
  }
  ContrastResult result = judged(results, contrast, choice_a.point, choice_b.point, cells);
  if (a.chooser() == b.chooser()) return result;
  if (!choice_a.edges.empty()) result.edges.push_back(edge_text(a, choice_a));
  if (!choice_b.edges.empty()) result.edges.push_back(edge_text(b, choice_b));
  if (result.outcome == Outcome::open && !result.edges.empty()) result.outcome = Outcome::edge;
  const bool a_loses = result.difference.value > 0;
  result.regret = regret_of(results, a_loses ? a : b, a_loses ? choice_a.point : choice_b.point, result.layout);
  return result;
}

void point_by_point(const Results& results, const Contrast& contrast, const Arms& arms, std::vector<ContrastResult>& all) {
  const std::vector<Overrides> points_a = points_of(results, contrast.a), points_b = points_of(results, contrast.b);
  const auto is_of = [](const std::vector<Overrides>& points, const Overrides& point) {
    return points.size() == 1 || std::ranges::find(points, point) != points.end();
  };
  for (const Overrides& point : points_a.size() >= points_b.size() ? points_a : points_b) {
    if (!is_of(points_a, point) || !is_of(points_b, point)) continue;
    Cells cells;
    for (const Arm* const arm : arms.with(contrast.a)) {
      const std::vector<Overrides> points = points_of(results, arm->name);
      const bool there = std::ranges::find(points, point) != points.end();
      if (there || points.size() == 1) cells.push_back({arm, there ? point : points.front()});
    }
    all.push_back(judged(results, contrast, points_a.size() == 1 ? points_a[0] : point,
                         points_b.size() == 1 ? points_b[0] : point, cells));
  }
}

const run::RunConfig::Optimizer& optimizer_of(const Results& results, const Arm& arm) {
  return std::ranges::find(results.runs, arm.name, [](const FinishedRun& r) { return r.run.arm; })->run.config.optimizer;
}

std::string_view decay_of(const Results& results, const Arm& arm) { return name_of(optimizer_of(results, arm).recipe.decay); }

// The plain arm that an arm without decay is compared with: one that contrasts connect it with, else one that trains likewise.
const Arm* plain_beside(const Results& results, const Arms& arms, const Arm& none) {
  const auto is_plain = [&](const Arm& arm) { return arm.chooser() == arm.name && decay_of(results, arm) == "decoupled"; };
  for (const Arm* const arm : arms.with(none.name)) {
    if (is_plain(*arm)) return arm;
  }
  const run::RunConfig::Optimizer& own = optimizer_of(results, none);
  for (const Arm& arm : results.plan.arms) {
    const run::RunConfig::Optimizer& other = optimizer_of(results, arm);
    if (is_plain(arm) && own.name == other.name && own.lr == other.lr) return &arm;
  }
  return nullptr;
}

bool between(const Contrast& contrast, const std::string& a, const std::string& b) {
  return (contrast.a == a && contrast.b == b) || (contrast.a == b && contrast.b == a);
}

bool at_one_point(const Results& results, const Contrast& contrast) {
  return contrast.best || (points_of(results, contrast.a).size() < 2 && points_of(results, contrast.b).size() < 2);
}

// Plain decay against none. It is primary where the plan says so.
std::vector<Contrast> decay_questions(const Results& results, Arms& arms) {
  std::vector<Contrast> questions;
  for (const Arm& none : results.plan.arms) {
    const Arm* const plain = decay_of(results, none) == "none" ? plain_beside(results, arms, none) : nullptr;
    if (!plain || (results.plan.tune_seeds.empty() && points_of(results, plain->name).size() > 1)) continue;
    const bool primary = std::ranges::any_of(results.plan.contrasts, [&](const Contrast& contrast) {
      return contrast.primary && between(contrast, plain->name, none.name) && at_one_point(results, contrast);
    });
    arms.join(plain->name, none.name);
    questions.push_back({.a = plain->name, .b = none.name, .best = true, .primary = primary});
  }
  return questions;
}

// Every contrast that is tested together.
std::vector<ContrastResult*> family_of(Verdict& verdict) {
  std::vector<ContrastResult*> family;
  for (std::vector<ContrastResult>* const part : {&verdict.decay, &verdict.contrasts}) {
    for (ContrastResult& result : *part) {
      if (result.primary && result.outcome == Outcome::open) family.push_back(&result);
    }
  }
  return family;
}

Power power_of(const Layout& layout, double target, double level) {
  if (layout.freedom() == 0) return {kNoTest, {kNoTest, kNoTest}, 0, 0, 0};
  const Interval sd = sd_interval(layout);
  const double detectable = detectable_difference(layout, 0.8, level), per_sd = layout.sd > 0 ? detectable / layout.sd : 0;
  const auto needed = [&](double s) { return seeds_needed(target, layout.arms, s, 0.8, level); };
  return {detectable, {per_sd * sd.low, per_sd * sd.high}, needed(layout.sd), needed(sd.low), needed(sd.high)};
}

// Contrasts of one layout have the same power.
void fill_power(Verdict& verdict, double level) {
  std::vector<const ContrastResult*> known;
  for (std::vector<ContrastResult>* const part : {&verdict.decay, &verdict.contrasts}) {
    for (ContrastResult& result : *part) {
      const auto same =
          std::ranges::find_if(known, [&](const ContrastResult* other) { return other->layout == result.layout; });
      result.power = same == known.end() ? power_of(result.layout, verdict.measure.target, level) : (*same)->power;
      known.push_back(&result);
    }
  }
}

void decide(ContrastResult& result, double target) {
  if (result.outcome != Outcome::open) return;
  const Interval& interval = result.difference.interval;
  if ((std::isnan(result.holm_p) ? result.difference.p : result.holm_p) < kLevel) {
    result.outcome = result.difference.value < 0 ? Outcome::lower : Outcome::higher;
  } else if (-target < interval.low && interval.high < target) {
    result.outcome = Outcome::equal;
  }
}

}  // namespace

Verdict verdict_of(const Results& results) {
  Verdict verdict;
  verdict.measure = measure_of(results.runs);
  Arms arms(results);
  const std::vector<Contrast> questions = decay_questions(results, arms);
  const auto is_question = [&](const Contrast& contrast) {
    return at_one_point(results, contrast) &&
           std::ranges::any_of(questions, [&](const Contrast& asked) { return between(contrast, asked.a, asked.b); });
  };
  for (const Contrast& question : questions) {
    verdict.decay.push_back(at_chosen_points(results, question, arms));
    ContrastResult& result = verdict.decay.back();
    if (result.outcome == Outcome::edge) result.outcome = Outcome::open;  // that decay helps does not need the best of it
  }
  for (const Contrast& contrast : results.plan.contrasts) {
    if (is_question(contrast)) continue;
    if (contrast.best) {
      verdict.contrasts.push_back(at_chosen_points(results, contrast, arms));
    } else {
      point_by_point(results, contrast, arms, verdict.contrasts);
    }
  }
  verdict.amounts = equal_amounts(results);
  std::stable_partition(verdict.contrasts.begin(), verdict.contrasts.end(),
                        [](const ContrastResult& contrast) { return contrast.primary; });
  verdict.exploratory = static_cast<std::size_t>(std::ranges::count(verdict.contrasts, false, &ContrastResult::primary));
  const std::vector<ContrastResult*> family = family_of(verdict);
  std::vector<double> p;
  for (const ContrastResult* result : family) p.push_back(result->difference.p);
  for (auto* const part : {&verdict.decay, &verdict.contrasts}) {
    for (ContrastResult& result : *part) result.holm_p = kNoTest;
  }
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < family.size(); ++i) family[i]->holm_p = adjusted[i];
  verdict.family = family.size();
  fill_power(verdict, std::max(kLowestLevel, kLevel / static_cast<double>(std::max<std::size_t>(1, verdict.family))));
  const Look now{judged_seeds(results), results.plan.tune_seeds.size()};
  for (const Look& look : looks_of(results.directory)) {
    if (look.seeds < now.seeds || look.tune_seeds != now.tune_seeds) verdict.looks.push_back(look);
  }
  for (auto* const part : {&verdict.decay, &verdict.contrasts}) {
    for (ContrastResult& result : *part) decide(result, verdict.measure.target);
  }
  put_in_words(results, verdict);
  return verdict;
}

}  // namespace cautious::study
