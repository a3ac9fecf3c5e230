#include "bench/rounds.h"

#include <omp.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <random>

namespace cautious::bench {
namespace {

double seconds_now(bool processor) {
  timespec now{};
  clock_gettime(processor ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& run, std::size_t repeats, bool processor) {
  const double start = seconds_now(processor);
  for (std::size_t i = 0; i < repeats; ++i) run();
  return seconds_now(processor) - start;
}

// Waiting threads spin; two of them on one processor would let each other wait for whole slices of the scheduler.
void bind_threads(int threads) {
  static const std::vector<int> kProcessors = [] {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> processors;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    }
    return processors;
  }();
#pragma omp parallel num_threads(threads)
  {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(kProcessors[static_cast<std::size_t>(omp_get_thread_num()) % kProcessors.size()], &own);
    sched_setaffinity(0, sizeof own, &own);
  }
}

long times_preempted() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nivcsw;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

void interleave(std::vector<Contestant>& contestants, int rounds, int threads) {
  constexpr std::size_t kCheap = 4'000'000;
  const bool processor = threads == 1;
  const double slice = processor ? 2e-3 : 0.5e-3;
  if (!processor) bind_threads(threads);
  std::vector<std::size_t> repeats, order(contestants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  bool cheap = true;
  for (const Contestant& c : contestants) {
    c.run();
    const double once = std::min(seconds_of(c.run, 1, processor), seconds_of(c.run, 1, processor));
    repeats.push_back(static_cast<std::size_t>(std::clamp(slice / std::max(once, 1e-9), 1.0, 1e6)));
    cheap = cheap && c.n <= kCheap;
  }
  std::mt19937 engine(1);
  for (int round = 0; round < (cheap ? 4 : 1) * rounds; ++round) {
    std::shuffle(order.begin(), order.end(), engine);
    for (const std::size_t i : order) {
      Contestant& c = contestants[i];
      if (cheap) c.run();  // back into the cache that the others have taken
      const long before = times_preempted();
      const double seconds = seconds_of(c.run, repeats[i], processor);
      c.disturbed += times_preempted() != before;
      c.ns_per_param.push_back(seconds * 1e9 / static_cast<double>(repeats[i]) / static_cast<double>(c.n));
    }
  }
}

Times times_of(const Contestant& contestant) {
  return {median(contestant.ns_per_param), quantile(contestant.ns_per_param, 0.1),
          contestant.disturbed / static_cast<double>(contestant.ns_per_param.size())};
}

const Contestant& slower(const Contestant& a, const Contestant& b) { return times_of(a).q10 < times_of(b).q10 ? b : a; }

Ratio ratio_of(const Contestant& contestant, const Contestant& other) {
  const Times ours = times_of(contestant), theirs = times_of(other);
  std::vector<double> rounds;
  for (std::size_t i = 0; i < contestant.ns_per_param.size(); ++i) {
    rounds.push_back(contestant.ns_per_param[i] / other.ns_per_param[i]);
  }
  return {ours.median / theirs.median, ours.q10 / theirs.q10, median(rounds)};
}

}  // namespace cautious::bench
