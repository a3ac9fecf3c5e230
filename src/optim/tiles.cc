// A chunk, tile by tile: bring the tile's streams to the compute type, fill u, apply, store back. One rounding per coordinate
// and step, at the store.
#include <algorithm>
#include <atomic>
#include <span>

#include "optim/parts.h"
#include "optim/shaping.h"

namespace cautious::optim {
namespace {

using kernels::kTile;

// The streams of one slot, tile by tile, in the compute type T. With `direct` all of them lie in memory as T and are used in
// place; otherwise they pass through buffers.
template <class T, bool direct>
class Tiles {
 public:
  Tiles(const kernels::Kernels& kernels, const Slot& slot, const Move& move)
      : kernels_(kernels), table_(kernels::table<T>(kernels)), slot_(slot), move_(move) {}

  const T* gradient(std::size_t at, std::size_t n) {
    const T* g = load(slot_.parameter.gradient, slot_.parameter.g, at, n, g_);
    if (direct || move_.g_scale == 1) return g;
    table_.scale(move_.g_scale, g, g_, n);
    return g_;
  }

  T* moment(int which, std::size_t at, std::size_t n) {
    if (which >= slot_.moments) return nullptr;
    return load(slot_.moment, slot_.moment_data[which], at - slot_.own.first, n, moment_[which]);
  }

  void store_moments(std::size_t at, std::size_t n) {
    if constexpr (!direct && sizeof(T) == sizeof(float)) {
      if (slot_.moment != Element::bf16) return;
      for (int which = 0; which < slot_.moments; ++which) {
        auto* const kept = reinterpret_cast<std::uint16_t*>(slot_.moment_data[which]) + (at - slot_.own.first);
        kernels_.bf16.store_nearest(moment_[which], kept, n);
      }
    }
  }

  T* parameter(std::size_t at, std::size_t n) {
    if constexpr (!direct && sizeof(T) == sizeof(float)) {
      if (slot_.split) {
        kernels_.bf16.load_split(high() + at, low(at), x_, n);
        return x_;
      }
    }
    return load(slot_.parameter.element, slot_.parameter.x, at, n, x_);
  }

  void store_parameter(const Options& options, std::size_t at, std::size_t n) {
    if constexpr (!direct && sizeof(T) == sizeof(float)) {
      if (slot_.parameter.element != Element::bf16) return;
      if (slot_.split) {
        kernels_.bf16.store_split(x_, high() + at, low(at), n);
      } else if (options.rounding == Rounding::stochastic) {
        kernels_.bf16.store_stochastic(x_, high() + at, n, slot_.rounding, at);
      } else {
        kernels_.bf16.store_nearest(x_, high() + at, n);
      }
    }
  }

  const T* anchor(std::size_t at, std::size_t n) {
    if (slot_.x0.empty()) return nullptr;
    return load(slot_.parameter.element, slot_.x0.data(), at, n, x0_);
  }

  T* direction() { return u_; }

 private:
  // The tile at `memory` as T: in place, or widened into `buffer`.
  template <class Memory>
  auto load(Element element, Memory* memory, std::size_t at, std::size_t n, T* buffer) {
    using Out = std::conditional_t<std::is_const_v<Memory>, const T, T>;
    if constexpr (!direct && sizeof(T) == sizeof(float)) {
      if (element == Element::bf16) {
        kernels_.bf16.load(reinterpret_cast<const std::uint16_t*>(memory) + at, buffer, n);
        return static_cast<Out*>(buffer);
      }
    }
    return reinterpret_cast<Out*>(memory) + at;
  }

  std::uint16_t* high() const { return static_cast<std::uint16_t*>(slot_.parameter.x); }
  std::int16_t* low(std::size_t at) const { return slot_.low + (at - slot_.own.first); }

