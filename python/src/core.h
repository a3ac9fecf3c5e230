// The optimizer as Python holds it: cautious::Optimizer, one caller at a time, and PyTorch's tensors by their addresses.
// libtorch is neither included nor linked: what a tensor is, its own Python methods say, so one build serves every PyTorch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cautious/error.h>
#include <cautious/optimizer.h>

namespace cautious::python {

namespace py = pybind11;

using Settings = std::vector<std::pair<std::string, std::string>>;  // field, value as text

class Core {
 public:
  Core(Routing routing, const Settings& options);

  std::size_t add(std::string name, std::vector<std::int64_t> shape, const std::string& element, const std::string& gradient,
                  std::uintptr_t x, std::uintptr_t g, std::string group);
  void bind(std::size_t tensor, std::uintptr_t x, std::uintptr_t g);
  void set_anchor(std::size_t tensor, std::uintptr_t x0);
  void set_density(std::size_t tensor, double density);
  // For step_tensors(): the group's own learning rate, and its weight decay as the coupling and the schedule make it. Returns
  // their product.
  double set_rates(std::size_t group, const Recipe& recipe, double lr, double lr_max, double decay_factor);
  void set_steps(std::size_t tensor, std::int64_t t);
  std::int64_t steps_of(std::size_t tensor);
  std::string group_of(std::size_t tensor);

  // Without Python's lock.
  void step(double lr, double lr_max, double decay_factor, const std::vector<double>& tensor_factors);

  // A tensor of PyTorch for step_tensors(). Those stepped elsewhere are known too, so that changed lists are noticed; `slot` is
  // the index of add(), or negative for them.
  void watch(py::object tensor, std::size_t group, std::ptrdiff_t slot);
  // The tensor's present memory is all right: it has been looked at.
  void trust(std::size_t watched, std::uintptr_t x);

  // One step of all watched tensors with gradients, lr being the groups' multipliers. `groups` are the lists of parameters as
  // the caller has them now, `tensor_factors` as those of a StepInput. Returns kDone, kChanged if the lists are not those that
  // were watched, or the index of a watched tensor that somebody has to look at first: its memory or type changed, or its
  // gradient does not fit. Nothing has changed then.
  static constexpr std::ptrdiff_t kDone = -1, kChanged = -2;
  std::ptrdiff_t step_tensors(const py::list& groups, const std::vector<double>& tensor_factors);

  // (step, skipped, clip_scale, f64 [tensors + 1, 8]); the columns are those of Tally, the last row is the total.
  py::tuple report();
  // (name, array) of each piece of a tensor's state; the arrays are the state itself and keep `self` alive.
  py::list state(std::size_t tensor, const py::object& self);
  void save(const std::string& path);
  void load(const std::string& path);

 private:
  // Refuses a second caller in another thread.
  class Caller {
   public:
    explicit Caller(Core& core) : core_(core) {
      if (core.busy_.exchange(true)) throw Error(Fault::usage, "another thread is using this optimizer; one step at a time");
    }
    ~Caller() { core_.busy_ = false; }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Core& core_;
  };

  struct Watched {
    py::object tensor;
    PyObject* dtype;  // of PyTorch; they live forever
    std::size_t group;
    std::ptrdiff_t slot;
    std::uintptr_t x = 0;  // trusted address
    std::int64_t count = 0;
  };
  bool gather(const Watched& watched, py::object& gradient);

  Optimizer optimizer_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<Watched> watched_;
  StepReport report_;
  std::atomic<bool> busy_ = false;
};

// tensors.cc: what PyTorch calls these. Called once.
void use_torch(const py::module_& torch);

}  // namespace cautious::python
