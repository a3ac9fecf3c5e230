// activation(gate) * up, one pass forward and one backward.
#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

// Entries of one job. Where jobs begin depends on nothing else, so neither do the bits.
constexpr std::int64_t kTile = 4096;

// Both activations are x sigmoid(a(x)): a is x for silu; for gelu 1 + tanh(b) = 2 sigmoid(2 b).
template <class T>
struct Gate {
  T argument, slope;  // a(x) and its derivative
};

template <Activation activation, class T>
CAUTIOUS_INLINE Gate<T> gate_of(T x) {
  if constexpr (activation == Activation::silu) {
    return {x, T(1)};
  } else {
    constexpr T twice = T(1.5957691216057307117597842397375), cubic = T(0.044715);  // sqrt(8 / pi)
    constexpr T far = T(16);       // beyond it the sigmoid is 0 or 1, and a square might overflow into infinity times 0
    T near = x < -far ? -far : x;  // two steps, or the compiler does not vectorize
    near = near > far ? far : near;
    const T square = near * near;
    return {twice * near * (T(1) + cubic * square), twice * (T(1) + T(3) * cubic * square)};
  }
}

template <class T>
CAUTIOUS_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}

template <class T>
struct GateForward {
  const T *gate, *up;
  T* out;
};

template <Activation activation, class T>
CAUTIOUS_INLINE void gate_forward_loop(const GateForward<T>& at, std::int64_t begin, std::int64_t end) {
  const T* __restrict gate = at.gate;
  const T* __restrict up = at.up;
  T* __restrict out = at.out;
  for (std::int64_t i = begin; i < end; ++i) out[i] = gate[i] * sigmoid(gate_of<activation>(gate[i]).argument) * up[i];
}

template <class T>
struct GateBackward {
  const T *gate, *up, *out;  // out: the incoming gradient
  T *by_gate, *by_up;
};

template <Activation activation, class T>
CAUTIOUS_INLINE void gate_backward_loop(const GateBackward<T>& at, std::int64_t begin, std::int64_t end) {
  const T* __restrict gate = at.gate;
  const T* __restrict up = at.up;
  const T* __restrict out = at.out;
  T* __restrict by_gate = at.by_gate;
  T* __restrict by_up = at.by_up;
  for (std::int64_t i = begin; i < end; ++i) {
    const T x = gate[i];
    const Gate<T> inner = gate_of<activation>(x);
    const T s = sigmoid(inner.argument);
    by_up[i] = out[i] * (x * s);
    by_gate[i] = out[i] * up[i] * (s * (T(1) + x * (T(1) - s) * inner.slope));
  }
}

CAUTIOUS_CLONES void run_silu(const GateForward<float>& at, std::int64_t begin, std::int64_t end) {
  gate_forward_loop<Activation::silu>(at, begin, end);
}
CAUTIOUS_CLONES void run_silu(const GateForward<double>& at, std::int64_t begin, std::int64_t end) {
  gate_forward_loop<Activation::silu>(at, begin, end);
}
CAUTIOUS_CLONES void run_silu(const GateBackward<float>& at, std::int64_t begin, std::int64_t end) {
  gate_backward_loop<Activation::silu>(at, begin, end);
}
CAUTIOUS_CLONES void run_silu(const GateBackward<double>& at, std::int64_t begin, std::int64_t end) {
  gate_backward_loop<Activation::silu>(at, begin, end);
}
CAUTIOUS_CLONES void run_gelu(const GateForward<float>& at, std::int64_t begin, std::int64_t end) {
  gate_forward_loop<Activation::gelu>(at, begin, end);
}
CAUTIOUS_CLONES void run_gelu(const GateForward<double>& at, std::int64_t begin, std::int64_t end) {
  gate_forward_loop<Activation::gelu>(at, begin, end);
}
CAUTIOUS_CLONES void run_gelu(const GateBackward<float>& at, std::int64_t begin, std::int64_t end) {
  gate_backward_loop<Activation::gelu>(at, begin, end);
}
CAUTIOUS_CLONES void run_gelu(const GateBackward<double>& at, std::int64_t begin, std::int64_t end) {
  gate_backward_loop<Activation::gelu>(at, begin, end);
}

template <class Streams>
void run_tiles(const Streams& at, std::int64_t count, Activation activation) {
  at::parallel_for(0, (count + kTile - 1) / kTile, 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t begin = tile * kTile, end = std::min(count, begin + kTile);
      if (activation == Activation::silu)
        run_silu(at, begin, end);
      else
        run_gelu(at, begin, end);
    }
  });
}

// Of contiguous tensors.
at::Tensor gated_of(const at::Tensor& gate, const at::Tensor& up, Activation activation) {
  at::Tensor out = at::empty(gate.sizes(), gate.options());
  if (gate.scalar_type() == at::kFloat)
    run_tiles(GateForward<float>{gate.data_ptr<float>(), up.data_ptr<float>(), out.data_ptr<float>()}, gate.numel(),
              activation);
  else
    run_tiles(GateForward<double>{gate.data_ptr<double>(), up.data_ptr<double>(), out.data_ptr<double>()}, gate.numel(),
              activation);
  return out;
}

template <class T>
GateBackward<T> streams(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& out, const at::Tensor& by_gate,
                        const at::Tensor& by_up) {
  return {gate.data_ptr<T>(), up.data_ptr<T>(), out.data_ptr<T>(), by_gate.data_ptr<T>(), by_up.data_ptr<T>()};
}

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

class Gated : public ::torch::autograd::Function<Gated> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up, Activation activation) {
    const at::Tensor whole_gate = gate.contiguous(), whole_up = up.contiguous();
    context->save_for_backward({whole_gate, whole_up});
    context->saved_data["activation"] = static_cast<std::int64_t>(activation);
    return gated_of(whole_gate, whole_up, activation);
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("gated");
    const variable_list saved = context->get_saved_variables();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const at::Tensor &gate = saved[0], &up = saved[1], out = incoming[0].contiguous();
    const at::TensorOptions options = gate.options().requires_grad(false);
    const at::Tensor by_gate = at::empty(gate.sizes(), options), by_up = at::empty(gate.sizes(), options);
    if (gate.scalar_type() == at::kFloat)
      run_tiles(streams<float>(gate, up, out, by_gate, by_up), gate.numel(), activation);
    else
      run_tiles(streams<double>(gate, up, out, by_gate, by_up), gate.numel(), activation);
    return {by_gate, by_up, at::Tensor()};
  }
};

}  // namespace

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation, Path path) {
  if (gate.sizes() != up.sizes())
    throw Error(Fault::usage, fmt::format("gated: gate [{}] and up [{}] have different shapes", fmt::join(gate.sizes(), ", "),
                                          fmt::join(up.sizes(), ", ")));
  if (path == Path::plain || !can_fuse({gate, up})) return plain::gated(gate, up, activation);
  if (at::GradMode::is_enabled() && (gate.requires_grad() || up.requires_grad())) return Gated::apply(gate, up, activation);
  return gated_of(gate.contiguous(), up.contiguous(), activation);
}

}  // namespace cautious::model::ops