  const kernels::Kernels& kernels_;
  const kernels::Table<T>& table_;
  const Slot& slot_;
  const Move& move_;
  alignas(64) T g_[kTile], u_[kTile], x_[kTile], x0_[kTile], moment_[2][kTile];
};

template <class T>
kernels::Terms<T> terms_of(const Move& move) {
  return {static_cast<T>(move.lr), static_cast<T>(move.wd), move.mask, move.chance};
}

template <class T>
auto apply_of(const kernels::Table<T>& table, const Move& move, const Options& options) {
  const auto& pair = move.projects ? table.project : table.apply[move.decay].run[move.by_momentum ? 1 : 0];
  return pair[options.norms == Norms::on ? 1 : 0];
}

template <class T>
void shape(const Rule& rule, T* u, std::size_t n) {
  portable::Entries<T> all{{u, n}};
  portable::shape_direction<T>(rule, all);
}

template <class Body>
void each_tile(const Chunk& chunk, Body body) {
  for (std::size_t done = 0; done < chunk.count; done += kTile) {
    body(chunk.first + done, std::min(kTile, chunk.count - done));
  }
}

template <class T, bool direct>
void fill_and_apply_as(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                       const Move& move, const Chunk& chunk, kernels::Counted& counted) {
  const kernels::Table<T>& table = kernels::table<T>(kernels);
  const auto fill = table.fill[recipe.rule.index()].run;
  const auto apply = apply_of(table, move, options);
  const kernels::Terms<T> terms = terms_of<T>(move);
  const bool shapes = shaping_of(recipe.rule) == Shaping::tile;
  Tiles<T, direct> tiles(kernels, slot, move);
  each_tile(chunk, [&](std::size_t at, std::size_t n) {
    const T* g = tiles.gradient(at, n);
    T* m = tiles.moment(0, at, n);
    fill(*move.rule, g, m, tiles.moment(1, at, n), tiles.direction(), n);
    tiles.store_moments(at, n);
    if (shapes) shape(recipe.rule, tiles.direction(), n);
    T* x = tiles.parameter(at, n);
    apply(terms, {tiles.direction(), g, x, tiles.anchor(at, n), at, m}, n, counted);
    tiles.store_parameter(options, at, n);
  });
}

template <class T>
bool is_direct(const Slot& slot, const Move& move) {
  return slot.parameter.element == element_of<T>() && slot.parameter.gradient == element_of<T>() &&
         slot.moment == element_of<T>() && move.g_scale == 1;
}

// Calls body with the compute type and whether all streams can be used in place.
template <class Body>
auto by_type(const Slot& slot, const Move& move, Body body) {
  if (compute_element(slot) == Element::f64) {
    return is_direct<double>(slot, move) ? body.template operator()<double, true>() : body.template operator()<double, false>();
  }
  return is_direct<float>(slot, move) ? body.template operator()<float, true>() : body.template operator()<float, false>();
}

}  // namespace

void set_mask(const kernels::Kernels& kernels, const Slot& slot, const Decay& decay, Move& move,
              const kernels::SeenNumbers& seen) {
  move.decay = decay.index();
  move.by_momentum = by_momentum(decay);
  const auto prepare =
      compute_element(slot) == Element::f64 ? kernels.f64.apply[move.decay].prepare : kernels.f32.apply[move.decay].prepare;
  if (prepare != nullptr) std::visit([&](const auto& d) { prepare(&d, seen, move.mask); }, decay);
}

void fill_and_apply(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                    const Move& move, const Chunk& chunk, kernels::Counted& counted) {
  by_type(slot, move,
          [&]<class T, bool direct>() { fill_and_apply_as<T, direct>(kernels, slot, recipe, options, move, chunk, counted); });
}

kernels::WalkRun walk_of(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                         const Move& move) {
  const Element element = slot.parameter.element;
  if (element == Element::f64 || slot.parameter.gradient != element || slot.moment != Element::f32 || slot.split ||
      slot.whole_tensor || move.g_scale != 1 || move.by_momentum || move.projects) {
    return nullptr;
  }
  const kernels::Memory memory = element == Element::f32                    ? kernels::Memory::f32
                                 : options.rounding == Rounding::stochastic ? kernels::Memory::stochastic
                                                                            : kernels::Memory::nearest;
  return kernels.walk[static_cast<int>(memory)][recipe.rule.index()][move.decay][options.norms == Norms::on ? 1 : 0];
}

void walk(kernels::WalkRun run, const Move& move, std::span<const Slot> slots, std::span<const Chunk> chunks,
          kernels::Counted* counted) {
  kernels::Walk list[kMostWalked];
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[c];
    const Slot& slot = slots[chunk.slot];
    const std::size_t offset = chunk.first * size_of(slot.parameter.element);
    const auto moment = [&](int which) {
      if (which >= slot.moments) return static_cast<float*>(nullptr);
      return reinterpret_cast<float*>(slot.moment_data[which]) + (chunk.first - slot.own.first);
    };
    list[c] = {static_cast<std::byte*>(slot.parameter.x) + offset,
               static_cast<const std::byte*>(slot.parameter.g) + offset,
               moment(0),
               moment(1),
               chunk.count,
               chunk.first,
               slot.rounding};
    counted[c] = {};
  }
  run(*move.rule, terms_of<float>(move), list, chunks.size(), counted);
}

void fill_only(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Move& move, const Chunk& chunk) {
  by_type(slot, move, [&]<class T, bool direct>() {
    const auto fill = kernels::table<T>(kernels).fill[recipe.rule.index()].run;
    const bool shapes = shaping_of(recipe.rule) == Shaping::tile;
    Tiles<T, direct> tiles(kernels, slot, move);
    each_tile(chunk, [&](std::size_t at, std::size_t n) {
      T* u = reinterpret_cast<T*>(slot.u) + at;
      fill(*move.rule, tiles.gradient(at, n), tiles.moment(0, at, n), tiles.moment(1, at, n), u, n);
      tiles.store_moments(at, n);
      if (shapes) shape(recipe.rule, u, n);
    });
  });
}

