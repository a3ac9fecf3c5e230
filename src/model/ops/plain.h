// The operations of ops.h in ATen operations, on any device and type; libtorch differentiates them. They check no shapes.
#pragma once

#include "model/ops/ops.h"

namespace cautious::model::ops::plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps);
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation);
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape);
at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap);

}  // namespace cautious::model::ops::plain
