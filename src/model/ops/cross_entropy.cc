// Cross-entropy as an autograd function, and its checks.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/cross_entropy_pass.h"
#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

Wanted wanted_by(const Inputs& in) {
  return {in.hidden.requires_grad(), in.weight.requires_grad(), in.bias.defined() && in.bias.requires_grad()};
}

// The gradients are made with the loss. The first backward() takes them away, so that they become the parameters' gradients
// without a copy; a further one through the same graph computes them again.
class CrossEntropy : public ::torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias, const at::Tensor& target, double softcap) {
    const Inputs in{hidden, weight, bias ? *bias : at::Tensor(), target, softcap};
    Outcome out = compute_loss(in, wanted_by(in));
    context->save_for_backward({in.hidden, in.weight, in.bias, in.target});
    context->saved_data["softcap"] = softcap;
    context->saved_data["gradients"] = std::vector<at::Tensor>{out.hidden, out.weight, out.bias};
    return out.loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("cross_entropy");
    variable_list gradients;
    if (const auto kept = context->saved_data.find("gradients"); kept != context->saved_data.end()) {
      gradients = kept->second.toTensorVector();
      context->saved_data.erase(kept);
    } else {
      const variable_list saved = context->get_saved_variables();
      const Inputs in{saved[0], saved[1], saved[2], saved[3], context->saved_data["softcap"].toDouble()};
      const Outcome out = compute_loss(in, wanted_by(in));
      gradients = {out.hidden, out.weight, out.bias};
    }
    if (const double by = incoming[0].item<double>(); by != 1)
      for (at::Tensor& gradient : gradients)
        if (gradient.defined()) gradient.mul_(by);
    return {gradients[0], gradients[1], gradients[2], at::Tensor(), at::Tensor()};
  }
};

std::string sides(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")) : "none";
}

void check_inputs(const Inputs& in) {
  const bool fits = in.hidden.dim() == 2 && in.weight.dim() == 2 && in.target.dim() == 1 &&
                    in.hidden.size(1) == in.weight.size(1) && in.hidden.size(0) == in.target.size(0) &&
                    (!in.bias.defined() || (in.bias.dim() == 1 && in.bias.size(0) == in.weight.size(0)));
  if (!fits)
    throw Error(Fault::usage, fmt::format("cross_entropy: hidden {}, weight {}, bias {} and target {} do not fit together; "
                                          "expected [N, d], [V, d], [V] or none, and [N]",
                                          sides(in.hidden), sides(in.weight), sides(in.bias), sides(in.target)));
  if (in.target.scalar_type() != at::kLong)
    throw Error(Fault::usage,
                fmt::format("cross_entropy: the targets are {}; they must be int64", c10::toString(in.target.scalar_type())));
  if (!(in.softcap >= 0 && std::isfinite(in.softcap)))
    throw Error(Fault::usage, fmt::format("cross_entropy: the soft-cap is {}; it must be positive, or 0 for off", in.softcap));
}

// `target` contiguous on the CPU.
void check_words(const at::Tensor& target, std::int64_t words) {
  const std::int64_t* at = target.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < target.numel(); ++row)
    if (at[row] < -1 || at[row] >= words)
      throw Error(Fault::data, fmt::format("cross_entropy: target {} of row {} is outside [-1, {})", at[row], row, words));
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap, Path path) {
  Inputs in{hidden, weight, bias, target, softcap};
  check_inputs(in);
  const at::Tensor words = target.to(at::kCPU).contiguous();
  check_words(words, weight.size(0));
  if (path == Path::plain || !can_fuse({hidden, weight, bias})) {
    if (count_of(words) > 0) return plain::cross_entropy(hidden, weight, bias, target, softcap);
    const at::Tensor all = hidden.sum().add(weight.sum());  // no mean of no rows: 0, and so are the gradients
    return (bias.defined() ? all.add(bias.sum()) : all).mul(0);
  }
  in.target = words;
  if (at::GradMode::is_enabled() && wanted_by(in).any())
    return CrossEntropy::apply(hidden, weight, bias.defined() ? c10::optional<at::Tensor>(bias) : c10::nullopt, words, softcap);
  return compute_loss(in, {false, false, false}).loss;
}

}  // namespace cautious::model::ops
