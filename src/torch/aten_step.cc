// One step of one parameter in ATen operations, in the order of docs/spec.md, section 2. The formulas are those of the fused
// core, compiled for tensors; no rule and no decay is named here.
#include "torch/aten.h"

#include "kernels/algorithm1.h"
#include "kernels/bf16.h"
#include "kernels/random_bits.h"
#include "optim/random_key.h"
#include "optim/shaping.h"
#include "optim/whole_tensor.h"
#include "torch/parts.h"

namespace cautious::aten {
namespace {

bool is_double(const at::Tensor& parameter) { return parameter.scalar_type() == at::kDouble; }

// The tensor row after row, in the compute type.
template <class T>
Values<T> loaded(const at::Tensor& tensor) {
  return {tensor.contiguous().to(kType<T>)};
}

template <class T>
Values<double> sum(const Values<T>& of) {
  return {of.of.sum(at::kDouble)};
}
template <class T>
Values<double> squares(const Values<T>& of) {
  return sum(as<double>(of) * as<double>(of));
}
template <class T>
Values<double> product(const Values<T>& a, const Values<T>& b) {
  return sum(as<double>(a) * as<double>(b));
}

// How many coordinates of a tensor of x's shape.
template <class T>
at::Tensor count(const Mask& on, const Values<T>& x) {
  return on.of.expand_as(x.of).sum(at::kDouble);
}
template <class T>
at::Tensor count(bool on, const Values<T>& x) {
  return at::full({}, on ? static_cast<double>(x.of.numel()) : 0, x.of.options().dtype(at::kDouble));
}

// 0 ... n - 1 in the shape of x.
template <class T>
at::Tensor coordinates(const Values<T>& x) {
  return at::arange(x.of.numel(), x.of.options().dtype(at::kLong)).view(x.of.sizes());
}

Words bits_at(const at::Tensor& index, optim::Purpose purpose, std::int64_t t, const Move& move) {
  const kernels::Stream key = optim::random_key(move.settings.seed, purpose, t, base::hash_of(move.name));
  const Words low{index & kWord}, high{at::bitwise_right_shift(index, raw(32))};
  return random_bits(key, random_salt(key, high), low);
}

// A word serves two coordinates of a tile, a row of 16 apart (kernels/random_bits.h).
Words rounding_chance(const Values<float>& x, std::int64_t t, const Move& move) {
  constexpr std::int64_t tile = kernels::kTile, row = 16;
  const at::Tensor j = coordinates(x), first = at::div(j, tile, "floor") * 2, position = j.remainder(tile);
  const auto bits = [&](const at::Tensor& index) { return bits_at(index, optim::Purpose::rounding, t, move); };
  const Words c{at::div(position, 2 * row, "floor") * row + position.remainder(row)};
  const Words word = rounding_word(rounding_key(bits(first), bits(first + 1)), spread_of(c));
  return select(Mask{position.remainder(2 * row) < row}, first_chance(word), second_chance(word));
}

// Half words as bf16.
at::Tensor as_bf16(const Words& high) { return with_sign(high & 0xffffu, 16).to(at::kShort).view(at::kBFloat16); }

template <class T>
Values<T> parameter_of(const State& state, const at::Tensor& parameter) {
  const at::Tensor given = parameter.detach().contiguous();
  if constexpr (sizeof(T) == sizeof(float)) {
    if (state.low.defined()) {
      const Words high{given.view(at::kShort).to(at::kLong) & kWord}, low{state.low.to(at::kLong) & kWord};
      return float_of(join(high, low));
    }
  }
  return loaded<T>(given);
}

template <class T>
void store(State& state, const at::Tensor& parameter, const Values<T>& x, const Move& move) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (state.low.defined()) {
      const Words bits = splittable(word_of(x));
      parameter.copy_(as_bf16(split_high(bits)));
      state.low.copy_(with_sign(split_low(bits), 16));
      return;
    }
    if (parameter.scalar_type() == at::kBFloat16 && move.settings.rounding == Rounding::stochastic) {
      parameter.copy_(as_bf16(rounded(x, rounding_chance(x, state.t, move))));
      return;
    }
  }
  parameter.copy_(x.of);  // bf16: to nearest
}

// Stage 1: u, and the moments moved on.
template <class T>
Values<T> direction_of(State& state, const Values<T>& g, const Move& move) {
  const Rule& rule = move.recipe.rule;
  at::Tensor* kept[] = {&state.m, &state.v};
  Values<T> moment[2];
  for (int i = 0; i < 2; ++i) {
    if (kept[i]->defined()) moment[i] = loaded<T>(*kept[i]);
  }
  Values<T> u = std::visit(
      [&]<class R>(const R& r) -> Values<T> {
        const auto formula = direction<T>(r, state.t);
        if constexpr (moments_of<R, T>() == 2) {
          return formula(g, moment[0], moment[1]);
        } else if constexpr (moments_of<R, T>() == 1) {
          return formula(g, moment[0]);
        } else {
          return formula(g);
        }
      },
      rule);
  for (int i = 0; i < 2; ++i) {
    if (kept[i]->defined()) *kept[i] = moment[i].of.to(kept[i]->scalar_type());
  }
  if (u.of.numel() == 0) return u;
  if (const Polar* how = optim::polar_in(rule)) {
    u.of = polar_factor(u.of, *how, move.name);
  } else {
    shape_direction<T>(rule, u);
  }
  const double clip = move.settings.update_rms_clip;
  if (clip > 0) u = as<T>(clip_factor(clip, squares(u), static_cast<double>(u.of.numel())) * as<double>(u));
  return u;
}

