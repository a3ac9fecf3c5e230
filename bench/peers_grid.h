// The benchmark of peers: AdamW with cautious weight decay by this library next to what one would use instead, on the same
// values, interleaved in one run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/rounds.h"

namespace cautious::bench {

struct PeerRow {
  std::string tensors_of;  // "flat", or the list of tensors
  std::size_t n = 0, tensors = 0;
  int threads = 0;
  std::string peer, decay;
  Times ns;       // per parameter
  Ratio ratio;    // to the machine's limit
  Ratio speedup;  // of ours: the peer's time over that of "cautious"
};

// Tensors of one case, by the number of their coordinates.
struct PeerCase {
  std::string name;
  std::vector<std::size_t> sizes;
};

struct PeersGrid {
  std::vector<PeerCase> cases;
  std::vector<int> threads{1, 2};
  int rounds = 15;
};

// First takes a few steps with every peer and throws an Error unless all parameters agree with ours to 1e-5. Then calls `done`
// with each row as its case is finished, and `begin` with a line about what comes next.
void run_peers_grid(const PeersGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const PeerRow&)>& done);

}  // namespace cautious::bench
