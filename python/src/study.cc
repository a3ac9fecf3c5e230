// The module cautious._study: a study whose runs are made in Python. Statistics, files and reports are those of the study room;
// compare.py has the loop.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/text.h"
#include "run/decay_trace.h"
#include "run/reference_run.h"
#include "study/compare.h"
#include "study/external.h"

namespace py = pybind11;
using namespace cautious;

namespace {

study::Plan plan_of(const std::string& recipe, const std::vector<double>& lrs, const std::vector<double>& lambdas,
                    std::size_t seeds, std::size_t tune_seeds, const std::string& objective, const std::string& unit,
                    double target) {
  study::Comparison comparison{.seeds = seeds, .tune_seeds = tune_seeds, .lambdas = lambdas, .lrs = lrs};
  for (auto& [key, value] : base::with_context("recipe", [&] { return study::settings_of_recipe(recipe); })) {
    if (key == "optimizer.name") {
      comparison.optimizer = value;
    } else {
      comparison.settings.emplace_back(key, value);
    }
  }
  comparison.settings.emplace_back("objective.name", objective);
  comparison.settings.emplace_back("objective.unit", unit);
  comparison.settings.emplace_back("objective.target", base::to_text(target));
  return study::recorded_plan(comparison);
}

// ValueError: the caller's arguments. RuntimeError: the content of a file. OSError: the machine.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyObject* const kind = error.fault() == Fault::usage  ? PyExc_ValueError
                           : error.fault() == Fault::data ? PyExc_RuntimeError
                                                          : PyExc_OSError;
    PyErr_SetString(kind, error.what());
  }
}

void bind_run(py::module_& module) {
  using study::ExternalRun;
  py::class_<ExternalRun>(module, "Run")
      .def_readonly("folder", &ExternalRun::folder)
      .def_property_readonly("directory", [](const ExternalRun& run) { return run.directory.string(); })
      .def_readonly("arm", &ExternalRun::arm)
      .def_readonly("recipe", &ExternalRun::recipe)
      .def_readonly("lr", &ExternalRun::lr)
      .def_readonly("rest", &ExternalRun::rest)
      .def_readonly("rest_lr", &ExternalRun::rest_lr)
      .def_readonly("decay", &ExternalRun::decay)
      .def_readonly("weight_decay", &ExternalRun::weight_decay)
      .def_readonly("seed", &ExternalRun::seed)
      .def_readonly("decay_trace", &ExternalRun::decay_trace)
      .def_readonly("density_from", &ExternalRun::density_from)
      .def_readonly("budget_from", &ExternalRun::budget_from);
}

void bind_traces(py::module_& module) {
  using run::DecayTraceWriter, run::ReferenceRun;
  py::class_<DecayTraceWriter>(module, "DecayTraceWriter")
      .def(py::init([](const std::string& directory, const std::vector<std::string>& tensors, std::int64_t last_step) {
             return std::make_unique<DecayTraceWriter>(directory, tensors, last_step);
           }),
           py::arg("directory"), py::arg("tensors"), py::arg("last_step"))
      .def(
          "add",
          [](DecayTraceWriter& self, const std::vector<std::tuple<std::int64_t, std::int64_t, double>>& tensors) {
            StepReport report;
            for (const auto& [count, decayed, budget] : tensors) {
              report.tensors.push_back({.count = count, .decayed = decayed, .budget = budget});
            }
            self.add(report);
          },
          py::arg("tensors"));
  py::class_<ReferenceRun>(module, "ReferenceRun")
      .def(py::init([](const std::string& what, const std::string& directory, const std::vector<std::string>& tensors) {
             return std::make_unique<ReferenceRun>(what == "density" ? ReferenceRun::What::density : ReferenceRun::What::budget,
                                                   directory, tensors);
           }),
           py::arg("what"), py::arg("directory"), py::arg("tensors"))
      .def(
          "follow",
          [](const ReferenceRun& self, std::int64_t step, const std::vector<std::pair<double, double>>& tensors) {
            std::vector<run::OwnDecay> own;
            for (const auto& [strength, sum] : tensors) own.push_back({.strength = strength, .sum = sum});
            run::ReferenceRun::Amounts amounts = self.follow(step, own);
            return std::pair(std::move(amounts.densities), std::move(amounts.factors));
          },
          py::arg("step"), py::arg("tensors"));
}

}  // namespace

PYBIND11_MODULE(_study, module) {
  module.doc() = "Studies whose runs are made in Python: cautious.compare.";
  py::register_local_exception_translator(&translate);
  bind_run(module);
  bind_traces(module);
  py::class_<study::Conclusion>(module, "Conclusion")
      .def_readonly("text", &study::Conclusion::text)
      .def_property_readonly("answers", [](const study::Conclusion& c) { return c.verdict.answers; })
      .def_property_readonly("notes", [](const study::Conclusion& c) { return c.verdict.notes; })
      .def_property_readonly("report", [](const study::Conclusion& c) { return c.page.string(); });
  using study::ExternalStudy;
  py::class_<ExternalStudy>(module, "Study")
      .def(py::init([](const std::string& out, const std::string& recipe, const std::vector<double>& lrs,
                       const std::vector<double>& lambdas, std::size_t seeds, std::size_t tune_seeds,
                       const std::string& objective, const std::string& unit, double target) {
             return std::make_unique<ExternalStudy>(plan_of(recipe, lrs, lambdas, seeds, tune_seeds, objective, unit, target),
                                                    out);
           }),
           py::kw_only(), py::arg("out"), py::arg("recipe"), py::arg("lr"), py::arg("lambdas"), py::arg("seeds"),
           py::arg("tune_seeds"), py::arg("objective"), py::arg("unit"), py::arg("target"))
      .def("next", &ExternalStudy::next)
      .def_property_readonly("waits", &ExternalStudy::waits)
      .def("finish", &ExternalStudy::finish, py::arg("objective"), py::arg("decay_budget"))
      .def("fail", &ExternalStudy::fail, py::arg("why"), py::arg("log"))
      .def("progress", &ExternalStudy::progress)
      .def("conclude", &ExternalStudy::conclude)
      .def_property_readonly("done", [](const ExternalStudy& s) { return s.count(study::RunStatus::done); })
      .def_property_readonly("failed", [](const ExternalStudy& s) { return s.count(study::RunStatus::failed); });
}
