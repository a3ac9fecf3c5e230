#include "core.h"

#include <cautious/error.h>

namespace cautious::python {
namespace {

template <class Enum>
Enum named(const std::string& what, const std::string& name) {
  constexpr auto names = names_of(Enum{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  std::string choices;
  for (const std::string_view each : names) choices += (choices.empty() ? "" : ", ") + std::string(each);
  throw Error(Fault::usage, "unknown " + what + " '" + name + "'; choices: " + choices);
}

Options options_of(const Settings& given) {
  Options options;
  for (const auto& [field, value] : given) set(options, field, value);
  return options;
}

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): how Python gives addresses
}

// What holds "F32" in NumPy; bf16 as the 16 bits it is.
py::dtype dtype_of(const std::string& type) {
  if (type == "F64") return py::dtype::of<double>();
  if (type == "F32") return py::dtype::of<float>();
  return type == "BF16" ? py::dtype::of<std::uint16_t>() : py::dtype::of<std::int16_t>();
}

}  // namespace

Core::Core(Routing routing, const Settings& options) : optimizer_(std::move(routing), options_of(options)) {}

std::size_t Core::add(std::string name, std::vector<std::int64_t> shape, const std::string& element,
                      const std::string& gradient, std::uintptr_t x, std::uintptr_t g, std::string group) {
  const Caller caller(*this);
  const std::size_t tensor = optimizer_.add({std::move(name), shape, named<Element>("type", element),
                                             named<Element>("type", gradient), pointer(x), pointer(g), std::move(group)});
  shapes_.push_back(std::move(shape));
  return tensor;
}

void Core::bind(std::size_t tensor, std::uintptr_t x, std::uintptr_t g) {
  const Caller caller(*this);
  optimizer_.bind(tensor, pointer(x), pointer(g));
}

void Core::set_anchor(std::size_t tensor, std::uintptr_t x0) {
  const Caller caller(*this);
  optimizer_.set_anchor(tensor, pointer(x0));
}

void Core::set_density(std::size_t tensor, double density) {
  const Caller caller(*this);
  optimizer_.set_density(tensor, density);
}

double Core::set_rates(std::size_t group, const Recipe& recipe, double lr, double lr_max, double decay_factor) {
  const Caller caller(*this);
  const bool projects = std::visit([]<class D>(const D&) { return portable::kProjects<D>; }, recipe.decay);
  Recipe now = recipe;
  now.weight_decay = recipe.weight_decay * decay_factor;
  if (!projects && lr > 0) now.weight_decay = coupled_weight_decay(recipe.coupling, now.weight_decay, lr, lr_max);
  now.coupling = Coupling::plain;
  optimizer_.set_group(group, now, lr);
  return lr * now.weight_decay;
}

void Core::set_steps(std::size_t tensor, std::int64_t t) {
  const Caller caller(*this);
  optimizer_.set_steps(tensor, t);
}

std::int64_t Core::steps_of(std::size_t tensor) { return optimizer_.steps_of(tensor); }
std::string Core::group_of(std::size_t tensor) { return optimizer_.group_of(tensor).name; }

void Core::step(double lr, double lr_max, double decay_factor, const std::vector<double>& tensor_factors) {
  const Caller caller(*this);
  const py::gil_scoped_release released;
  report_ = optimizer_.step({lr, lr_max, decay_factor, tensor_factors});
}

py::tuple Core::report() {
  const Caller caller(*this);
  const auto rows = static_cast<py::ssize_t>(report_.tensors.size());
  py::array_t<double> numbers({rows + 1, py::ssize_t{8}});
  double* next = numbers.mutable_data();
  const auto write = [&next](const Tally& tally) {
    for (const std::int64_t whole : {tally.count, tally.decayed, tally.active, tally.nonfinite}) {
      *next++ = static_cast<double>(whole);
    }
    for (const double sum : {tally.x2, tally.g2, tally.u2, tally.budget}) *next++ = sum;
  };
  for (const Tally& tally : report_.tensors) write(tally);
  write(report_.total);
  return py::make_tuple(report_.step, report_.skipped, report_.clip_scale, numbers);
}

py::list Core::state(std::size_t tensor, const py::object& self) {
  const Caller caller(*this);
  py::list pieces;
  for (const StateTensor& piece : optimizer_.state(tensor)) {
    pieces.append(py::make_tuple(piece.name, py::array(dtype_of(piece.type), shapes_[tensor], piece.data, self)));
  }
  return pieces;
}

void Core::save(const std::string& path) {
  const Caller caller(*this);
  const py::gil_scoped_release released;
  optimizer_.save(path);
}

void Core::load(const std::string& path) {
  const Caller caller(*this);
  const py::gil_scoped_release released;
  optimizer_.load(path);
}

}  // namespace cautious::python
