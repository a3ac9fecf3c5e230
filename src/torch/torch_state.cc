// Saving and loading through libtorch's archives. A load checks everything before it changes anything.
//   format, settings            text
//   groups, parameters          a line each of what must be equal for the continuation to be the same run
//   rates                       f64 [groups, 4]: lr, lr_max, decay_factor, highest lr seen
//   t                           int64 [parameters]; step is that of the report
//   m_0, v_0, low_0, x0_0, ...  state of parameter 0, ... in the order of the groups, as far as the recipe has it
// The base class's state() stays empty: the fused core keeps the moments in memory of its own. So nothing here depends on how
// libtorch keys that map (by text in 1.x, by pointer in 2.x), or on its own format.
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>
#include <cautious/torch.h>

#include "base/fields.h"
#include "base/text.h"
#include "optim/recipe_line.h"
#include "torch/parts.h"

namespace cautious::torch {
namespace {

using ::torch::optim::OptimizerParamGroup;
using ::torch::serialize::InputArchive;
using ::torch::serialize::OutputArchive;

constexpr const char* kFormat = "cautious torch optimizer 1";
constexpr const char* kAfterRecipe = " decay_switch=";

[[noreturn]] void refuse_state(const std::string& message) { throw Error(Fault::data, "optimizer state: " + message); }

using Lines = std::vector<std::string>;

std::string identity(const Settings& settings) {
  return base::to_line(base::fields_of(settings, cautious::Options::identity()));
}

Lines group_lines(const std::vector<OptimizerParamGroup>& groups) {
  Lines lines;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Options& options = options_of(groups[g], g);
    lines.push_back(
        fmt::format("{}{}{}", to_string(options.recipe), kAfterRecipe, options.decay == DecaySwitch::on ? "on" : "off"));
  }
  return lines;
}

Lines parameter_lines(const std::vector<ParamGroup>& groups) {
  Lines lines;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Entry& entry : groups[g].entries) {
      lines.push_back(
          fmt::format("{} {} [{}] in group {}", entry.name, c10::toString(entry.type), fmt::join(entry.shape, ", "), g));
    }
  }
  return lines;
}

c10::IValue value_of(const Lines& lines) {
  c10::List<std::string> list;
  for (const std::string& line : lines) list.push_back(line);
  return list;
}

// The archive's entries, each checked for its kind.
class Source {
 public:
  explicit Source(InputArchive& archive) : archive_(archive) {}

  std::string text(const std::string& key) {
    const c10::IValue value = read(key);
    if (!value.isString()) wrong(key);
    return value.toStringRef();
  }
  Lines lines(const std::string& key) {
    const c10::IValue value = read(key);
    if (!value.isList()) wrong(key);
    Lines all;
    for (const c10::IValue& line : value.toListRef()) {
      if (!line.isString()) wrong(key);
      all.push_back(line.toStringRef());
    }
    return all;
  }
  std::int64_t whole(const std::string& key) {
    const c10::IValue value = read(key);
    if (!value.isInt() || value.toInt() < 0) wrong(key);
    return value.toInt();
  }
  at::Tensor tensor(const std::string& key, at::ScalarType type, at::IntArrayRef shape) {
    const c10::IValue value = read(key);
    if (!value.isTensor()) wrong(key);
    const at::Tensor found = value.toTensor();
    if (found.scalar_type() != type || found.sizes() != shape) {
      refuse_state(fmt::format("{} is {} [{}], this optimizer needs {} [{}]", base::in_quotes(key),
                               c10::toString(found.scalar_type()), fmt::join(found.sizes().vec(), ", "), c10::toString(type),
                               fmt::join(shape.vec(), ", ")));
    }
    return found;
  }

 private:
  [[noreturn]] void wrong(const std::string& key) {
    refuse_state(fmt::format("{} is not of the kind it should be", base::in_quotes(key)));
  }
  c10::IValue read(const std::string& key) {
    c10::IValue value;
    if (!archive_.try_read(key, value)) {
      refuse_state(
          fmt::format("there is no {} in it; it was not written by cautious::torch::Optimizer, or is incomplete (it has: {})",
                      base::in_quotes(key), base::in_one_line(base::join(archive_.keys()))));
    }
    return value;
  }
  InputArchive& archive_;
};

void require_equal(const std::string& what, const std::string& there, const std::string& here) {
  if (there != here)
    refuse_state(fmt::format("{} differs: the file has '{}', this optimizer '{}'", what, base::in_one_line(there),
                             base::in_one_line(here)));
}

void require_equal(const std::string& what, const Lines& there, const Lines& here) {
  for (std::size_t i = 0; i < std::min(there.size(), here.size()); ++i) {
    require_equal(fmt::format("{} {}", what, i), there[i], here[i]);
  }
  if (there.size() != here.size()) {
    refuse_state(fmt::format("the file has {} {}s, this optimizer {}", there.size(), what, here.size()));
  }
}

Recipe recipe_from(const std::string& line) try { return parse_recipe(line); } catch (const Error& error) {
  refuse_state(error.what());
}

std::string key_of(const StateTensor& piece, std::size_t parameter) { return fmt::format("{}_{}", piece.name, parameter); }

}  // namespace

