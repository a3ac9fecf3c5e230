// The module cautious._core: recipes, routing, orthogonal factors and the optimizer; and the library's errors as Python's.
#include <cautious/cautious.h>

#include "core.h"

namespace cautious::python {
namespace {

// ValueError: the caller's arguments. RuntimeError: the content of a file or a gradient. OSError: the machine.
void translate(std::exception_ptr error) {  // NOLINT(performance-unnecessary-value-param): what pybind11 calls
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& e) {
    PyObject* kind = e.fault() == Fault::usage  ? PyExc_ValueError
                     : e.fault() == Fault::data ? PyExc_RuntimeError
                                                : PyExc_OSError;
    PyErr_SetString(kind, e.what());
  }
}

// The recipe of a line with some fields set; the decay first, since it resets its own fields.
Recipe recipe_with(const std::string& line, const Settings& given) {
  Recipe made = parse_recipe(line);
  for (const bool decay : {true, false}) {
    for (const auto& [field, value] : given) {
      if ((field == "decay") == decay) set(made, field, value);
    }
  }
  return made;
}

// (name, value, valid, help, kind) of each.
py::list field_rows(const std::vector<FieldInfo>& all) {
  constexpr const char* kKinds[] = {"number", "whole", "choice", "flag", "numbers"};
  py::list rows;
  for (const FieldInfo& field : all) {
    rows.append(py::make_tuple(field.name, field.value, field.valid, field.help, kKinds[static_cast<int>(field.kind)]));
  }
  return rows;
}

template <class T>
void polar_in_place(py::array_t<T, py::array::c_style>& matrix, const Polar& how, int threads) {
  auto view = matrix.template mutable_unchecked<2>();
  const std::span<T> entries(view.mutable_data(0, 0), static_cast<std::size_t>(view.size()));
  const py::gil_scoped_release released;
  polar(entries, view.shape(0), view.shape(1), how, threads);
}

// In place; the fields are those of muon's factor.
void polar_of_array(const py::array& matrix, const Settings& given, int threads) {
  Recipe muon = recipe("muon");
  for (const auto& [field, value] : given) set(muon, field, value);
  const Polar& how = std::get<Muon>(muon.rule).polar;
  if (py::isinstance<py::array_t<double>>(matrix)) {
    auto of = py::cast<py::array_t<double, py::array::c_style>>(matrix);
    polar_in_place(of, how, threads);
  } else {
    auto of = py::cast<py::array_t<float, py::array::c_style>>(matrix);
    polar_in_place(of, how, threads);
  }
}

void define_routing(py::module_& m) {
  py::class_<Recipe>(m, "Recipe").def("__str__", [](const Recipe& r) { return to_string(r); });
  py::class_<Group>(m, "Group", "A recipe for some tensors, with a factor on their learning rate; decay=False switches it off.")
      .def(py::init([](std::string name, const std::string& line, double lr_multiplier, bool decay) {
             return Group{std::move(name), parse_recipe(line), lr_multiplier, decay ? DecaySwitch::on : DecaySwitch::off};
           }),
           py::arg("name"), py::arg("recipe"), py::arg("lr_multiplier") = 1.0, py::arg("decay") = true)
      .def_readonly("name", &Group::name)
      .def_property_readonly("recipe", [](const Group& g) { return to_string(g.recipe); })
      .def_readonly("lr_multiplier", &Group::lr_multiplier)
      .def_property_readonly("decay", [](const Group& g) { return g.decay == DecaySwitch::on; });
  py::class_<Route>(m, "Route",
                    "Tensors of a group: by name ('*' is any text, '?' any character), by the number of sides longer than 1, "
                    "and by the longest side.")
      .def(py::init(
               [](std::string group, std::string pattern, std::int64_t min_rank, std::int64_t max_rank, std::int64_t max_side) {
                 return Route{std::move(group), std::move(pattern), min_rank, max_rank, max_side};
               }),
           py::arg("group"), py::arg("pattern") = "*", py::arg("min_rank") = 0, py::arg("max_rank") = Route::kUnlimited,
           py::arg("max_side") = Route::kUnlimited)
      .def_readonly("group", &Route::group);
  py::class_<Routing>(m, "Routing", "Groups, and the routes that send tensors to them; the first route that fits decides.")
      .def(py::init([](std::vector<Group> groups, std::vector<Route> routes) {
             return Routing{std::move(groups), std::move(routes)};
           }),
           py::arg("groups"), py::arg("routes"))
      .def_readonly("groups", &Routing::groups)
      .def(
          "group_of",
          [](const Routing& r, const std::string& name, const std::vector<std::int64_t>& shape) {
            return r.groups[route(r, name, shape)].name;
          },
          py::arg("name"), py::arg("shape"), "The name of the group that a tensor belongs to.");
  m.def("everything", [](const std::string& line) { return everything(parse_recipe(line)); });
  m.def(
      "no_decay_on_vectors", [](const std::string& line) { return no_decay_on_vectors(parse_recipe(line)); }, py::arg("recipe"),
      "Vectors and scalars do not decay.");
  m.def(
      "matrices_and_rest",
      [](const std::string& matrices, const std::string& rest, std::int64_t max_side) {
        return matrices_and_rest(parse_recipe(matrices), parse_recipe(rest), max_side);
      },
      py::arg("matrices"), py::arg("rest"), py::arg("max_side") = Route::kUnlimited,
      "Matrices to one recipe, the rest to another; vectors and scalars do not decay. A matrix with a side above max_side "
      "(an embedding) belongs to the rest.");
}

void define_core(py::module_& m) {
  py::class_<Core>(m, "Core")
      .def(py::init<Routing, const Settings&>())
      .def("add", &Core::add)
      .def("bind", &Core::bind)
      .def("set_anchor", &Core::set_anchor)
      .def("set_density", &Core::set_density)
      .def("set_rates", &Core::set_rates)
      .def("set_steps", &Core::set_steps)
      .def("steps_of", &Core::steps_of)
      .def("group_of", &Core::group_of)
      .def("step", &Core::step)
      .def("watch", &Core::watch)
      .def("trust", &Core::trust)
      .def("step_tensors", &Core::step_tensors)
      .def("report", &Core::report)
      .def("state", [](const py::object& self, std::size_t tensor) { return self.cast<Core&>().state(tensor, self); })
      .def("save", &Core::save)
      .def("load", &Core::load);
  m.attr("DONE") = Core::kDone;
  m.attr("CHANGED") = Core::kChanged;
  m.def("use_torch", &use_torch);
}

}  // namespace
}  // namespace cautious::python

PYBIND11_MODULE(_core, m) {
  using namespace cautious;  // NOLINT(google-build-using-namespace)
  namespace py = pybind11;
  py::register_exception_translator(&python::translate);
  m.attr("__version__") = CAUTIOUS_VERSION;
  m.def("recipe_names", &recipe_names, "Names of the recipes: what a recipe line may begin with.");
  m.def("decay_names", &decay_names, "Names of the decays.");
  m.def("recipe", &python::recipe_with);
  m.def("has_anchor", [](const Recipe& r) { return has_anchor(r.decay); });
  m.def("rule_of", [](const Recipe& r) { return std::string(name_of(r.rule)); });
  m.def("recipe_fields", [](const Recipe& r) { return python::field_rows(fields(r)); });
  m.def("polar", &python::polar_of_array);
  python::define_routing(m);
  python::define_core(m);
}
