// Which parameters there are, and whether they and their gradients are what a step can work on.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <cautious/error.h>

#include "base/text.h"
#include "optim/polar.h"
#include "optim/shaping.h"
#include "torch/parts.h"

namespace cautious::torch {
namespace {

using ::torch::optim::OptimizerParamGroup;

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, message); }

std::string shape_of(const at::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes().vec(), ", ")); }

bool is_known(at::ScalarType type) { return type == at::kFloat || type == at::kDouble || type == at::kBFloat16; }

// Whether no two elements share memory; side by side sides are recognised in any order of strides.
bool elements_apart(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> sides;  // stride, length
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) > 1) sides.emplace_back(tensor.stride(i), tensor.size(i));
  }
  std::sort(sides.begin(), sides.end());
  std::int64_t reach = 0;  // of the sides so far
  for (const auto& [stride, length] : sides) {
    if (stride <= reach) return false;
    reach += stride * (length - 1);
  }
  return true;
}

void check_parameter(const at::Tensor& tensor, const std::string& name) {
  if (name.empty()) refuse("a parameter's name is empty");
  if (!tensor.defined()) refuse(fmt::format("parameter {} is an undefined tensor", base::in_quotes(name)));
  if (!is_known(tensor.scalar_type())) {
    refuse(fmt::format("parameter {} is {}; types that work: Float, Double, BFloat16", base::in_quotes(name),
                       c10::toString(tensor.scalar_type())));
  }
  if (tensor.layout() != at::kStrided) refuse(fmt::format("parameter {} is sparse; it must be dense", base::in_quotes(name)));
  if (!tensor.is_leaf())
    refuse(fmt::format("parameter {} is not a leaf: it is computed from other tensors; give those, or detach it",
                       base::in_quotes(name)));
  if (!elements_apart(tensor)) {
    refuse(
        fmt::format("parameter {} of shape {} has elements that share memory (an expanded view?); give its base, or clone it",
                    base::in_quotes(name), shape_of(tensor)));
  }
}

// Throws if the parameter is not what it was when it was added.
void check_unchanged(const Entry& entry) {
  const at::Tensor& tensor = entry.tensor;
  const auto require = [&](bool same, const std::string& what, const std::string& was, const std::string& is) {
    if (!same) {
      refuse(
          fmt::format("the {} of parameter {} was {} when it was added and is {} now; make a new optimizer after such a change",
                      what, base::in_quotes(entry.name), was, is));
    }
  };
  require(tensor.defined(), "tensor", "defined", "undefined");
  require(tensor.sizes() == at::IntArrayRef(entry.shape), "shape", fmt::format("[{}]", fmt::join(entry.shape, ", ")),
          shape_of(tensor));
  require(tensor.scalar_type() == entry.type, "type", c10::toString(entry.type), c10::toString(tensor.scalar_type()));
  require(tensor.device() == entry.device, "device", entry.device.str(), tensor.device().str());
}

// The recipe without what may change from step to step.
std::string fixed_part(Recipe recipe) {
  recipe.weight_decay = 0;
  recipe.coupling = Coupling::plain;
  if (double* density = density_in(recipe.decay)) *density = 0;
  return to_string(recipe);
}

void check_options(const Options& options, const ParamGroup& group, std::size_t index) {
  cautious::check(options.recipe);
  const std::string was = fixed_part(group.recipe), is = fixed_part(options.recipe);
  if (was != is) {
    refuse(fmt::format(
        "group {}: the recipe was '{}' and is '{}' now; only weight_decay, coupling and density may change, for the rest "
        "make a new optimizer",
        index, to_string(group.recipe), to_string(options.recipe)));
  }
  if (options.decay != group.decay) refuse(fmt::format("group {}: the decay switch has changed; make a new optimizer", index));
}

void check_matrix(const Recipe& recipe, const Entry& entry) {
  if (const Polar* how = optim::polar_in(recipe.rule)) optim::matrices_of(entry.name, entry.shape, how->blocks);
}

// Where dense memory of parameters on the CPU begins and ends, to find those that share some: threads would race for it.
struct Extent {
  const char* begin;
  const char* end;
  const Entry* entry;
};

void check_apart(const std::vector<ParamGroup>& groups) {
  std::vector<Extent> extents;
  std::vector<std::pair<const void*, const Entry*>> all;
  for (const ParamGroup& group : groups) {
    for (const Entry& entry : group.entries) {
      all.emplace_back(entry.tensor.unsafeGetTensorImpl(), &entry);
      if (!entry.device.is_cpu() || !entry.tensor.is_contiguous() || entry.tensor.numel() == 0) continue;
      const auto* begin = static_cast<const char*>(entry.tensor.data_ptr());
      extents.push_back({begin, begin + entry.tensor.nbytes(), &entry});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return std::less<>()(a.first, b.first); });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].first != all[i - 1].first) continue;
    refuse(fmt::format("parameter {} is given twice, also as {}", base::in_quotes(all[i - 1].second->name),
                       base::in_quotes(all[i].second->name)));
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return std::less<>()(a.begin, b.begin); });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (!std::less<>()(extents[i].begin, extents[i - 1].end)) continue;
    refuse(fmt::format("parameters {} and {} share memory", base::in_quotes(extents[i - 1].entry->name),
                       base::in_quotes(extents[i].entry->name)));
  }
}