void Options::serialize(OutputArchive& archive) const {
  archive.write("lr", c10::IValue(lr));
  archive.write("lr_max", c10::IValue(lr_max));
  archive.write("decay_factor", c10::IValue(decay_factor));
  archive.write("recipe", c10::IValue(to_string(recipe)));
  archive.write("decay", c10::IValue(decay == DecaySwitch::on));
}

void Options::serialize(InputArchive& archive) {
  c10::IValue values[5];
  const char* keys[] = {"lr", "lr_max", "decay_factor", "recipe", "decay"};
  for (int i = 0; i < 5; ++i) {
    if (!archive.try_read(keys[i], values[i])) refuse_state(fmt::format("the options of a group lack '{}'", keys[i]));
  }
  recipe = recipe_from(values[3].toStringRef());
  lr = values[0].toDouble();
  lr_max = values[1].toDouble();
  decay_factor = values[2].toDouble();
  decay = values[4].toBool() ? DecaySwitch::on : DecaySwitch::off;
}

void Optimizer::save(OutputArchive& archive) const {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_);
  archive.write("format", c10::IValue(kFormat));
  archive.write("settings", c10::IValue(identity(parts_->settings)));
  archive.write("groups", value_of(group_lines(param_groups_)));
  archive.write("parameters", value_of(parameter_lines(parts_->groups)));
  archive.write("step", c10::IValue(parts_->report.step));
  std::vector<double> rates;
  std::vector<std::int64_t> steps;
  for (std::size_t g = 0; g < parts_->groups.size(); ++g) {
    const Options& options = options_of(param_groups_[g], g);
    ParamGroup& group = parts_->groups[g];
    rates.insert(rates.end(), {options.lr, options.lr_max, options.decay_factor, group.highest_lr});
    for (Entry& entry : group.entries) {
      for (const StateTensor& piece : pieces_of(group, entry)) {
        archive.write(key_of(piece, steps.size()), piece.tensor.clone(), /*is_buffer=*/true);
      }
      steps.push_back(torch::steps_of(group, entry));
    }
  }
  archive.write("rates", at::tensor(rates, at::kDouble).view({-1, 4}), /*is_buffer=*/true);
  archive.write("t", at::tensor(steps, at::kLong), /*is_buffer=*/true);
}

void Optimizer::load(InputArchive& archive) {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_);
  std::vector<ParamGroup>& groups = parts_->groups;
  Source source(archive);
  require_equal("the format", source.text("format"), kFormat);
  require_equal("parameter", source.lines("parameters"), parameter_lines(groups));
  Lines saved_groups = source.lines("groups");
  for (std::string& line : saved_groups) line = optim::up_to_date(line, kAfterRecipe);
  require_equal("group", saved_groups, group_lines(param_groups_));
  require_equal("settings", source.text("settings"), identity(parts_->settings));
  const std::int64_t step = source.whole("step");
  const auto count = static_cast<std::int64_t>(parts_->names.size()), group_count = static_cast<std::int64_t>(groups.size());
  const at::Tensor rates = source.tensor("rates", at::kDouble, {group_count, 4}).cpu().contiguous();
  const at::Tensor steps = source.tensor("t", at::kLong, {count}).cpu().contiguous();
  if (!rates.isfinite().logical_and(rates >= 0).all().item<bool>()) refuse_state("a learning rate is negative or not finite");
  if (steps.lt(0).any().item<bool>()) refuse_state("a step count is negative");
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  std::size_t parameter = 0;
  for (ParamGroup& group : groups) {
    for (Entry& entry : group.entries) {
      for (const StateTensor& piece : pieces_of(group, entry)) {
        const at::Tensor found = source.tensor(key_of(piece, parameter), piece.tensor.scalar_type(), piece.tensor.sizes());
        copies.emplace_back(piece.tensor, found.to(piece.tensor.device()));
      }
      ++parameter;
    }
  }

  for (const auto& [to, from] : copies) to.copy_(from);
  parameter = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double* found = rates.data_ptr<double>() + 4 * g;
    Options& options = options_of(param_groups_[g], g);
    options.lr = found[0], options.lr_max = found[1], options.decay_factor = found[2];
    groups[g].highest_lr = found[3];
    for (Entry& entry : groups[g].entries) torch::set_steps(groups[g], entry, steps.data_ptr<std::int64_t>()[parameter++]);
  }
  parts_->report = {};
  parts_->report.step = step;
}

namespace {

struct Place {
  ParamGroup& group;
  Entry& entry;
};

Place place_of(std::vector<ParamGroup>& groups, std::size_t parameter) {
  std::size_t first = 0;
  for (ParamGroup& group : groups) {
    if (parameter < first + group.entries.size()) return {group, group.entries[parameter - first]};
    first += group.entries.size();
  }
  throw Error(Fault::usage, fmt::format("parameter {} does not exist; the optimizer has {}", parameter, first));
}

}  // namespace

std::vector<StateTensor> Optimizer::state_of(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_);
  const Place place = place_of(parts_->groups, parameter);
  return pieces_of(place.group, place.entry);
}

std::int64_t Optimizer::steps_of(std::size_t parameter) {
  const Place place = place_of(parts_->groups, parameter);
  return torch::steps_of(place.group, place.entry);
}

void Optimizer::set_steps(std::size_t parameter, std::int64_t t) {
  const Place place = place_of(parts_->groups, parameter);
  torch::set_steps(place.group, place.entry, t);
}

}  // namespace cautious::torch