// Counted on the device, decided on the CPU.
template <class T>
Table odds_by_size(const Values<T>& x, const Values<T>& by) {
  const Lane<Values<T>, Words> lane{{}, {}, x, {}, by};
  const at::Tensor bin = size_bin<T>(high_word(x)).of.reshape({-1}), on = mask<T>(Cautious{})(lane).of.reshape({-1});
  const auto counted = [](const at::Tensor& of) { return at::bincount(of, {}, kSizeBins).cpu(); };
  const at::Tensor all = counted(bin), decayed = counted(bin.masked_select(on));
  optim::SizeBins bins = optim::empty_bins();
  std::copy_n(all.data_ptr<std::int64_t>(), kSizeBins, bins.all.begin());
  std::copy_n(decayed.data_ptr<std::int64_t>(), kSizeBins, bins.decayed.begin());
  optim::find_odds(bins);
  const at::Tensor odds = at::tensor(bins.odds, at::kLong);
  return {odds.to(x.of.device())};
}

template <class T>
struct Applied {
  Values<T> x;
  at::Tensor decayed, active, budget;  // one number each, f64
};

// Stage 2 under one decay.
template <class T, class D>
Applied<T> apply(const D& decay, const Values<T>& x, const Values<T>& g, const Values<T>& u, const State& state,
                 const Move& move) {
  const T lr = T(move.lr), wd = T(move.wd);
  Values<T> x0, pull = x;
  if constexpr (kAnchored<D>) {
    x0 = loaded<T>(state.x0);
    pull = x - x0;
  }
  const at::Tensor active = count(signed_product(u, pull) > 0, x);
  const auto where = [&](const auto& on) -> Applied<T> {
    const Moved<Values<T>> moved = algorithm1(lr, wd, x, u, pull, on);
    return {moved.x, count(on, x), active, (move.lr * move.wd * sum(abs(moved.shrunk))).of};
  };
  Seen<Values<double>, Table> seen;
  if constexpr (kLooksFirst<D>) seen.ux = product(u, x);
  const Values<T> by = by_momentum(decay) ? loaded<T>(state.m) : u;
  if constexpr (kBinned<D>) seen.odds = odds_by_size(x, by);
  if constexpr (kProjects<D>) {
    seen.g_away = product(g, pull), seen.away2 = squares(pull), seen.stepped2 = squares(fma(-lr, u, x) - x0);
    const Values<double> k = projection(decay, seen) * move.wd;
    const Moved<Values<T>> moved = project(lr, as<T>(k), x, u, x0);
    return {moved.x, count(as<T>(k) > 0, x), active, (k * sum(abs(moved.shrunk))).of};
  } else {
    Lane<Values<T>, Words> lane{u, g, pull, {}, by};
    if constexpr (kRandom<D>) lane.chance = bits_at(coordinates(x), optim::Purpose::decay, state.t, move) >> 8;
    return where(ready_mask<T>(decay, seen)(lane));
  }
}

template <class T>
at::Tensor step_as(State& state, const at::Tensor& parameter, const at::Tensor& gradient, const Move& move) {
  ++state.t;
  const Values<T> g = loaded<T>(gradient), u = direction_of(state, g, move), x = parameter_of<T>(state, parameter);
  const Decay decay = move.decay == DecaySwitch::on ? move.recipe.decay : Decay(None{});
  const Applied<T> applied = std::visit([&](const auto& d) { return apply(d, x, g, u, state, move); }, decay);
  at::Tensor seen = at::stack({applied.decayed, applied.active, count(Mask{g.of.isfinite().logical_not()}, g), squares(x).of,
                               squares(g).of, squares(u).of, applied.budget});
  store(state, parameter, applied.x, move);
  return seen;
}

}  // namespace

State begin(const at::Tensor& parameter, const Recipe& recipe, const torch::Settings& settings) {
  const at::ScalarType compute = is_double(parameter) ? at::kDouble : at::kFloat;
  const bool narrow = compute == at::kFloat && settings.moments == Element::bf16;
  const auto zeros = [&](at::ScalarType type) { return at::zeros(parameter.sizes(), parameter.options().dtype(type)); };
  const int moments = std::visit([]<class R>(const R&) { return moments_of<R, float>(); }, recipe.rule);
  State state;
  if (moments > 0) state.m = zeros(narrow ? at::kBFloat16 : compute);
  if (moments > 1) state.v = zeros(narrow ? at::kBFloat16 : compute);
  if (parameter.scalar_type() == at::kBFloat16 && settings.rounding == Rounding::split) state.low = zeros(at::kShort);
  if (has_anchor(recipe.decay)) state.x0 = parameter.detach().clone(at::MemoryFormat::Contiguous);
  return state;
}

at::Tensor step(State& state, const at::Tensor& parameter, const at::Tensor& gradient, const Move& move) {
  return is_double(parameter) ? step_as<double>(state, parameter, gradient, move)
                              : step_as<float>(state, parameter, gradient, move);
}

}  // namespace cautious::aten
