// Tensors whose direction or decay cannot be decided coordinate by coordinate: u is complete when this begins. Shape it, clip
// it, resolve the tensor's gate, then apply stage 2 as for every other tensor.
#include <algorithm>
#include <cmath>

#include "optim/parts.h"
#include "optim/polar.h"
#include "optim/shaping.h"
#include "optim/work.h"

namespace cautious {
namespace {

using optim::Dots;
using optim::Move;
using optim::Slot;

void shape(const Recipe& recipe, const Slot& slot) {
  if (optim::shaping_of(recipe.rule) != Shaping::tensor) return;
  const auto shape_as = [&]<class T>(T* u) {
    portable::Entries<T> all{{u, slot.count}};
    portable::shape_direction<T>(recipe.rule, all);
  };
  if (compute_element(slot) == Element::f64) {
    shape_as(reinterpret_cast<double*>(slot.u));
  } else {
    shape_as(reinterpret_cast<float*>(slot.u));
  }
}

}  // namespace

void optim::find_odds(SizeBins& bins) {
  constexpr std::int64_t kLeast = 64;
  if (bins.all.empty()) return;
  const auto group = [&](std::size_t first, std::size_t last) {  // of bins
    std::int64_t all = 0, decayed = 0;
    for (std::size_t bin = first; bin < last; ++bin) all += bins.all[bin], decayed += bins.decayed[bin];
    const double frequency = all > 0 ? static_cast<double>(decayed) / static_cast<double>(all) : 0;
    std::fill(bins.odds.begin() + first, bins.odds.begin() + last,
              static_cast<std::int32_t>(std::floor(frequency * 0x1p24 + 0.5)));
  };
  group(0, 1);
  std::size_t above = kSizeBins, last = kSizeBins;  // ends of the group before and of this one
  std::int64_t all = 0;
  for (std::size_t bin = kSizeBins - 1; bin > 0; --bin) {
    all += bins.all[bin];
    if (all < kLeast) continue;
    group(bin, last);
    above = last, last = bin, all = 0;
  }
  if (all > 0 || last == kSizeBins) group(1, above);
}

void Optimizer::Parts::plan_whole_tensors() {
  whole.clear();
  for (const optim::Chunk& chunk : whole_plan.chunks) {
    if (is_own(chunk) && (whole.empty() || whole.back() != chunk.slot)) whole.push_back(chunk.slot);
  }
  chunk_dots.resize(whole_plan.chunks.size());
  slot_dots.resize(slots.size());
  sizes.resize(slots.size());
  matrices = {};
  double_matrices = {};
  for (const std::size_t s : whole) {
    const Slot& slot = slots[s];
    if (slot.looks_first && optim::is_binned(slot.decay)) sizes[s] = optim::empty_bins();
    const Polar* how = optim::polar_in(recipe_of(slot).rule);
    if (how == nullptr) continue;
    const optim::Matrices cut = optim::matrices_of(slot.parameter.name, slot.parameter.shape, how->blocks);
    const auto add = [&](auto& batch, auto* u) {
      for (std::int64_t i = 0; i < cut.count; ++i) {
        batch.add(u + i * cut.rows * cut.cols, static_cast<int>(cut.rows), static_cast<int>(cut.cols), *how);
      }
    };
    if (compute_element(slot) == Element::f64) {
      add(double_matrices, reinterpret_cast<double*>(slot.u));
    } else {
      add(matrices, reinterpret_cast<float*>(slot.u));
    }
  }
  matrices.plan(optim::thread_count(options));
  double_matrices.plan(optim::thread_count(options));
}

void Optimizer::Parts::finish_whole_tensors() {
  if (whole_plan.chunks.empty()) return;
  const auto each_chunk = [this](const auto& body) {
    optim::parallel(options, whole_plan.jobs.size(), [&](std::size_t j) {
      for (std::size_t c = whole_plan.jobs[j].first; c < whole_plan.jobs[j].last; ++c) {
        if (is_own(whole_plan.chunks[c])) body(c);
      }
    });
  };
  std::vector<Dots>& dots = slot_dots;
  const auto measure = [&] {
    each_chunk([this](std::size_t c) {
      const optim::Chunk& chunk = whole_plan.chunks[c];
      chunk_dots[c] = optim::dots(*kernels, slots[chunk.slot], moves[chunk.slot], chunk);
    });
    std::fill(dots.begin(), dots.end(), Dots{});
    for (std::size_t c = 0; c < whole_plan.chunks.size(); ++c) {
      if (!is_own(whole_plan.chunks[c])) continue;
      Dots& sum = dots[whole_plan.chunks[c].slot];
      sum.u2 += chunk_dots[c].u2;
      sum.ux += chunk_dots[c].ux;
      sum.g_away += chunk_dots[c].g_away;
      sum.away2 += chunk_dots[c].away2;
      sum.stepped2 += chunk_dots[c].stepped2;
    }
  };

  optim::parallel(options, whole.size(), [&](std::size_t i) { shape(recipe_of(slots[whole[i]]), slots[whole[i]]); });
  const linear::Run run = [this](std::size_t count, const auto& body) { optim::parallel(options, count, body); };
  const optim::FlushDenormals flush;
  matrices.run(run);
  double_matrices.run(run);
  if (options.update_rms_clip > 0) {
    measure();
    for (const std::size_t s : whole) {
      moves[s].u_scale = portable::clip_factor(options.update_rms_clip, dots[s].u2, static_cast<double>(slots[s].count));
    }
  }
  const auto looks = [this](std::size_t s) { return slots[s].looks_first; };
  if (std::any_of(whole.begin(), whole.end(), looks)) {
    measure();
    for (optim::SizeBins& bins : sizes) {
      std::fill(bins.all.begin(), bins.all.end(), 0);
      std::fill(bins.decayed.begin(), bins.decayed.end(), 0);
    }
    each_chunk([this](std::size_t c) {
      const optim::Chunk& chunk = whole_plan.chunks[c];
      optim::SizeBins& bins = sizes[chunk.slot];
      if (!bins.all.empty()) optim::count_sizes(*kernels, slots[chunk.slot], moves[chunk.slot], chunk, bins);
    });
    for (const std::size_t s : whole) {
      if (!looks(s)) continue;
      Move& move = moves[s];
      optim::find_odds(sizes[s]);
      const kernels::SeenNumbers seen{dots[s].ux, dots[s].g_away, dots[s].away2, dots[s].stepped2, {sizes[s].odds.data()}};
      if (move.projects) {
        move.wd *= portable::projection_of(slots[s].decay, seen);
      } else {
        optim::set_mask(*kernels, slots[s], slots[s].decay, move, seen);
      }
    }
  }

  // Stage 2 counts into the chunks of the whole plan, which follow those of the other tensors.
  each_chunk([this](std::size_t c) {
    const optim::Chunk& chunk = whole_plan.chunks[c];
    optim::apply_only(*kernels, slots[chunk.slot], options, moves[chunk.slot], chunk, counted[plan.chunks.size() + c]);
  });
}

}  // namespace cautious
