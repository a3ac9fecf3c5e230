// The inside of an Optimizer: its memory, the work on a chunk, what a step keeps.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <cautious/optimizer.h>

#include "kernels/dispatch.h"
#include "linear/orthogonal.h"
#include "optim/whole_tensor.h"
#include "optim/work.h"

namespace cautious {

namespace optim {

// Zeroed blocks. Blocks of one stream lie side by side; streams start at distances that are no multiple of any cache's way
// size (64 KiB + 4 KiB + 256 B more each), since x, m and v at equal distances of 2^27 bytes run up to six times slower.
class Arena {
 public:
  // One row per tensor, one column per stream, in bytes. Returns the address of every block, in the same layout; an empty
  // block has no address.
  std::vector<std::vector<std::byte*>> allocate(const std::vector<std::vector<std::size_t>>& bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
};

// tiles.cc: a chunk, tile by tile.

// Makes `decay` ready as the mask of the move; one that looks at the whole tensor first is made ready again with what it saw.
void set_mask(const kernels::Kernels& kernels, const Slot& slot, const Decay& decay, Move& move,
              const kernels::SeenNumbers& seen = {});

// Both stages of one chunk; only for slots whose direction and decay are elementwise.
void fill_and_apply(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                    const Move& move, const Chunk& chunk, kernels::Counted& counted);

// The loop that does both stages of such a slot at once; null if there is none.
kernels::WalkRun walk_of(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Options& options,
                         const Move& move);

// Runs it over one chunk, or over up to this many of at most a tile each, whose slots share the move.
inline constexpr std::size_t kMostWalked = 32;
void walk(kernels::WalkRun run, const Move& move, std::span<const Slot> slots, std::span<const Chunk> chunks,
          kernels::Counted* counted);

// Stage 1 alone: the chunk's part of slot.u.
void fill_only(const kernels::Kernels& kernels, const Slot& slot, const Recipe& recipe, const Move& move, const Chunk& chunk);

// Stage 2 alone, from slot.u.
void apply_only(const kernels::Kernels& kernels, const Slot& slot, const Options& options, const Move& move, const Chunk& chunk,
                kernels::Counted& counted);

// What whole-tensor decays and clipping need to know of a chunk, in the compute type's values and double sums.
struct Dots {
  double u2 = 0, ux = 0;           // |u|^2, <u, x>
  double g_away = 0;               // <g, x - x0>
  double away2 = 0, stepped2 = 0;  // |x - x0|^2, |x - lr u - x0|^2
};
Dots dots(const kernels::Kernels& kernels, const Slot& slot, const Move& move, const Chunk& chunk);

// Adds the chunk's coordinates to the counts, while other threads add theirs.
void count_sizes(const kernels::Kernels& kernels, const Slot& slot, const Move& move, const Chunk& chunk, SizeBins& bins);

// Sum of squares of the chunk's gradient in double; adds its non-finite entries to `nonfinite`.
double survey_chunk(const kernels::Kernels& kernels, const Slot& slot, const Chunk& chunk, std::int64_t& nonfinite);

// share.cc: the slices of all ranks of an array with an entry of `size` bytes for each coordinate.
void add_pieces(const Slot& slot, void* all, std::size_t size, std::vector<Piece>& pieces);

// What tensors of a group share that have the same types, are at the same step t and have the same factor of StepInput.
struct Coefficients {
  std::size_t group;
  Element element, gradient;
  std::int64_t t;
  double factor;
  kernels::Prepared prepared = {};  // the rule's
  Move move = {};
  kernels::WalkRun walk = nullptr;

  bool fits(const Slot& slot, double of_factor) const {
    return t == slot.t + 1 && group == slot.group && element == slot.parameter.element && gradient == slot.parameter.gradient &&
           factor == of_factor;
  }
};

}  // namespace optim

struct Optimizer::Parts {
  Routing routing;
  Options options;
  const kernels::Kernels* kernels = nullptr;
  std::vector<optim::Slot> slots;
  std::unordered_map<std::string, std::size_t> index;  // by name
  optim::Arena arena;
  std::size_t slots_with_state = 0;
  StepReport report;

  // Scratch of step(), kept so that a step allocates nothing after the first (a singular value decomposition does).
  optim::Plan plan, whole_plan;            // of all slots taking part; of the whole-tensor ones among them
  std::vector<char> taking_part, planned;  // this step; when the plans were made
  std::size_t jobs_done = 0;               // of plan, in this step
  std::vector<optim::Coefficients> coefficients;
  std::vector<const optim::Coefficients*> shared;  // per slot
  std::vector<optim::Move> moves;                  // per slot: a copy, where something is the slot's own
  std::vector<kernels::Counted> counted;           // per chunk of plan
  std::vector<std::size_t> whole;                  // slots of whole_plan that this rank moves, each once
  std::vector<optim::Dots> chunk_dots;             // per chunk of whole_plan
  std::vector<optim::Dots> slot_dots;              // per slot
  std::vector<optim::SizeBins> sizes;              // per slot; empty unless its decay is binned
  linear::Batch<float> matrices;                   // directions that become orthogonal factors
  linear::Batch<double> double_matrices;

  const Recipe& recipe_of(const optim::Slot& slot) const { return routing.groups[slot.group].recipe; }
  const optim::Move& move_of(std::size_t s) const { return has_own_move(slots[s]) ? moves[s] : shared[s]->move; }
  static bool has_own_move(const optim::Slot& slot) { return slot.whole_tensor || slot.random; }
  bool is_own(const optim::Chunk& chunk) const { return chunk.owner == options.share.rank; }
  // Slices of slots that have none yet.
  void deal(const std::vector<std::size_t>& fresh);
  // What the chunks' sums are, from the ranks that made them.
  void add_counts(std::vector<Piece>& pieces);
  // Slices, moments, low halves and workspaces of slots that have none yet.
  void ensure_state();
  // The gradients' sums of squares and non-finite counts, into report.tensors.
  void survey();
  const optim::Coefficients& coefficients_of(const optim::Slot& slot, double factor, const StepInput& input);
  // What every slot taking part does in this step; throws before anything has changed.
  void resolve(const StepInput& input);
  // The chunks of a job: all of the step, or stage 1 of whole-tensor slots.
  void run_job(const optim::Job& job);
  // The jobs of slots before that one, unless they were run in this step.
  void move_until(std::size_t slot);
  void move_all();  // all jobs and the whole tensors
  void move_with_others();
  // Lists and memory of whole-tensor slots, after whole_plan was made.
  void plan_whole_tensors();
  // Directions, gates and clipping of whole-tensor slots, then their stage 2.
  void finish_whole_tensors();
  // The report, chunk by chunk in fixed order, so that sums do not depend on threads; every t moves on.
  void add_up();
};

}  // namespace cautious