Entry make_entry(const at::Tensor& tensor, std::string name, const Settings& settings) {
  check_parameter(tensor, name);
  const bool fused = tensor.device().is_cpu() && !settings.generic;
  return {.name = std::move(name),
          .tensor = tensor,
          .shape = tensor.sizes().vec(),
          .type = tensor.scalar_type(),
          .device = tensor.device(),
          .fused = fused,
          .gradient = element_of_type(tensor.scalar_type())};
}

}  // namespace

Element element_of_type(at::ScalarType type) {
  return type == at::kDouble ? Element::f64 : type == at::kFloat ? Element::f32 : Element::bf16;
}

const Options& options_of(const OptimizerParamGroup& group, std::size_t index) {
  const auto* options = group.has_options() ? dynamic_cast<const Options*>(&group.options()) : nullptr;
  if (options == nullptr) refuse(fmt::format("group {}: its options are not cautious::torch::Options", index));
  return *options;
}

Options& options_of(OptimizerParamGroup& group, std::size_t index) {
  return const_cast<Options&>(options_of(std::as_const(group), index));
}

std::vector<OptimizerParamGroup> checked(std::vector<OptimizerParamGroup> groups, const std::vector<std::string>& names) {
  std::size_t count = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const at::Tensor& tensor : groups[g].params()) {
      check_parameter(tensor, count < names.size() ? names[count] : std::to_string(count));
      ++count;
    }
    if (groups[g].has_options()) cautious::check(options_of(groups[g], g).recipe);
  }
  if (count == 0) refuse("there are no parameters: the list is empty");
  return groups;
}

at::Tensor gradient_of(const Entry& entry) {
  const at::Tensor& g = entry.tensor.grad();
  if (!g.defined()) return g;
  if (g.layout() != at::kStrided) {
    refuse(fmt::format("the gradient of {} is sparse; make it dense, or use an embedding with sparse(false)",
                       base::in_quotes(entry.name)));
  }
  if (g.device() != entry.device) {
    refuse(fmt::format("parameter {} is on {}, its gradient on {}", base::in_quotes(entry.name), entry.device.str(),
                       g.device().str()));
  }
  if (g.sizes() != at::IntArrayRef(entry.shape)) {
    refuse(fmt::format("parameter {} has the shape {}, its gradient {}", base::in_quotes(entry.name), shape_of(entry.tensor),
                       shape_of(g)));
  }
  if (g.scalar_type() != entry.type && !(entry.type == at::kBFloat16 && g.scalar_type() == at::kFloat)) {
    refuse(fmt::format("parameter {} is {}, its gradient {}; it must be of the same type, or Float beside BFloat16",
                       base::in_quotes(entry.name), c10::toString(entry.type), c10::toString(g.scalar_type())));
  }
  return g;
}

void Optimizer::Parts::sync(const std::vector<OptimizerParamGroup>& given, const std::vector<std::string>& new_names) {
  // Known ones first; then new ones are made aside and moved in when all of them are good.
  if (given.size() < groups.size()) refuse(fmt::format("there were {} groups and are {} now", groups.size(), given.size()));
  std::size_t count = 0;
  bool grows = given.size() > groups.size();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    check_options(options_of(given[g], g), groups[g], g);
    const std::vector<Entry>& entries = groups[g].entries;
    const std::vector<at::Tensor>& tensors = given[g].params();
    if (tensors.size() < entries.size())
      refuse(fmt::format("group {} had {} parameters and has {} now", g, entries.size(), tensors.size()));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].tensor.is_same(tensors[i]))
        refuse(fmt::format("parameter {} is another tensor now; make a new optimizer", base::in_quotes(entries[i].name)));
      check_unchanged(entries[i]);
    }
    count += entries.size();
    grows = grows || tensors.size() > entries.size();
  }
  if (!grows) return;

  std::vector<ParamGroup> next;
  std::set<std::string> taken(names.begin(), names.end());
  const auto fresh_name = [&] {
    std::string name = count < new_names.size() ? new_names[count] : std::to_string(count);
    while (!taken.insert(name).second) name += "'";
    ++count;
    return name;
  };
  for (std::size_t g = 0; g < given.size(); ++g) {
    const Options& options = options_of(given[g], g);
    if (g >= groups.size()) cautious::check(options.recipe);
    ParamGroup& group = next.emplace_back(ParamGroup{.recipe = options.recipe, .decay = options.decay});
    if (g < groups.size()) group = groups[g];
    for (std::size_t i = group.entries.size(); i < given[g].params().size(); ++i) {
      Entry entry = make_entry(given[g].params()[i], fresh_name(), settings);
      check_matrix(group.recipe, entry);
      if (!entry.fused) entry.state = aten::begin(entry.tensor, group.recipe, settings);
      entry.on_grid = !settings.generic && grid_device(entry.device) != nullptr && fits_grid(entry, group, settings);
      group.entries.push_back(std::move(entry));
    }
  }
  check_apart(next);
  for (ParamGroup& group : next) prepare_core(group, settings, {});
  groups = std::move(next);
  names.clear();
  for (const ParamGroup& group : groups) {
    for (const Entry& entry : group.entries) names.push_back(entry.name);
  }
}

}  // namespace cautious::torch
