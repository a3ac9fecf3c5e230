// Which rank moves what, and how the ranks come to know it. Elementwise tensors are cut between chunks, so that a chunk's sums
// are made by one rank and added up in the same order as in one process; tensors that must be seen whole stay whole.
#include <algorithm>
#include <utility>

#include "optim/parts.h"
#include "optim/polar.h"
#include "optim/shaping.h"

namespace cautious {
namespace {

using optim::Slot;

// Of a step, in multiplications, but for a factor.
double cost_of(const Slot& slot, const Recipe& recipe) {
  const Polar* how = optim::polar_in(recipe.rule);
  if (how == nullptr) return static_cast<double>(slot.count);
  const optim::Matrices cut = optim::matrices_of(slot.parameter.name, slot.parameter.shape, how->blocks);
  return static_cast<double>(slot.count) * static_cast<double>(std::min(cut.rows, cut.cols));
}

void give_whole(Slot& slot, std::size_t to) {
  for (std::size_t r = 0; r < slot.slices.size(); ++r) {
    slot.slices[r] = {r > to ? slot.count : 0, r >= to ? slot.count : 0};
  }
}

// As many chunks for everyone, what is left for those who have least.
void cut(Slot& slot, const std::vector<double>& held) {
  const std::size_t ranks = held.size(), chunks = (slot.count + optim::kChunk - 1) / optim::kChunk;
  std::vector<std::size_t> order(ranks), given(ranks, chunks / ranks);
  for (std::size_t r = 0; r < ranks; ++r) order[r] = r;
  std::ranges::stable_sort(order, {}, [&](std::size_t r) { return held[r]; });
  for (std::size_t i = 0; i < chunks % ranks; ++i) ++given[order[i]];
  std::size_t done = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t first = std::min(done * optim::kChunk, slot.count);
    done += given[r];
    slot.slices[r] = {first, std::min(done * optim::kChunk, slot.count)};
  }
}

}  // namespace

void Optimizer::Parts::deal(const std::vector<std::size_t>& fresh) {
  const auto ranks = static_cast<std::size_t>(options.share.ranks);
  std::vector<double> work(ranks), held(ranks);  // by whole tensors; coordinates of all
  const auto count = [&](const Slot& slot) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto size = static_cast<double>(slot.slices[r].last - slot.slices[r].first);
      held[r] += size;
      if (slot.whole_tensor && size > 0) work[r] += cost_of(slot, recipe_of(slot));
    }
  };
  for (const Slot& slot : slots) {
    if (slot.has_state) count(slot);
  }
  std::vector<std::size_t> order = fresh;  // whole tensors first, the costliest of them before all
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t s) {
    return slots[s].whole_tensor ? 1 + cost_of(slots[s], recipe_of(slots[s])) : 0;
  });
  for (const std::size_t s : order) {
    Slot& slot = slots[s];
    slot.slices.resize(ranks);
    if (slot.whole_tensor) {
      give_whole(slot, static_cast<std::size_t>(std::ranges::min_element(work) - work.begin()));
    } else {
      cut(slot, held);
    }
    slot.own = slot.slices[static_cast<std::size_t>(options.share.rank)];
    count(slot);
  }
}

void Optimizer::Parts::add_counts(std::vector<Piece>& pieces) {
  const auto add = [&](const optim::Plan& of, kernels::Counted* first) {
    for (std::size_t c = 0; c < of.chunks.size(); ++c) {
      if (c > 0 && of.chunks[c].owner == of.chunks[c - 1].owner) {
        pieces.back().bytes += sizeof *first;
      } else {
        pieces.push_back({of.chunks[c].owner, first + c, sizeof *first});
      }
    }
  };
  add(plan, counted.data());
  add(whole_plan, counted.data() + plan.chunks.size());
}

// Tensor by tensor, so that the first travel while the next are moved; whole tensors, which are moved together, and what was
// counted come last.
void Optimizer::Parts::move_with_others() {
  std::vector<Piece> pieces;
  std::vector<std::size_t> slot_of;  // of the pieces of which each is ready when its slot is
  const auto add = [&](std::size_t s) {
    optim::add_pieces(slots[s], slots[s].parameter.x, size_of(slots[s].parameter.element), pieces);
  };
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (taking_part[s] == 0 || slots[s].whole_tensor) continue;
    add(s);
    slot_of.resize(pieces.size(), s);
  }
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (taking_part[s] == 0 || !slots[s].whole_tensor) continue;
    const std::size_t first = pieces.size();
    add(s);
    // How strong a projection is, its rank alone has seen; the budget in the report goes by it.
    if (move_of(s).projects && pieces.size() > first) pieces.push_back({pieces[first].owner, &moves[s].wd, sizeof(double)});
  }
  add_counts(pieces);
  bool all = false;
  options.share.exchange(pieces, [&](std::size_t end) {
    if (end <= slot_of.size()) {
      if (end > 0) move_until(slot_of[end - 1] + 1);
    } else if (!std::exchange(all, true)) {
      move_all();
    }
  });
}

void optim::add_pieces(const Slot& slot, void* all, std::size_t size, std::vector<Piece>& pieces) {
  for (std::size_t r = 0; r < slot.slices.size(); ++r) {
    const Slice& slice = slot.slices[r];
    if (slice.first == slice.last) continue;
    pieces.push_back(
        {static_cast<int>(r), static_cast<std::byte*>(all) + slice.first * size, (slice.last - slice.first) * size});
  }
}

std::span<const Slice> Optimizer::slices(std::size_t tensor) const {
  (void)steps_of(tensor);  // refuses an index out of range
  parts_->ensure_state();
  return parts_->slots[tensor].slices;
}

}  // namespace cautious