void apply_only(const kernels::Kernels& kernels, const Slot& slot, const Options& options, const Move& move, const Chunk& chunk,
                kernels::Counted& counted) {
  by_type(slot, move, [&]<class T, bool direct>() {
    const kernels::Table<T>& table = kernels::table<T>(kernels);
    const auto apply = apply_of(table, move, options);
    const kernels::Terms<T> terms = terms_of<T>(move);
    Tiles<T, direct> tiles(kernels, slot, move);
    each_tile(chunk, [&](std::size_t at, std::size_t n) {
      const T* u = reinterpret_cast<const T*>(slot.u) + at;
      if (move.u_scale != 1) {
        table.scale(move.u_scale, u, tiles.direction(), n);
        u = tiles.direction();
      }
      const T* m = move.by_momentum ? tiles.moment(0, at, n) : nullptr;
      apply(terms, {u, tiles.gradient(at, n), tiles.parameter(at, n), tiles.anchor(at, n), at, m}, n, counted);
      tiles.store_parameter(options, at, n);
    });
  });
}

Dots dots(const kernels::Kernels& kernels, const Slot& slot, const Move& move, const Chunk& chunk) {
  Dots sum;
  by_type(slot, move, [&]<class T, bool direct>() {
    Tiles<T, direct> tiles(kernels, slot, move);
    each_tile(chunk, [&](std::size_t at, std::size_t n) {
      const T* u = reinterpret_cast<const T*>(slot.u) + at;
      const T* g = tiles.gradient(at, n);
      const T* x = tiles.parameter(at, n);
      const T* x0 = tiles.anchor(at, n);
      const T lr = static_cast<T>(move.lr);
      for (std::size_t i = 0; i < n; ++i) {
        const T clipped = static_cast<T>(move.u_scale * static_cast<double>(u[i]));
        sum.u2 += static_cast<double>(u[i]) * static_cast<double>(u[i]);
        sum.ux += static_cast<double>(clipped) * static_cast<double>(x[i]);
        if (x0 == nullptr) continue;
        const double away = x[i] - x0[i];
        const double stepped = portable::fma(-lr, clipped, x[i]) - x0[i];
        sum.g_away += static_cast<double>(g[i]) * away;
        sum.away2 += away * away;
        sum.stepped2 += stepped * stepped;
      }
    });
  });
  return sum;
}

void count_sizes(const kernels::Kernels& kernels, const Slot& slot, const Move& move, const Chunk& chunk, SizeBins& bins) {
  std::uint32_t all[kSizeBins] = {}, decayed[kSizeBins] = {};
  by_type(slot, move, [&]<class T, bool direct>() {
    const auto strikes = portable::mask<T>(Cautious{});
    Tiles<T, direct> tiles(kernels, slot, move);
    each_tile(chunk, [&](std::size_t at, std::size_t n) {
      const T* u = reinterpret_cast<const T*>(slot.u) + at;
      const T* x = tiles.parameter(at, n);
      const T* m = move.by_momentum ? tiles.moment(0, at, n) : nullptr;
      for (std::size_t i = 0; i < n; ++i) {
        const T by = m != nullptr ? m[i] : static_cast<T>(move.u_scale * static_cast<double>(u[i]));
        const std::uint32_t bin = portable::size_bin<T>(portable::high_word(x[i]));
        ++all[bin];
        decayed[bin] += strikes(portable::Lane<T, std::int32_t>{0, 0, x[i], 0, by});
      }
    });
  });
  const auto add = [](std::int64_t& to, std::uint32_t count) {
    if (count > 0) std::atomic_ref(to).fetch_add(count, std::memory_order_relaxed);
  };
  for (std::size_t bin = 0; bin < kSizeBins; ++bin) {
    add(bins.all[bin], all[bin]);
    add(bins.decayed[bin], decayed[bin]);
  }
}

double survey_chunk(const kernels::Kernels& kernels, const Slot& slot, const Chunk& chunk, std::int64_t& nonfinite) {
  double sum = 0;
  const Move as_given;
  by_type(slot, as_given, [&]<class T, bool direct>() {
    Tiles<T, direct> tiles(kernels, slot, as_given);
    each_tile(chunk, [&](std::size_t at, std::size_t n) {
      sum += kernels::table<T>(kernels).survey(tiles.gradient(at, n), n, nonfinite);
    });
  });
  return sum;
}

}  // namespace cautious::optim
