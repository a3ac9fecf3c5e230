// Words of aten.h that take more than a line, all about a tensor as a whole: its norm, its largest entries, and the orthogonal
// factor of a matrix by ATen's products (src/linear has its own, in Gram form).
#include "torch/aten.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linear/orthogonal.h"
#include "optim/polar.h"
#include "optim/shaping.h"

namespace cautious::aten {
namespace {

// Per matrix of [count, rows, cols], in f64 and without overflow: 2-norm over all entries, as [count, 1, 1].
at::Tensor norms(const at::Tensor& z) {
  const at::Tensor wide = z.to(at::kDouble);
  const at::Tensor most = wide.abs().amax({1, 2}, true);
  const at::Tensor divisor = at::where(most == 0, at::ones_like(most), most);
  const at::Tensor norm = most * (wide / divisor).square().sum({1, 2}, true).sqrt();
  return at::where(most.isinf(), most, norm);
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

}  // namespace

Values<double> norm_of(const at::Tensor& z) { return {norms(z.reshape({1, 1, -1})).squeeze()}; }

// The sort is stable, so ties go to the lower index.
at::Tensor largest_kept(const at::Tensor& z, double fraction) {
  const at::Tensor flat = z.reshape({-1});
  const auto k = static_cast<std::int64_t>(kept(fraction, static_cast<std::size_t>(flat.numel())));
  const at::Tensor size = at::where(flat.isnan(), at::full_like(flat, std::numeric_limits<double>::infinity()), flat.abs());
  const at::Tensor largest = std::get<1>(at::sort(size, /*stable=*/true, /*dim=*/0, /*descending=*/true)).slice(0, 0, k);
  at::Tensor stays = flat.isnan();
  stays.index_fill_(0, largest, true);
  return at::where(stays, flat, at::zeros_like(flat)).view(z.sizes());
}

at::Tensor polar_factor(const at::Tensor& z, const Polar& how, const std::string& name) {
  const optim::Matrices cut = optim::matrices_of(name, {z.sizes().data(), z.sizes().size()}, how.blocks);
  const at::Tensor given = z.reshape({cut.count, cut.rows, cut.cols});
  const at::Tensor norm = norms(given), finite = norm.isfinite();
  const at::Tensor safe = at::where(finite, given, at::zeros_like(given)), size = at::where(finite, norm, at::zeros_like(norm));
  const at::Tensor factor = how.schedule == NewtonSchulz::exact ? by_svd(safe) : newton_schulz(safe, size, how);
  const double scale = linear::shape_factor(how.scale, static_cast<double>(cut.rows), static_cast<double>(cut.cols));
  const at::Tensor u = (factor * scale).to(z.scalar_type());
  return at::where(finite, u, at::full_like(u, std::numeric_limits<double>::quiet_NaN())).reshape(z.sizes());
}

}  // namespace cautious::aten
