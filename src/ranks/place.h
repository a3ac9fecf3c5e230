// Where this process stands among the ranks of a run, from the environment: as torchrun sets it (RANK, WORLD_SIZE, LOCAL_RANK,
// MASTER_ADDR, MASTER_PORT), or Slurm's srun. Without either it is alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cautious::ranks {

struct Place {
  int rank = 0, ranks = 1;
  int local_rank = 0, local_ranks = 1;  // on its machine
  std::string address = {};             // where the first rank is met
  std::uint16_t port = 0;
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

// Variables that contradict each other, or of which some are missing, are an Error(Fault::usage). torchrun's are looked at
// before Slurm's; MASTER_ADDR and MASTER_PORT hold for both.
Place find_place(const Environment& environment = environment_variable);

// The first host of Slurm's short form: "node03" of "node[03-06,9],other".
std::string first_host(const std::string& list);

}  // namespace cautious::ranks
