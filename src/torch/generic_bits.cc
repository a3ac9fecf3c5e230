// Random bits and bf16 roundings in int64 tensor arithmetic, bit for bit those of the kernels (docs/spec.md, sections 9 and
// 10).
#include <cmath>

#include <ATen/ATen.h>

#include "optim/random_key.h"
#include "torch/generic.h"

namespace cautious::torch::generic {
namespace {

constexpr std::int64_t kWord = 0xffffffff, kHalfWord = 0xffff;
constexpr std::int64_t kInfinity = 0x7f800000, kQuietNan = 0x7fc00000;

at::Tensor right(const at::Tensor& z, std::int64_t bits) { return at::bitwise_right_shift(z, at::Scalar(bits)); }

// Low 32 bits of a product of 32-bit numbers, without leaving 63 bits.
at::Tensor times(const at::Tensor& z, std::int64_t factor) {
  return (z * (factor & kHalfWord) + ((z * (factor >> 16)) & kHalfWord) * 0x10000) & kWord;
}

at::Tensor xor_right(const at::Tensor& z, std::int64_t bits) { return z ^ right(z, bits); }

// 0 ... n - 1 in the shape of `like`.
at::Tensor coordinates(const at::Tensor& like) {
  return at::arange(like.numel(), like.options().dtype(at::kLong)).view(like.sizes());
}

// Bits of an f32 as a number from 0 to 2^32 - 1.
at::Tensor word_of(const at::Tensor& x) { return x.view(at::kInt).to(at::kLong) & kWord; }

// A number of `bits` bits in two's complement.
at::Tensor with_sign(const at::Tensor& z, int bits) {
  const std::int64_t sign = std::int64_t{1} << (bits - 1);
  return (z ^ sign) - sign;
}

// Upper half words, 0 to 2^16 - 1, as bf16.
at::Tensor as_bf16(const at::Tensor& high) { return with_sign(high, 16).to(at::kShort).view(at::kBFloat16); }

}  // namespace

at::Tensor random_bits(const at::Tensor& index, std::uint64_t seed, std::uint64_t purpose, std::int64_t t,
                       const std::string& name) {
  const kernels::Stream key = optim::random_key(seed, static_cast<optim::Purpose>(purpose), t, base::hash_of(name));
  at::Tensor z = times((index & kWord) ^ std::int64_t{key.k0}, 0x9e3779b1);
  z = xor_right(z, 15);
  z = (z + times(right(index, 32), 0x85ebca6b) + std::int64_t{key.k1}) & kWord;
  z = times(xor_right(z, 16), 0x7feb352d);
  z = times(xor_right(z, 15), 0x846ca68b);
  return xor_right(z, 16);
}

at::Tensor coins(const at::Tensor& like, double density, std::uint64_t seed, std::int64_t t, const std::string& name) {
  const auto odds = static_cast<std::int64_t>(std::floor(density * 0x1p24 + 0.5));
  const auto purpose = static_cast<std::uint64_t>(optim::Purpose::decay);
  return right(random_bits(coordinates(like), seed, purpose, t, name), 8) < odds;
}

at::Tensor join(const at::Tensor& high, const at::Tensor& low) {
  const at::Tensor upper = (high.view(at::kShort).to(at::kLong) & kHalfWord) * 0x10000;
  return with_sign((upper + low.to(at::kLong)) & kWord, 32).to(at::kInt).view(at::kFloat);
}

Halves split(const at::Tensor& x) {
  const at::Tensor word = word_of(x);
  const at::Tensor bits = at::where(x.isnan(), at::full_like(word, kQuietNan), word);
  return {as_bf16(right(bits + 0x8000, 16) & kHalfWord), with_sign(bits & kHalfWord, 16).to(at::kShort)};
}

at::Tensor stochastic(const at::Tensor& x, std::uint64_t seed, std::int64_t t, const std::string& name) {
  const at::Tensor j = coordinates(x);
  const auto purpose = static_cast<std::uint64_t>(optim::Purpose::rounding);
  const at::Tensor z = random_bits(right(j, 8) * 128 + (j & 127), seed, purpose, t, name);
  const at::Tensor chance = at::where((j & 128) == 0, z & kHalfWord, right(z, 16));
  const at::Tensor word = word_of(x);
  const at::Tensor up = as_bf16(right(word + chance, 16) & kHalfWord);
  return at::where((word & kInfinity) != kInfinity, up, x.to(at::kBFloat16));
}

}  // namespace cautious::torch::generic
