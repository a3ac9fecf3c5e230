// The same formulas as the fused core, in ATen operations: for tensors on any device (docs/spec.md is the text, not
// src/kernels).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/torch.h>

namespace cautious::torch::generic {

// State of one parameter; all tensors have its shape, row after row, and its device. Undefined: the recipe has none.
struct State {
  std::int64_t t = 0;
  at::Tensor m = {}, v = {}, low = {}, x0 = {};
};

// As spec.md, section 2: moments are zeros, the anchor is the parameter's value.
State begin(const at::Tensor& parameter, const Recipe& recipe, const Settings& settings);

// What one step of a parameter does.
struct Move {
  const std::string& name;
  const Recipe& recipe;
  DecaySwitch decay;
  double lr, wd;  // wd is coupled; under selective the factor before r
  const Settings& settings;
};

// One step of one parameter. The report's numbers stay on the device: decayed, active, nonfinite, x2, g2, u2, budget, in f64.
at::Tensor step(State& state, const at::Tensor& parameter, const at::Tensor& gradient, const Move& move);

// generic_shape.cc: u from z for lion-k (every K) and muon, f32 or f64.
at::Tensor shaped(const Rule& rule, const at::Tensor& z, const std::string& name);
// The sign, with zeros and NaN kept.
at::Tensor sign_of(const at::Tensor& z);

// generic_bits.cc, spec.md, sections 9 and 10.
// 32 random bits of the given indices (int64), as int64.
at::Tensor random_bits(const at::Tensor& index, std::uint64_t seed, std::uint64_t purpose, std::int64_t t,
                       const std::string& name);
// On with the probability `density`, per coordinate of a tensor of `like`'s shape.
at::Tensor coins(const at::Tensor& like, double density, std::uint64_t seed, std::int64_t t, const std::string& name);
at::Tensor join(const at::Tensor& high, const at::Tensor& low);  // bf16 and int16 to f32
struct Halves {
  at::Tensor high, low;  // bf16 and int16
};
Halves split(const at::Tensor& x);
at::Tensor stochastic(const at::Tensor& x, std::uint64_t seed, std::int64_t t, const std::string& name);  // f32 to bf16

}  // namespace cautious::torch::generic
