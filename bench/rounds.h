// What the interleaved benchmarks share: contestants take turns round by round, so that what slows the machine slows them all,
// and their times are compared by medians, by lower quantiles and round by round.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace cautious::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The value below which a fraction `q` of the values is.
double quantile(std::vector<double> values, double q);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// Something to time; run() is one step over `n` coordinates.
struct Contestant {
  std::function<void()> run;
  std::size_t n = 0;
  std::vector<double> ns_per_param = {};  // one per round
  int disturbed = 0;                      // rounds in which the system took a processor away
};

// Each contestant in turn for about 2 ms (several threads: 0.5 ms, to fit between what other programs take) or one step, in
// another order every round, so that none always follows the same neighbour. Steps of up to 4e6 coordinates are cheap and have
// four times as many rounds. Time is the processor's on one thread, which leaves out other programs, and the wall's on several,
// each of which is bound to a processor of its own.
void interleave(std::vector<Contestant>& contestants, int rounds, int threads);

struct Times {
  double median = 0, q10 = 0;
  double disturbed = 0;  // fraction of the rounds; wall times of mostly disturbed ones are the scheduler's, not the machine's
};
Times times_of(const Contestant& contestant);

// The one with the larger q10: of two limits, the one that counts.
const Contestant& slower(const Contestant& a, const Contestant& b);

// How much longer one takes than the other. Under load the lower quantiles are closest to a quiet machine; the rounds' own
// ratios are those of neighbours in time.
struct Ratio {
  double medians = 0;  // ratio of the medians
  double q10 = 0;      // ratio of the 10% quantiles
  double rounds = 0;   // median of the rounds' ratios
};
Ratio ratio_of(const Contestant& contestant, const Contestant& other);

}  // namespace cautious::bench
