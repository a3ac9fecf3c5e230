// One step of one parameter in ATen operations, in the order of docs/spec.md, section 2.
#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "torch/generic.h"

namespace cautious::torch::generic {
namespace {

template <class... Bodies>
struct Overloaded : Bodies... {
  using Bodies::operator()...;
};

at::ScalarType compute_type(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

double unbias(double beta, std::int64_t t) { return portable::unbias(beta, t); }

// m <- beta m + (1 - beta) g in place.
void mix(at::Tensor& m, const at::Tensor& g, double beta) { m.mul_(beta).add_(g, 1 - beta); }

// The moments are in the compute type and changed in place.
at::Tensor direction(const Rule& rule, std::int64_t t, const at::Tensor& g, at::Tensor& m, at::Tensor& v) {
  return std::visit(Overloaded{
                        [&](const Sgd&) { return g; },
                        [&](const Sgdm& r) {
                          mix(m, g, r.beta);
                          return m;
                        },
                        [&](const Adam& r) {
                          const double c1 = unbias(r.beta1, t), c2 = unbias(r.beta2, t);
                          const double least = g.scalar_type() == at::kDouble ? std::numeric_limits<double>::min()
                                                                              : double{std::numeric_limits<float>::min()};
                          mix(m, g, r.beta1);
                          v.mul_(r.beta2).add_(g * g, 1 - r.beta2);
                          return m / (v.sqrt() * (std::sqrt(c2) / c1) + std::max(r.eps / c1, least));
                        },
                        [&](const Lion& r) {
                          at::Tensor z = m.clone();
                          mix(z, g, r.beta1);
                          mix(m, g, r.beta2);
                          return sign_of(z);
                        },
                        [&](const LionK& r) {
                          at::Tensor z = m.clone();
                          mix(z, g, r.beta1);
                          mix(m, g, r.beta2);
                          return z;
                        },
                        [&](const Muon& r) {
                          m.mul_(r.beta).add_(g);
                          return r.nesterov == Nesterov::on ? m * r.beta + g : m;
                        },
                    },
                    rule);
}

// u, brought down to the RMS `most`; a non-finite RMS is left to propagate.
at::Tensor clipped(const at::Tensor& u, double most) {
  const at::Tensor wide = u.to(at::kDouble), rms = wide.square().mean().sqrt();
  const at::Tensor factor = at::where(rms.isfinite().logical_and(rms > most), most / rms, at::ones_like(rms));
  return (factor * wide).to(u.scalar_type());
}

at::Tensor total(const at::Tensor& of) { return of.sum(at::kDouble); }
at::Tensor squares(const at::Tensor& of) { return of.to(at::kDouble).square().sum(); }
at::Tensor number(const at::Tensor& like, double value) { return at::full({}, value, like.options().dtype(at::kDouble)); }

// Signs are compared, never products, which would underflow.
at::Tensor same_sign(const at::Tensor& a, const at::Tensor& b) { return a.sign() * b.sign() > 0; }
at::Tensor opposite(const at::Tensor& a, const at::Tensor& b) { return a.sign() * b.sign() < 0; }

struct Applied {
  at::Tensor x;
  at::Tensor decayed, budget;  // one number each, f64
};

// selective: not of Algorithm 1's form.
Applied projected(const at::Tensor& x, const at::Tensor& x0, const at::Tensor& g, const at::Tensor& u, const Move& move) {
  const at::Tensor y = x.add(u, -move.lr), away = x - x0, stepped = y - x0;
  const at::Tensor before = squares(away).sqrt(), after = squares(stepped).sqrt();
  const at::Tensor open = (total(g.to(at::kDouble) * away.to(at::kDouble)) > 0).logical_and(after > 0);
  const at::Tensor k = at::where(open, ((after - before) / after).clamp(0, 1), at::zeros_like(after)) * move.wd;
  const at::Tensor rounded = k.to(x.scalar_type());
  return {y - rounded * stepped, (rounded > 0).to(at::kDouble) * static_cast<double>(x.numel()), k * total(stepped.abs())};
}

// Which coordinates decay, as a mask that broadcasts to x.
at::Tensor mask(const Decay& decay, const at::Tensor& x, const at::Tensor& pull, const at::Tensor& g, const at::Tensor& u,
                std::int64_t t, const Move& move) {
  const auto all = [&x](bool on) { return at::full({}, on, x.options().dtype(at::kBool)); };
  return std::visit(Overloaded{
                        [&](const None&) { return all(false); }, [&](const Decoupled&) { return all(true); },
                        [&](const Cautious&) { return opposite(u, pull).logical_not(); },
                        [&](const Anchored&) { return opposite(u, pull).logical_not(); },
                        [&](const Gradient&) { return opposite(g, pull).logical_not(); },
                        [&](const Random& r) { return coins(x, r.density, move.settings.seed, t, move.name); },
                        [&](const Layerwise&) { return total(u.to(at::kDouble) * x.to(at::kDouble)) >= 0; },
                        [&](const Selective&) { return all(false); },  // projected() instead
                    },
                    decay);
}

Applied algorithm1(const at::Tensor& x, const at::Tensor& pull, const at::Tensor& on, const at::Tensor& u, const Move& move) {
  const at::Tensor shrunk = at::where(on, pull, at::zeros_like(pull));
  return {x.add(u.add(shrunk, move.wd), -move.lr), total(on.expand_as(x)), total(shrunk.abs()) * (move.lr * move.wd)};
}

void store(State& state, const at::Tensor& parameter, const at::Tensor& x, const Move& move) {
  if (parameter.scalar_type() != at::kBFloat16) {
    parameter.copy_(x);
  } else if (state.low.defined()) {
    const Halves halves = split(x);
    parameter.copy_(halves.high);
    state.low.copy_(halves.low);
  } else if (move.settings.rounding == Rounding::stochastic) {
    parameter.copy_(stochastic(x, move.settings.seed, state.t, move.name));
  } else {
    parameter.copy_(x.to(at::kBFloat16));
  }
}

}  // namespace

State begin(const at::Tensor& parameter, const Recipe& recipe, const Settings& settings) {
  const at::ScalarType compute = compute_type(parameter);
  const bool narrow = compute == at::kFloat && settings.moments == Element::bf16;
  const auto zeros = [&](at::ScalarType type) { return at::zeros(parameter.sizes(), parameter.options().dtype(type)); };
  State state;
  if (!std::holds_alternative<Sgd>(recipe.rule)) state.m = zeros(narrow ? at::kBFloat16 : compute);
  if (std::holds_alternative<Adam>(recipe.rule)) state.v = zeros(narrow ? at::kBFloat16 : compute);
  if (parameter.scalar_type() == at::kBFloat16 && settings.rounding == Rounding::split) state.low = zeros(at::kShort);
  if (has_anchor(recipe.decay)) state.x0 = parameter.detach().clone(at::MemoryFormat::Contiguous);
  return state;
}

at::Tensor step(State& state, const at::Tensor& parameter, const at::Tensor& gradient, const Move& move) {
  const at::ScalarType compute = compute_type(parameter);
  const auto widened = [compute](const at::Tensor& t) { return t.defined() ? t.contiguous().to(compute) : t; };
  const std::int64_t t = ++state.t;
  const at::Tensor g = widened(gradient);
  at::Tensor m = widened(state.m), v = widened(state.v);
  at::Tensor u = shaped(move.recipe.rule, direction(move.recipe.rule, t, g, m, v), move.name);
  if (move.settings.update_rms_clip > 0 && u.numel() > 0) u = clipped(u, move.settings.update_rms_clip);

  const at::Tensor given = parameter.detach().contiguous();
  const at::Tensor x = state.low.defined() ? join(given, state.low) : given.to(compute);
  const Decay decay = move.decay == DecaySwitch::on ? move.recipe.decay : Decay(None{});
  const at::Tensor x0 = has_anchor(decay) ? widened(state.x0) : at::Tensor();
  const at::Tensor pull = x0.defined() ? x - x0 : x;
  const Applied applied = std::holds_alternative<Selective>(decay)
                              ? projected(x, x0, g, u, move)
                              : algorithm1(x, pull, mask(decay, x, pull, g, u, t, move), u, move);
  const at::Tensor nonfinite = number(x, static_cast<double>(x.numel())) - total(g.isfinite());
  at::Tensor seen =
      at::stack({applied.decayed, total(same_sign(u, pull)), nonfinite, squares(x), squares(g), squares(u), applied.budget});
  store(state, parameter, applied.x, move);
  if (state.m.defined() && !m.is_same(state.m)) state.m.copy_(m);
  if (state.v.defined() && !v.is_same(state.v)) state.v.copy_(v);
  return seen;
}

}  // namespace cautious::torch::generic
