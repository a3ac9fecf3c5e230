// The functions about an optimizer. Each checks its pointers and calls the member of the same name.
#include <cautious/optimizer.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "c/border.h"

// NOLINTNEXTLINE(readability-identifier-naming): C's name
struct cautious_optimizer {
  cautious::Optimizer core;
  const cautious::StepReport* report = nullptr;  // of the last step, unless it failed
};

namespace cautious::c {
namespace {

template <class Handle>
Handle& handle_at(Handle* optimizer) {
  return at(optimizer, "optimizer");
}

// A new handle; `plan` makes what goes to one recipe or another.
template <class Plan>
cautious_status create(const char* options, cautious_optimizer** made, const Plan& plan) {
  return call([&] {
    at(made, "made") = nullptr;
    Optimizer core(plan(), parse_fields<Options>(options, "options", "option of the optimizer"));
    *made = new cautious_optimizer{std::move(core)};
  });
}

// Strides of sides of length 1 mean nothing, and none do in an empty tensor.
void check_dense(std::string_view name, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return;
  std::vector<std::int64_t> dense(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    if (__builtin_mul_overflow(dense[i], shape[i], &dense[i - 1])) return;  // more coordinates than add() takes
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1 || strides[i] == dense[i]) continue;
    refuse(fmt::format("tensor {} of shape [{}] has strides [{}]; only dense ones are taken, [{}]: copy it first",
                       base::in_quotes(name), fmt::join(shape, ", "), fmt::join(strides, ", "), fmt::join(dense, ", ")));
  }
}

Parameter parameter_of(const cautious_parameter& given) {
  const std::string_view name = text_at(given.name, "parameter.name");
  constexpr std::size_t kMostSides = 64;
  if (given.rank > kMostSides) refuse(fmt::format("parameter.rank is {}; valid: 0 to {}", given.rank, kMostSides));
  if (given.rank > 0) at(given.shape, "parameter.shape");
  const std::span shape(given.shape, given.rank);
  if (given.strides != nullptr) check_dense(name, shape, {given.strides, given.rank});
  return {std::string(name),
          {shape.begin(), shape.end()},
          static_cast<Element>(given.element),
          static_cast<Element>(given.gradient),
          given.x,
          given.g};
}

void write_report(const StepReport& step, const Tally& tally, cautious_report& to) {
  to = {to.size,      step.step,       step.skipped ? 1 : 0, step.clip_scale,      tally.count, tally.decayed,
        tally.active, tally.nonfinite, tally.ratio(),        tally.ratio_strict(), tally.x2,    tally.g2,
        tally.u2,     tally.rms_x(),   tally.rms_g(),        tally.rms_u(),        tally.budget};
}

template <std::size_t size>
void write_text(const std::string& text, char (&to)[size]) {
  if (text.size() >= size) refuse(fmt::format("'{}' does not fit into {} bytes", text, size));
  std::memset(to, 0, size);
  text.copy(to, size);
}

}  // namespace
}  // namespace cautious::c

using namespace cautious;

cautious_status cautious_create(const char* recipe, const char* options, cautious_optimizer** made) {
  return c::create(options, made, [&] { return everything(parse_recipe(c::text_at(recipe, "recipe"))); });
}

cautious_status cautious_create_matrices_and_rest(const char* matrices, const char* rest, int64_t max_side, const char* options,
                                                  cautious_optimizer** made) {
  return c::create(options, made, [&] {
    if (max_side < 0) c::refuse(fmt::format("max_side is {}; it must not be negative; 0: no limit", max_side));
    return matrices_and_rest(parse_recipe(c::text_at(matrices, "matrices")), parse_recipe(c::text_at(rest, "rest")),
                             max_side == 0 ? Route::kUnlimited : max_side);
  });
}

void cautious_destroy(cautious_optimizer* optimizer) { delete optimizer; }

cautious_status cautious_add(cautious_optimizer* optimizer, const cautious_parameter* parameter, size_t* tensor) {
  return c::call([&] {
    Optimizer& core = c::handle_at(optimizer).core;
    const std::size_t added = core.add(c::parameter_of(c::struct_at(parameter, "parameter")));
    if (tensor != nullptr) *tensor = added;
  });
}

