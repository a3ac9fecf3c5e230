#include "train/device.h"

#include <mutex>

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <cautious/error.h>

namespace cautious::train {
namespace {

at::Device gpu_of(const ranks::World& world) {
  const auto count = static_cast<int>(::torch::cuda::device_count());
  return {at::kCUDA, static_cast<c10::DeviceIndex>(world.local_rank() % count)};
}

[[noreturn]] void refuse_device(const std::string& name, const std::string& why) {
  throw Error(Fault::usage, fmt::format("train.device is {}, but {}; choose cpu, or auto", name, why), {"train.device", ""});
}

void set_autocast(const at::Device& device, bool on) {
#if TORCH_VERSION_MAJOR >= 2
  at::autocast::set_autocast_dtype(device.type(), at::kBFloat16);
  at::autocast::set_autocast_enabled(device.type(), on);
#else
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
  device.is_cpu() ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
#endif
  if (!on) at::autocast::clear_cache();
}

at::Device asked_device(const run::RunConfig& config, const ranks::World& world) {
  const std::string& name = config.train.device;
  if (name == "auto") return ::torch::cuda::is_available() ? gpu_of(world) : at::Device(at::kCPU);
  if (name.starts_with("cuda")) {
    const auto count = static_cast<int>(::torch::cuda::device_count());
    if (count == 0) refuse_device(name, "this libtorch finds no GPU of CUDA");
    if (name == "cuda") return gpu_of(world);
    const at::Device device(name);
    if (device.index() >= count) refuse_device(name, fmt::format("there are {}, from cuda:0 to cuda:{}", count, count - 1));
    return device;
  }
  if (name == "lazy") {
    static std::once_flag once;
    std::call_once(once, ::torch::lazy::InitTorchScriptBackend);
    return {at::kLazy, 0};
  }
  return at::Device(name);
}

}  // namespace

at::Device device_of(const run::RunConfig& config, const ranks::World& world) {
  const at::Device device = asked_device(config, world);
  if (device.is_cpu()) return device;
  const auto refuse_on = [&](const char* what) {
    throw Error(Fault::usage, fmt::format("{} on the CPU only, and the device is {}; set train.device=cpu", what, device.str()),
                {"train.device", ""});
  };
  if (!config.eval.tasks.empty()) refuse_on("eval.tasks are asked");
  if (!config.log.prompt.empty()) refuse_on("log.prompt is continued");
  if (!config.optimizer.density_from.empty()) refuse_on("optimizer.density_from can be repeated");
  if (!config.optimizer.budget_from.empty()) refuse_on("optimizer.budget_from can be repeated");
  return device;
}

at::TensorOptions place_of(const run::RunConfig& config, const at::Device& device) {
  const run::Precision precision = config.train.precision;
  const bool wide = precision == run::Precision::f32 || precision == run::Precision::mixed;
  return at::TensorOptions(device).dtype(wide ? at::kFloat : at::kBFloat16);
}

Precise::Precise(const run::RunConfig& config, const at::Device& device)
    : mixed_(config.train.precision == run::Precision::mixed), device_(device) {
  if (mixed_) set_autocast(device_, true);
}
Precise::~Precise() {
  if (mixed_) set_autocast(device_, false);
}

void settle(const at::Device& device) {
  if (!device.is_lazy()) return;
  const auto lazy = ::torch::lazy::BackendDevice();
  ::torch::lazy::LazyGraphExecutor::Get()->SyncLiveTensorsGraph(&lazy, {}, /*wait=*/true);
}

}  // namespace cautious::train
