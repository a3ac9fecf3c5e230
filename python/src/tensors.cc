// Steps of PyTorch's tensors. Every step asks each of them where it is now, through the methods of torch.Tensor itself; with a
// thousand small tensors that is most of a step's time, so the methods are looked up once and called without arguments' tuples.
#include "core.h"

namespace cautious::python {
namespace {

// Methods of torch.Tensor and names of its attributes. They live as long as the interpreter.
struct Methods {
  PyObject *data_ptr, *numel, *is_contiguous, *contiguous, *bump;
  PyObject *grad, *dtype, *layout;
  PyObject* strided;
};

Methods methods = {};

PyObject* kept(py::object object) { return object.release().ptr(); }

// New reference, or nullptr with Python's error set.
PyObject* call(PyObject* method, PyObject* self) { return PyObject_Vectorcall(method, &self, 1, nullptr); }

// A method's answer as a number; -1 if it raised, with the error dropped: whoever looks at the tensor will say what is wrong.
std::int64_t number(PyObject* method, PyObject* self) {
  PyObject* answer = call(method, self);
  const std::int64_t value = answer == nullptr ? -1 : PyLong_AsLongLong(answer);
  Py_XDECREF(answer);
  if (answer == nullptr || (value == -1 && PyErr_Occurred() != nullptr)) PyErr_Clear();
  return value;
}

bool has(PyObject* tensor, PyObject* attribute, const PyObject* value) {
  PyObject* found = PyObject_GetAttr(tensor, attribute);
  if (found == nullptr) PyErr_Clear();
  Py_XDECREF(found);
  return found == value;
}

}  // namespace

void use_torch(const py::module_& torch) {
  const py::object tensor = torch.attr("Tensor");
  methods.data_ptr = kept(tensor.attr("data_ptr"));
  methods.numel = kept(tensor.attr("numel"));
  methods.is_contiguous = kept(tensor.attr("is_contiguous"));
  methods.contiguous = kept(tensor.attr("contiguous"));
  // Autograd must notice that a parameter has changed. Before 2.1 there is no function for it alone; this one does nothing else
  // to real numbers.
  const py::module_ graph = py::module_::import("torch.autograd.graph");
  methods.bump =
      kept(py::hasattr(graph, "increment_version") ? graph.attr("increment_version") : tensor.attr("conj_physical_"));
  methods.grad = PyUnicode_InternFromString("grad");
  methods.dtype = PyUnicode_InternFromString("dtype");
  methods.layout = PyUnicode_InternFromString("layout");
  methods.strided = kept(torch.attr("strided"));
}

void Core::watch(py::object tensor, std::size_t group, std::ptrdiff_t slot) {
  const Caller caller(*this);
  const py::object dtype = tensor.attr("dtype");
  watched_.push_back({std::move(tensor), dtype.ptr(), group, slot, 0, -1});
}

void Core::trust(std::size_t watched, std::uintptr_t x) {
  const Caller caller(*this);
  watched_.at(watched).x = x;
  watched_.at(watched).count = number(methods.numel, watched_.at(watched).tensor.ptr());
}

// Whether the tensor is as it was trusted and its gradient fits; then the core has its addresses. `gradient` must live until
// after the step. A sparse gradient does not; its is_contiguous() raises, or is false since PyTorch 2.
bool Core::gather(const Watched& watched, py::object& gradient) {
  PyObject* x = watched.tensor.ptr();
  const std::int64_t address = number(methods.data_ptr, x);
  if (static_cast<std::uintptr_t>(address) != watched.x || number(methods.numel, x) != watched.count) return false;
  gradient = py::reinterpret_steal<py::object>(PyObject_GetAttr(x, methods.grad));
  if (!gradient) throw py::error_already_set();
  const auto slot = static_cast<std::size_t>(watched.slot);
  auto* memory = reinterpret_cast<void*>(watched.x);  // NOLINT(performance-no-int-to-ptr)
  if (gradient.is_none()) {
    optimizer_.bind(slot, memory, nullptr);
    return true;
  }
  PyObject* answer = call(methods.is_contiguous, gradient.ptr());
  if (answer == nullptr) PyErr_Clear();
  const bool raised = answer == nullptr, packed = answer == Py_True;
  Py_XDECREF(answer);
  if (raised || number(methods.numel, gradient.ptr()) != watched.count || !has(gradient.ptr(), methods.dtype, watched.dtype))
    return false;
  if (!packed) {
    if (!has(gradient.ptr(), methods.layout, methods.strided)) return false;
    gradient = py::reinterpret_steal<py::object>(call(methods.contiguous, gradient.ptr()));
    if (!gradient) throw py::error_already_set();
  }
  const std::int64_t g = number(methods.data_ptr, gradient.ptr());
  if (g == -1 || (g == 0 && watched.count > 0)) return false;
  optimizer_.bind(slot, memory, reinterpret_cast<const void*>(g));  // NOLINT(performance-no-int-to-ptr)
  return true;
}

std::ptrdiff_t Core::step_tensors(const py::list& groups, const std::vector<double>& tensor_factors) {
  const Caller caller(*this);
  std::size_t at = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const py::handle list = PyList_GET_ITEM(groups.ptr(), static_cast<py::ssize_t>(g));
    if (PyList_Check(list.ptr()) == 0) return kChanged;
    for (py::ssize_t i = 0; i < PyList_GET_SIZE(list.ptr()); ++i, ++at) {
      if (at >= watched_.size() || watched_[at].group != g || watched_[at].tensor.ptr() != PyList_GET_ITEM(list.ptr(), i))
        return kChanged;
    }
  }
  if (at != watched_.size()) return kChanged;

  std::vector<std::pair<std::size_t, py::object>> gradients;  // of watched tensors that take part
  gradients.reserve(watched_.size());
  for (at = 0; at < watched_.size(); ++at) {
    if (watched_[at].slot < 0) continue;
    py::object gradient;
    if (!gather(watched_[at], gradient)) return static_cast<std::ptrdiff_t>(at);
    if (!gradient.is_none()) gradients.emplace_back(at, std::move(gradient));
  }
  if (gradients.empty()) {
    report_ = {};
    return kDone;
  }
  {
    const py::gil_scoped_release released;
    report_ = optimizer_.step({.lr = 1, .tensor_factors = tensor_factors});
  }
  if (report_.skipped) return kDone;
  for (const auto& [index, gradient] : gradients) {
    PyObject* done = call(methods.bump, watched_[index].tensor.ptr());
    if (done == nullptr) throw py::error_already_set();
    Py_DECREF(done);
  }
  return kDone;
}

}  // namespace cautious::python
