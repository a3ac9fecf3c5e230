// The bundled plans, what they cost, and successive halving. Costs are estimated from counts of operations; the rates are
// rounded measurements: small models on one core of a desktop or server processor train at 30 to 45 GFLOP/s.
#include "study/reproduce.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"

namespace cautious::study {
namespace {

using base::TomlEntry;
using base::TomlTable;
using base::TomlValue;

constexpr std::array<std::string_view, 8> kScaleKeys{"seeds",  "tune_seeds", "about", "objective",
                                                     "stages", "base",       "grid",  "arm"};
constexpr std::array<std::string_view, 2> kWritten{"quick", "full"};  // day is the plan itself

std::int64_t whole_in(const TomlValue& table, std::string_view key, std::int64_t missing) {
  const TomlValue* const value = table.get(key);
  if (!value) return missing;
  if (value->kind != TomlValue::Kind::integer || value->integer < 1 || value->integer > 1000) {
    value->refuse(fmt::format("{} is {}, not a whole number from 1 to 1000", key, value->described()));
  }
  return value->integer;
}

std::vector<Axis> axes_in(const TomlTable& table) {
  std::vector<Axis> axes;
  for (const TomlEntry& entry : run_keys(table.value)) axes.push_back(read_axis(table, entry));
  return axes;
}

constexpr std::array<std::string_view, 1> kGrid{"grid"};

Overrides settings_in(const TomlTable& table) {
  Overrides all;
  for (const TomlEntry& entry : run_keys(table.value, kGrid)) {
    all.emplace_back(entry.key, typed_text(table, entry.key, entry.value));
  }
  return all;
}

void change_arms(Plan& plan, const std::string& section, const TomlValue& arms) {
  for (const TomlEntry& entry : arms.entries) {
    const auto found = std::ranges::find(plan.arms, entry.key, &Arm::name);
    if (found == plan.arms.end()) {
      std::vector<std::string_view> names;
      for (const Arm& arm : plan.arms) names.push_back(arm.name);
      entry.value.refuse(fmt::format("{}: {}", section, base::unknown("arm", entry.key, names)));
    }
    if (entry.value.kind != TomlValue::Kind::table) {
      TomlTable{arms, section}.refuse_type(entry.key, entry.value, "a table of an arm's keys");
    }
    const TomlTable own{entry.value, section};
    put(found->overrides, settings_in(own));
    if (const TomlValue* grid = own.table("grid")) found->axes = axes_in({*grid, section});
  }
}

void change(Experiment& experiment, const std::string& scale, const TomlValue& value) {
  const TomlTable table{value, fmt::format("[scale.{}]", scale)};
  table.check_keys("key of " + table.name, kScaleKeys);
  Plan& plan = experiment.plan;
  plan.seeds.resize(static_cast<std::size_t>(whole_in(value, "seeds", static_cast<std::int64_t>(plan.seeds.size()))));
  std::iota(plan.seeds.begin(), plan.seeds.end(), 0);
  if (value.get("tune_seeds")) plan.tune_seeds = tuning_seeds(static_cast<std::size_t>(whole_in(value, "tune_seeds", 0)));
  experiment.stages = static_cast<int>(whole_in(value, "stages", experiment.stages));
  if (const std::string more = table.string("about"); !more.empty()) plan.about += " " + more;
  if (const std::string other = table.string("objective"); !other.empty()) plan.objective = other;
  if (const TomlValue* base = table.table("base")) put(plan.base, settings_in({*base, table.name}));
  if (const TomlValue* grid = table.table("grid")) plan.grid = axes_in({*grid, table.name});
  if (const TomlValue* arms = table.table("arm")) change_arms(plan, table.name, *arms);
  plan.lines = {};  // they are those of the plan before
}

std::vector<std::string> names_in(const TomlValue& top) {
  const TomlValue* const value = top.get("reproduces");
  const auto is_string = [](const TomlValue& item) { return item.kind == TomlValue::Kind::string; };
  if (!value || value->kind != TomlValue::Kind::array || value->items.empty() ||
      !std::ranges::all_of(value->items, is_string)) {
    (value ? *value : top).refuse("reproduces is missing or not an array of names");
  }
  std::vector<std::string> names;
  for (const TomlValue& item : value->items) names.push_back(item.text);
  return names;
}

// The changes of every scale, out of the table together with all else that a plan does not have.
TomlValue take_scales(TomlValue& top) {
  TomlValue scales;
  if (const TomlValue* table = TomlTable{top}.table("scale")) {
    TomlTable{*table, "[scale]"}.check_keys("key of [scale]", kWritten);
    scales = *table;
  }
  std::erase_if(top.entries, [](const TomlEntry& entry) {
    return entry.key == "scale" || entry.key == "stages" || entry.key == "reproduces";
  });
  return scales;
}

std::string file_of(const BundledPlan& bundled) { return bundled.name + ".toml"; }

std::vector<std::string> reproduced_by(const BundledPlan& bundled) {
  return names_in(base::parse_toml(bundled.text, file_of(bundled)));
}

constexpr double kCoreRate = 30e9;            // operations per second
constexpr double kStart = 3;                  // seconds for a process to start and to end
constexpr double kGpuRate = 0.4 * 989e12;     // of a present data-centre GPU, in bf16
constexpr double kForwardOfStep = 1.0 / 3.0;  // what an evaluation does of a training step's operations

constexpr std::int64_t kTestImages = 10000;  // of the known sets; ImageNet's 50,000 are few beside its training

struct RunCost {
  double operations, memory;
};

// Of a token or an image, forward and backward; how many are looked at in an evaluation; bytes.
struct UnitCost {
  double operations;
  std::int64_t evaluated, memory;
};

UnitCost unit_cost(const run::RunConfig& config) {
  const std::int64_t part = config.train.batch_size / config.train.grad_accum;
  if (config.task == run::TaskKind::image) {
    const model::ImageModelSize size = size_of(config.model.image, part);
    return {size.flops_per_image, config.eval.images > 0 ? config.eval.images : kTestImages,
            size.parameter_bytes + size.activation_bytes};
  }
  const model::ModelSize size = size_of(config.model.shape, part, run::sequence_length(config), config.model.recompute);
  // How long the validation part of conversations is shows when they are read; it is small.
  const std::int64_t evaluated = config.task == run::TaskKind::instruct ? 0 : config.eval.tokens;
  return {size.flops_per_token, evaluated, size.parameter_bytes + size.activation_bytes};
}

RunCost cost_of(const run::RunConfig& config) {
  const UnitCost unit = unit_cost(config);
  const auto steps = static_cast<double>(steps_of(config));
  const double trained = steps * static_cast<double>(units_per_step(config));
  const double evaluations = config.eval.every > 0 ? 1 + steps / static_cast<double>(config.eval.every) : 1;
  const double evaluated = evaluations * static_cast<double>(unit.evaluated) * kForwardOfStep;
  return {(trained + evaluated) * unit.operations, static_cast<double>(unit.memory)};
}

// Later stages are a third of the points with twice the steps.
double of_all_stages(std::size_t points, int stages) {
  double sum = 0, length = 1;
  auto runs = static_cast<double>(points);
  for (int stage = 0; stage < stages; ++stage, length *= 2) {
    sum += runs * length;
    runs = static_cast<double>(kept(static_cast<std::size_t>(runs)));
  }
  return sum / static_cast<double>(points);
}

// "adamw+lr-0.01+beta1-0.9"; characters that an arm's name may have.
std::string arm_name(const std::string& arm, const Overrides& point) {
  std::string name = arm;
  for (const auto& [key, value] : point) {
    name += fmt::format("{}{}-{}", name.empty() ? "" : "+", run::without_section(key), value);
  }
  return name;
}

}  // namespace

Experiment read_experiment(const BundledPlan& bundled, Scale scale) {
  TomlValue top = base::parse_toml(bundled.text, file_of(bundled));
  Experiment experiment{.name = bundled.name, .reproduces = names_in(top), .plan = {}};
  experiment.stages = static_cast<int>(whole_in(top, "stages", 1));
  const TomlValue scales = take_scales(top);
  experiment.plan = read_plan(top, file_of(bundled));
  const std::string written(cautious::name_of(scale));
  if (const TomlValue* table = TomlTable{scales, "[scale]"}.table(written)) change(experiment, written, *table);
  return experiment;
}

void train_on(Plan& plan, const std::string& data) {
  put(plan.base, {{"data.path", data}});
  settle_paths(plan, "");
  plan.about.resize(std::min(plan.about.find("Ours"), plan.about.size()));  // all that follows may be about the plan's own
  plan.about += fmt::format("Ours: on {}, not on the data that the plan was written for.", data);
}

std::vector<std::string> reproducible() {
  std::set<std::string> names;
  for (const BundledPlan& bundled : bundled_plans()) {
    for (std::string& name : reproduced_by(bundled)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::vector<Experiment> experiments(std::string_view name, Scale scale) {
  std::vector<Experiment> found;
  for (const BundledPlan& bundled : bundled_plans()) {
    const std::vector<std::string> names = reproduced_by(bundled);
    const bool meant = bundled.name == name || std::ranges::find(names, name) != names.end();
    if (meant) found.push_back(read_experiment(bundled, scale));
  }
  if (!found.empty()) return found;
  const std::vector<std::string> names = reproducible();
  throw Error(Fault::usage, base::unknown("experiment", name, std::vector<std::string_view>(names.begin(), names.end())));
}

Cost cost_of(const Experiment& experiment) {
  Plan one = experiment.plan;
  one.seeds.resize(1);
  one.tune_seeds.resize(std::min<std::size_t>(one.tune_seeds.size(), 1));
  return cost_of(experiment, expand(one));
}

Cost cost_of(const Experiment& experiment, const std::vector<PlannedRun>& runs) {
  const Plan& plan = experiment.plan;
  double points = 0, tuned = 0;  // runs of a seed
  const auto first_of = [&](const std::vector<std::uint64_t>& seeds, const PlannedRun& run) {
    return !seeds.empty() && run.seed == seeds.front();
  };
  for (const PlannedRun& run : runs) {
    if (first_of(plan.seeds, run)) points += run.share;
    if (first_of(plan.tune_seeds, run)) tuned += run.share;
  }
  const auto seeds = static_cast<double>(plan.seeds.size()), tune_seeds = static_cast<double>(plan.tune_seeds.size());
  const auto all = static_cast<std::size_t>(std::lround(points));
  double count = tune_seeds * tuned;
  for (std::size_t left = all, stage = 0; stage < static_cast<std::size_t>(experiment.stages); ++stage) {
    count += static_cast<double>(left) * seeds;
    left = kept(left);
  }
  Cost cost{.runs = static_cast<std::size_t>(std::lround(count))};
  for (const PlannedRun& run : runs) {
    const bool judged = first_of(plan.seeds, run);
    if (!judged && !first_of(plan.tune_seeds, run)) continue;
    const double factor = run.share * (judged ? seeds * of_all_stages(all, experiment.stages) : tune_seeds);
    const RunCost of_run = cost_of(run.config);
    cost.core_hours += factor * of_run.operations / kCoreRate / 3600;
    cost.gpu_hours += factor * of_run.operations / kGpuRate / 3600;
    cost.memory = std::max(cost.memory, of_run.memory);
  }
  cost.core_hours += static_cast<double>(cost.runs) * kStart / 3600;
  return cost;
}

double hours_of(const Plan& plan, const std::vector<PlannedRun>& runs, int jobs) {
  return cost_of({.name = {}, .reproduces = {}, .plan = plan}, runs).core_hours / std::max(jobs, 1);
}

std::size_t kept(std::size_t points) { return (points + 2) / 3; }

Plan without_grid(const Plan& plan) {
  Plan flat = plan;
  flat.arms.clear();
  flat.grid.clear();
  flat.lines = {};
  for (const auto& [arm, point] : arms_at_points(plan)) {
    Arm& own = flat.arms.emplace_back(*arm);
    own.axes.clear();
    if (!point.empty()) own.name = arm_name(plan.arms.size() == 1 ? "" : arm->name, point);
    own.overrides.insert(own.overrides.end(), point.begin(), point.end());
  }
  return flat;
}

Plan next_stage(const Results& results) {
  const Plan& plan = results.plan;
  std::vector<std::pair<Standing, Arm>> ranked;
  for (const Arm& arm : plan.arms) {
    const Standing standing = standing_of(losses_of(results, arm.name, {}));
    if (standing.done > 0) ranked.emplace_back(standing, arm);
  }
  if (ranked.empty()) {
    throw Error(Fault::failure, "no run of this stage is done; see its log.txt", {.where = results.directory.string()});
  }
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first.ahead_of(b.first); });
  ranked.resize(std::min(ranked.size(), kept(plan.arms.size())));
  Plan next = plan;
  next.arms.clear();
  next.lines = {};
  for (auto& [standing, arm] : ranked) next.arms.push_back(std::move(arm));
  put(next.base, {{"train.steps", fmt::format("{}", 2 * steps_of(results.runs.front().run.config))}});
  return next;
}

}  // namespace cautious::study
