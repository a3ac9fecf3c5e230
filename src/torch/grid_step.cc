// Tensors of an accelerator under an elementwise recipe: one launch for all of a group on one device (src/kernels/grid.h).
// State is that of the ATen path, so a saved run continues on either.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/hash.h"
#include "kernels/grid.h"
#include "optim/random_key.h"
#include "torch/parts.h"

namespace cautious::torch {
namespace {

Decay decay_of(const ParamGroup& group) { return group.decay == DecaySwitch::on ? group.recipe.decay : Decay(None{}); }

// `after` does nothing more before `before` has done what it was given so far.
void let_wait(const c10::Stream& after, const c10::Stream& before) {
  if (after == before) return;
  c10::Event event(before.device_type());
  event.record(before);
  event.block(after);
}

// A list in the device's memory. The host's may go when this returns: a copy from pageable memory has been read by then.
template <class Row>
at::Tensor sent(std::vector<Row>& rows, at::Device device) {
  const auto bytes = static_cast<std::int64_t>(rows.size() * sizeof(Row));
  return at::from_blob(rows.data(), {bytes}, at::kByte).to(at::TensorOptions(device), /*non_blocking=*/true);
}

template <class Row>
Row* rows_in(const at::Tensor& bytes) {
  return static_cast<Row*>(bytes.data_ptr());
}

void* memory_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

}  // namespace

const kernels::GridDevice* grid_device(const at::Device& device) {
#ifdef CAUTIOUS_HAS_CUDA
  if (device.is_cuda()) return &kernels::kCuda;
#endif
  static_cast<void>(device);
  return nullptr;
}

bool fits_grid(const Entry& entry, const ParamGroup& group, const Settings& settings) {
  return entry.type != at::kDouble && settings.update_rms_clip == 0 && portable::on_grid(group.recipe.rule, decay_of(group));
}

at::Tensor step_on_grid(ParamGroup& group, const std::vector<std::size_t>& moving, const Rates& rates,
                        const std::vector<at::Tensor>& gradients, const Settings& settings, const kernels::GridDevice& grid) {
  const at::Device device = group.entries[moving.front()].device;
  const c10::Stream caller = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const c10::StreamGuard guard(c10::Stream(c10::Stream::DEFAULT, device));  // where kernels are launched
  let_wait(guard.current_stream(), caller);

  const Decay decay = decay_of(group);
  std::vector<at::Tensor> x, g;  // kept until the kernels are launched
  std::vector<kernels::GridTensor> tensors;
  for (const std::size_t i : moving) {
    const Entry& entry = group.entries[i];
    const std::int64_t t = entry.state.t + 1;
    const auto key = [&](optim::Purpose purpose) {
      return optim::random_key(settings.seed, purpose, t, base::hash_of(entry.name));
    };
    kernels::GridTensor& row = tensors.emplace_back();
    row.x = x.emplace_back(row_after_row(entry.tensor)).data_ptr();
    row.g = g.emplace_back(row_after_row(gradients[i])).data_ptr();
    row.m = memory_of(entry.state.m), row.v = memory_of(entry.state.v), row.x0 = memory_of(entry.state.x0);
    row.low = static_cast<std::int16_t*>(memory_of(entry.state.low));
    row.count = static_cast<std::uint64_t>(entry.tensor.numel());
    row.parameter = element_of_type(entry.type), row.gradient = element_of_type(gradients[i].scalar_type());
    row.moments = settings.moments;
    row.rounding = settings.rounding;
    row.lr = static_cast<float>(rates.lr), row.wd = static_cast<float>(rates.wd), row.spent = rates.lr * rates.wd;
    row.chance = key(optim::Purpose::decay), row.round = key(optim::Purpose::rounding);
    grid.prepare(group.recipe.rule, t, decay, row);
  }
  std::vector<kernels::GridBlock> blocks = kernels::cut_into_blocks(tensors);

  const auto count = static_cast<std::int64_t>(blocks.size() * sizeof(kernels::Counted));
  const at::TensorOptions there(device);
  const at::Tensor sent_tensors = sent(tensors, device), sent_blocks = sent(blocks, device),
                   counted = at::empty({count}, there.dtype(at::kByte));
  at::Tensor seen = at::empty({static_cast<std::int64_t>(tensors.size()), static_cast<std::int64_t>(kernels::kGridSeen)},
                              there.dtype(at::kDouble));
  grid.launch(
      group.recipe.rule, decay,
      {rows_in<kernels::GridTensor>(sent_tensors), rows_in<kernels::GridBlock>(sent_blocks), rows_in<kernels::Counted>(counted),
       seen.data_ptr<double>(), static_cast<std::uint32_t>(tensors.size()), static_cast<std::uint32_t>(blocks.size())});
  for (std::size_t k = 0; k < moving.size(); ++k) {
    Entry& entry = group.entries[moving[k]];
    ++entry.state.t;
    store_back(x[k], entry.tensor);
  }
  let_wait(caller, guard.current_stream());
  return seen;
}

}  // namespace cautious::torch
