// libFuzzer over plans of studies: what is read is the same when it is printed and read again, and its runs, where they are
// few, are all there or the plan is refused with its file and line.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/toml.h"
#include "reader_fuzz.h"
#include "study/plan.h"

namespace {

using namespace cautious;

std::size_t count_runs(const study::Plan& plan) {
  std::size_t points = 0;
  for (const study::Arm& arm : plan.arms) points += study::count_points(plan, arm);
  return points * (plan.seeds.size() + plan.tune_seeds.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFew = 12;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = [](std::string_view toml) {
    return read_or_refuse([&] { return study::read_plan(base::parse_toml(toml, "file"), "file"); }, "file:", Fault::usage);
  };
  const auto plan = read(text);
  if (!plan) return 0;
  if (!read_or_refuse([&] { return study::check(*plan), true; }, "file:", Fault::usage)) return 0;
  const std::string written = study::to_toml(*plan);
  const auto again = read(written);
  demand(again && study::to_toml(*again) == written);
  if (count_runs(*plan) > kFew) return 0;
  const auto runs = read_or_refuse([&] { return study::expand(*plan); }, "file:", Fault::usage);
  if (!runs) return 0;
  std::set<std::string> arms;
  for (const study::PlannedRun& run : *runs) {
    demand(run.hash.size() == 16 && run.folder.find('/') == run.folder.npos);
    arms.insert(run.arm);
  }
  demand(arms.size() == plan->arms.size());
  return 0;
}
