// The oracle's part of the decay shuffled: odds by size.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace oracle {

// Per coordinate the odds of 2^24 of shuffled, lowest and highest as far as unclear coordinates leave them open: how often the
// mask of cautious strikes (`struck`) among parameters whose sizes share the power of two and the eighth of it; sizes are put
// together from the largest down until there are 64, what remains goes to the group before, zeros stay among themselves.
struct Odds {
  double low, high;
};
inline std::vector<Odds> shuffled_odds(const std::vector<double>& x, const std::vector<char>& struck,
                                       const std::vector<char>& clear) {
  struct Bin {
    double all = 0, decayed = 0, unclear = 0;
    int group = 0;
  };
  const auto size_of = [](double a) {
    if (a == 0) return std::pair{-1000, 0};
    const int power = std::ilogb(a);
    return std::pair{power, static_cast<int>(8 * (std::ldexp(std::fabs(a), -power) - 1))};
  };
  std::map<std::pair<int, int>, Bin> bins;
  for (std::size_t i = 0; i < x.size(); ++i) {
    Bin& bin = bins[size_of(x[i])];
    ++bin.all, bin.decayed += struck[i], bin.unclear += !clear[i];
  }
  std::vector<Bin> groups(2);  // zeros; the largest
  for (auto at = bins.rbegin(); at != bins.rend(); ++at) {
    if (at->first.first == -1000) continue;
    if (groups.back().all >= 64) groups.emplace_back();
    at->second.group = static_cast<int>(groups.size()) - 1;
    groups.back().all += at->second.all;
  }
  const int last = static_cast<int>(groups.size()) - 1;
  for (auto& [size, bin] : bins) {
    if (bin.group == last && last > 1 && groups.back().all < 64) bin.group = last - 1;
  }
  groups.assign(groups.size(), {});
  for (const auto& [size, bin] : bins) {
    Bin& group = groups[static_cast<std::size_t>(bin.group)];
    group.all += bin.all, group.decayed += bin.decayed, group.unclear += bin.unclear;
  }
  std::vector<Odds> odds;
  for (const double a : x) {
    const Bin& group = groups[static_cast<std::size_t>(bins[size_of(a)].group)];
    const auto of = [&](double decayed) { return std::floor(decayed / group.all * 16777216 + 0.5); };
    odds.push_back({of(group.decayed - group.unclear), of(group.decayed + group.unclear)});
  }
  return odds;
}

}  // namespace oracle
