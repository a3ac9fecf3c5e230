#include "ranks/place.h"

#include <cstdlib>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::ranks {
namespace {

constexpr int kMostRanks = 65536;

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const std::string& name) const { return environment_(name).has_value(); }

  std::string text(const std::string& name, const std::string& why) const {
    const std::optional<std::string> found = environment_(name);
    if (found && !found->empty()) return *found;
    throw Error(
        Fault::usage,
        fmt::format("the environment has {} but not {}; torchrun and 'cautious launch' set both, or unset {} to train in "
                    "one process",
                    why, name, why),
        {name, ""});
  }
  std::int64_t number(const std::string& name, std::int64_t least, std::int64_t most, const std::string& why) const {
    const Range range{static_cast<double>(least), static_cast<double>(most), false, false};
    return base::to_integer(name, text(name, why), range);
  }
  int count(const std::string& name, int least, int most, const std::string& why) const {
    return static_cast<int>(number(name, least, most, why));
  }

 private:
  const Environment& environment_;
};

Place of_torchrun(const Reader& read) {
  const std::string why = read.has("WORLD_SIZE") ? "WORLD_SIZE" : "RANK";
  Place place;
  place.ranks = read.count("WORLD_SIZE", 1, kMostRanks, why);
  place.rank = read.count("RANK", 0, place.ranks - 1, why);
  if (read.has("LOCAL_WORLD_SIZE")) place.local_ranks = read.count("LOCAL_WORLD_SIZE", 1, place.ranks, why);
  if (read.has("LOCAL_RANK")) place.local_rank = read.count("LOCAL_RANK", 0, place.ranks - 1, why);
  if (place.ranks == 1) return place;
  place.address = read.text("MASTER_ADDR", why);
  place.port = static_cast<std::uint16_t>(read.count("MASTER_PORT", 1, 65535, why));
  return place;
}

// Steps of one job that run at the same time have ports of their own.
Place of_slurm(const Reader& read) {
  constexpr const char* kWhy = "SLURM_STEP_NUM_TASKS";
  constexpr std::int64_t kFirstPort = 20000, kPorts = 10000, kMost = std::int64_t{1} << 52;
  Place place;
  place.ranks = read.count(kWhy, 1, kMostRanks, kWhy);
  if (place.ranks == 1) return place;
  place.rank = read.count("SLURM_PROCID", 0, place.ranks - 1, kWhy);
  place.local_rank = read.count("SLURM_LOCALID", 0, place.ranks - 1, kWhy);
  if (read.has("SLURM_NTASKS_PER_NODE")) place.local_ranks = read.count("SLURM_NTASKS_PER_NODE", 1, place.ranks, kWhy);
  place.address = read.has("MASTER_ADDR") ? read.text("MASTER_ADDR", kWhy) : first_host(read.text("SLURM_STEP_NODELIST", kWhy));
  if (read.has("MASTER_PORT")) {
    place.port = static_cast<std::uint16_t>(read.count("MASTER_PORT", 1, 65535, kWhy));
  } else {
    const std::int64_t job = read.number("SLURM_JOB_ID", 0, kMost, kWhy), step = read.number("SLURM_STEP_ID", 0, kMost, kWhy);
    place.port = static_cast<std::uint16_t>(kFirstPort + (job + step) % kPorts);
  }
  return place;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Place find_place(const Environment& environment) {
  const Reader read(environment);
  if (read.has("WORLD_SIZE") || read.has("RANK")) return of_torchrun(read);
  if (read.has("SLURM_STEP_NUM_TASKS")) return of_slurm(read);  // of srun; a batch script itself is alone
  return {};
}

std::string first_host(const std::string& list) {
  const std::size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  const std::size_t end = list.find_first_of("-,]", open);
  const std::size_t close = list.find(']', open);
  if (end == std::string::npos || close == std::string::npos) {
    throw Error(Fault::usage, fmt::format("SLURM_STEP_NODELIST is {}; expected names as node[01-04]; set MASTER_ADDR",
                                          base::in_quotes(list)));
  }
  const std::size_t comma = list.find(',', close);
  const std::size_t after = comma == std::string::npos ? list.size() : comma;
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + list.substr(close + 1, after - close - 1);
}

}  // namespace cautious::ranks
