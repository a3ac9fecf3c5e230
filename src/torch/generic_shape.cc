// Directions that are more than a formula per entry: the functions K of Lion-K and orthogonal factors, in ATen operations.
#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "torch/generic.h"
#include "linear/orthogonal.h"
#include "optim/polar.h"
#include "optim/shaping.h"

namespace cautious::torch::generic {
namespace {

// Per matrix of [count, rows, cols], in f64 and without overflow: 2-norm over all entries, as [count, 1, 1].
at::Tensor norms(const at::Tensor& z) {
  const at::Tensor wide = z.to(at::kDouble);
  const at::Tensor most = wide.abs().amax({1, 2}, true);
  const at::Tensor divisor = at::where(most == 0, at::ones_like(most), most);
  const at::Tensor norm = most * (wide / divisor).square().sum({1, 2}, true).sqrt();
  return at::where(most.isinf(), most, norm);
}

at::Tensor norm_of(const at::Tensor& z) { return norms(z.reshape({1, 1, -1})).squeeze(); }

double smallest(const at::Tensor& z) {
  return z.scalar_type() == at::kDouble ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

at::Tensor l2(const at::Tensor& z) {
  const at::Tensor length = norm_of(z);
  const at::Tensor inverse = (1 / length).to(z.scalar_type());
  const at::Tensor u = at::where(inverse.isinf(), (z.to(at::kDouble) / length).to(z.scalar_type()), z * inverse);
  return at::where(length == 0, z, u);
}

at::Tensor lp(const at::Tensor& z, double p) {
  const at::Tensor size = z.to(at::kDouble).abs(), most = size.max();
  const at::Tensor part = size / most;
  const at::Tensor root = part.pow(p).sum().pow(1 / p);
  const at::Tensor u = (sign_of(z).to(at::kDouble) * (part / root).pow(p - 1)).to(z.scalar_type());
  return at::where(most == 0, z, u);
}

at::Tensor relativistic(const at::Tensor& z, double least, double e) {
  const bool wide = z.scalar_type() == at::kDouble;
  const double low = wide ? 1e-140 : 1e-15, high = wide ? 1e150 : 1e18;
  const double width = wide ? least : static_cast<float>(least);
  const at::Tensor length = (z * z + width * width).sqrt();
  const at::Tensor exact = z.to(at::kDouble),
                   by_hypot = (exact / at::hypot(exact, at::full_like(exact, e))).to(z.scalar_type());
  return at::where((length > low).logical_and(length < high), z / length, by_hypot);
}

// Ties to the lower index: the sort is stable.
at::Tensor to_topk(const at::Tensor& z, double fraction) {
  const std::int64_t n = z.numel();
  const auto k = std::min(n, static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(n))));
  const at::Tensor flat = z.reshape({-1});
  const at::Tensor size = at::where(flat.isnan(), at::full_like(flat, std::numeric_limits<double>::infinity()), flat.abs());
  const at::Tensor largest = std::get<1>(at::sort(size, /*stable=*/true, /*dim=*/0, /*descending=*/true)).slice(0, 0, k);
  at::Tensor kept = flat.isnan();
  kept.index_fill_(0, largest, true);
  return at::where(kept, sign_of(flat), at::zeros_like(flat)).view(z.sizes());
}

at::Tensor subgradient(const LionK& rule, const at::Tensor& z) {
  const double e = std::max(rule.e, smallest(z));
  switch (rule.k) {
    case Convex::l1:
      return sign_of(z);
    case Convex::l2:
      return l2(z);
    case Convex::lp:
      return rule.p == 1 ? sign_of(z) : rule.p == 2 ? l2(z) : lp(z, rule.p);
    case Convex::huber:
      return (z / e).clamp(-1, 1);
    case Convex::relativistic:
      return relativistic(z, e, rule.e);
    case Convex::threshold:
      return at::where((z.abs() > e).logical_or(z.isnan()), sign_of(z), at::zeros_like(z));
    case Convex::topk:
      return to_topk(z, rule.fraction);
    case Convex::nuclear:
      break;  // shaped() takes it as a matrix
  }
  return z;
}

double shape_factor(const Polar& how, std::int64_t rows, std::int64_t cols) {
  const auto height = static_cast<double>(rows), width = static_cast<double>(cols);
  if (how.scale == MatrixScale::jordan) return std::sqrt(std::max(1.0, height / width));
  return how.scale == MatrixScale::rms ? 0.2 * std::sqrt(std::max(height, width)) : 1;
}

// All below: z is [count, rows, cols] and finite.
at::Tensor by_svd(const at::Tensor& z) {
  const auto [u, s, vh] = at::linalg_svd(z.to(at::kDouble), /*full_matrices=*/false);
  const double epsilon =
      z.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double part = static_cast<double>(std::max(z.size(1), z.size(2))) * epsilon;
  const at::Tensor kept = s > part * s.amax({1}, true);
  return at::matmul(u * kept.unsqueeze(1), vh);
}

at::Tensor newton_schulz(const at::Tensor& z, const at::Tensor& norm, const Polar& how) {
  const linear::Beginning begins = linear::beginning(how.schedule);
  const at::Tensor divisor = norm.clamp_min(std::max(how.eps, std::numeric_limits<double>::min())) * begins.factor;
  at::Tensor x = (z.to(at::kDouble) / divisor).to(z.scalar_type());
  const bool tall = z.size(1) > z.size(2);
  if (tall) x = x.transpose(1, 2);
  const auto gram = [&x] { return at::matmul(x, x.transpose(1, 2)); };
  if (begins.start == linear::Start::rows) {
    const at::Tensor sums = at::maximum(gram().abs().sum({2}, true, at::kDouble), (how.eps / divisor).square());
    x = x * at::where(sums > 0, sums.rsqrt(), at::zeros_like(sums)).to(x.scalar_type());
  }
  for (const Quintic& step : quintics(how)) {
    const at::Tensor a = gram();
    x = step.a * x + at::matmul(step.b * a + step.c * at::matmul(a, a), x);
  }
  return tall ? x.transpose(1, 2) : x;
}

at::Tensor polar_factor(const at::Tensor& z, const Polar& how, const std::string& name) {
  const optim::Matrices cut = optim::matrices_of(name, {z.sizes().data(), z.sizes().size()}, how.blocks);
  const at::Tensor given = z.reshape({cut.count, cut.rows, cut.cols});
  const at::Tensor norm = norms(given), finite = norm.isfinite();
  const at::Tensor safe = at::where(finite, given, at::zeros_like(given)), size = at::where(finite, norm, at::zeros_like(norm));
  const at::Tensor factor = how.schedule == NewtonSchulz::exact ? by_svd(safe) : newton_schulz(safe, size, how);
  const at::Tensor u = (factor * shape_factor(how, cut.rows, cut.cols)).to(z.scalar_type());
  return at::where(finite, u, at::full_like(u, std::numeric_limits<double>::quiet_NaN())).reshape(z.sizes());
}

}  // namespace

at::Tensor sign_of(const at::Tensor& z) {
  const at::Tensor one = at::ones_like(z);
  return at::where(z > 0, one, at::where(z < 0, -one, z));
}

at::Tensor shaped(const Rule& rule, const at::Tensor& z, const std::string& name) {
  if (z.numel() == 0) return z;
  if (const Polar* how = optim::polar_in(rule)) return polar_factor(z, *how, name);
  if (const auto* lion_k = std::get_if<LionK>(&rule)) return subgradient(*lion_k, z);
  return z;
}

}  // namespace cautious::torch::generic