cautious_status cautious_bind(cautious_optimizer* optimizer, size_t tensor, void* x, const void* g) {
  return c::call([&] { c::handle_at(optimizer).core.bind(tensor, x, g); });
}

cautious_status cautious_set_anchor(cautious_optimizer* optimizer, size_t tensor, const void* x0) {
  return c::call([&] { c::handle_at(optimizer).core.set_anchor(tensor, x0); });
}

cautious_status cautious_set_density(cautious_optimizer* optimizer, size_t tensor, double density) {
  return c::call([&] { c::handle_at(optimizer).core.set_density(tensor, density); });
}

cautious_status cautious_step(cautious_optimizer* optimizer, const cautious_step_input* input, cautious_report* total) {
  return c::call([&] {
    cautious_optimizer& handle = c::handle_at(optimizer);
    const cautious_step_input& given = c::struct_at(input, "step_input");
    if (total != nullptr) c::struct_at(total, "report");
    StepInput numbers{.lr = given.lr, .lr_max = given.lr_max, .decay_factor = given.decay_factor};
    if (given.tensor_factors != nullptr) numbers.tensor_factors = {given.tensor_factors, handle.core.size()};
    handle.report = nullptr;
    handle.report = &handle.core.step(numbers);
    if (total != nullptr) c::write_report(*handle.report, handle.report->total, *total);
  });
}

cautious_status cautious_report_of(const cautious_optimizer* optimizer, size_t tensor, cautious_report* report) {
  return c::call([&] {
    const StepReport* step = c::handle_at(optimizer).report;
    cautious_report& to = c::struct_at(report, "report");
    if (step == nullptr) c::refuse("there is no report: no step was taken, or the last one failed");
    if (tensor >= step->tensors.size()) {
      c::refuse(fmt::format("tensor {} has no report; the last step knew {} tensors", tensor, step->tensors.size()));
    }
    c::write_report(*step, step->tensors[tensor], to);
  });
}

cautious_status cautious_size(const cautious_optimizer* optimizer, size_t* tensors) {
  return c::call([&] { c::at(tensors, "tensors") = c::handle_at(optimizer).core.size(); });
}

cautious_status cautious_group_of(const cautious_optimizer* optimizer, size_t tensor, const char** group) {
  return c::call([&] { c::at(group, "group") = c::handle_at(optimizer).core.group_of(tensor).name.c_str(); });
}

cautious_status cautious_save(const cautious_optimizer* optimizer, const char* path) {
  return c::call([&] { c::handle_at(optimizer).core.save(c::text_at(path, "path")); });
}

cautious_status cautious_load(cautious_optimizer* optimizer, const char* path) {
  return c::call([&] { c::handle_at(optimizer).core.load(c::text_at(path, "path")); });
}

cautious_status cautious_state_count(const cautious_optimizer* optimizer, size_t tensor, size_t* count) {
  return c::call([&] { c::at(count, "count") = c::handle_at(optimizer).core.state(tensor).size(); });
}

cautious_status cautious_state(const cautious_optimizer* optimizer, size_t tensor, size_t index, cautious_state_tensor* state) {
  return c::call([&] {
    const std::vector<StateTensor> pieces = c::handle_at(optimizer).core.state(tensor);
    cautious_state_tensor& to = c::struct_at(state, "state_tensor");
    if (index >= pieces.size()) {
      c::refuse(fmt::format("piece {} of the state of tensor {} does not exist; it has {}", index, tensor, pieces.size()));
    }
    const StateTensor& piece = pieces[index];
    c::write_text(piece.name, to.name);
    c::write_text(piece.type, to.type);
    to.data = piece.data;
    to.bytes = piece.bytes;
  });
}

cautious_status cautious_steps_of(const cautious_optimizer* optimizer, size_t tensor, int64_t* t) {
  return c::call([&] { c::at(t, "t") = c::handle_at(optimizer).core.steps_of(tensor); });
}

cautious_status cautious_set_steps(cautious_optimizer* optimizer, size_t tensor, int64_t t) {
  return c::call([&] { c::handle_at(optimizer).core.set_steps(tensor, t); });
}
