#include "bench/step_grid.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "bench/step_case.h"

namespace cautious::bench {
namespace {

// Something to time; run() is one step over `n` coordinates.
struct Contestant {
  std::function<void()> run;
  std::size_t n = 0;
  std::vector<double> ns_per_param;

  double median() {
    std::nth_element(ns_per_param.begin(), ns_per_param.begin() + ns_per_param.size() / 2, ns_per_param.end());
    return ns_per_param[ns_per_param.size() / 2];
  }
};

// Round by round, each contestant in turn for about `kSlice` seconds or one step; what slows the machine slows them all.
void interleave(std::vector<Contestant>& contestants, int rounds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSlice = 2e-3;
  constexpr std::size_t kCacheable = 4'000'000;
  for (Contestant& c : contestants) c.run();
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& c : contestants) {
      if (c.n <= kCacheable) c.run();  // back into the cache that the others have taken
      const auto repeats = std::max<std::size_t>(1, static_cast<std::size_t>(kSlice / (0.5e-9 * static_cast<double>(c.n))));
      const auto start = Clock::now();
      for (std::size_t i = 0; i < repeats; ++i) c.run();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      c.ns_per_param.push_back(seconds * 1e9 / static_cast<double>(repeats) / static_cast<double>(c.n));
    }
  }
}

// A case beside its scenario's name, and the scenario it is compared with.
struct Entry {
  std::string scenario, reference;
  StepCase step_case;
};

void run_group(const std::vector<Entry>& entries, int rounds, const std::function<void(const StepRow&)>& done) {
  std::vector<std::unique_ptr<Data>> data;
  std::vector<std::unique_ptr<StepRunner>> runners;
  std::vector<Contestant> contestants;
  for (const Entry& entry : entries) {
    const StepCase& c = entry.step_case;
    const StepCase& first = entries.front().step_case;
    const bool shared = !data.empty() && c.element == first.element && c.total() == first.total() &&
                        c.spacing == first.spacing && c.gradient == first.gradient;
    if (!shared) data.push_back(std::make_unique<Data>(c.element, c.total(), c.spacing, c.gradient));
    runners.push_back(std::make_unique<StepRunner>(c, shared ? *data.front() : *data.back()));
    if (entry.scenario == "denormal") runners.back()->set_moments(1e-40f);
    contestants.push_back({[runner = runners.back().get()] { runner->run(); }, c.total(), {}});
  }
  const StepCase& first = entries.front().step_case;
  const LimitRunner traffic(first);
  contestants.push_back({[&traffic] { traffic.run(); }, first.total(), {}});
  contestants.push_back({[&first] { run_floor(first.total(), first.threads); }, first.total(), {}});
  interleave(contestants, rounds);

  double limit = contestants[entries.size()].median();
  if (first.moments() == 2) limit = std::max(limit, contestants.back().median());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const StepCase& c = entries[i].step_case;
    const double ns = contestants[i].median();
    double reference = ns;
    for (std::size_t j = 0; j < entries.size(); ++j) {
      const bool is_reference =
          entries[j].scenario == entries[i].reference || entries[j].step_case.decay == entries[i].reference;
      if (is_reference) reference = contestants[j].median();
    }
    done({entries[i].scenario, c.optimizer, c.decay, std::string(name_of(c.element)), c.total(), c.sizes.size(), c.threads,
          ns, c.bytes_per_param(), limit, ns / limit, entries[i].reference, ns / reference});
  }
}

// The three decays over one flat tensor, cautious compared with decoupled.
std::vector<Entry> flat_group(const std::string& optimizer, Element element, std::size_t n, int threads) {
  std::vector<Entry> entries;
  for (const char* decay : {"none", "decoupled", "cautious"}) {
    StepCase c;
    c.optimizer = optimizer;
    c.decay = decay;
    c.element = element;
    c.sizes = {n};
    c.threads = threads;
    entries.push_back({"flat", "decoupled", c});
  }
  return entries;
}

// AdamW + CWD in the situations that slow others down, each beside its flat, staggered, ordinary twin.
std::vector<std::vector<Entry>> special_groups(int threads) {
  const auto twin = [&](const std::string& scenario, const StepCase& special) {
    StepCase plain;
    plain.sizes = {special.total()};
    plain.threads = threads;
    return std::vector<Entry>{{"flat", "flat", plain}, {scenario, "flat", special}};
  };
  StepCase base;
  base.threads = threads;
  StepCase list = base, small = base, aliased = base, denormal = base, norms = base, bf16 = base;
  list.sizes = gpt2_small();
  small.sizes.assign(1000, 160);
  aliased.sizes = denormal.sizes = norms.sizes = bf16.sizes = {30'000'000};
  aliased.spacing = Spacing::aliased;
  denormal.sizes = {1'000'000};
  denormal.gradient = 0;
  norms.norms = Norms::on;
  bf16.element = Element::bf16;
  return {twin("gpt2-small", list),   twin("1000x160", small), twin("aliased", aliased),
          twin("denormal", denormal), twin("norms", norms),    twin("bf16", bf16)};
}

}  // namespace

void run_step_grid(const StepGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const StepRow&)>& done) {
  for (const int threads : grid.threads) {
    for (const std::size_t n : grid.sizes) {
      for (const std::string& optimizer : grid.optimizers) {
        for (const Element element : {Element::f32, Element::bf16}) {
          begin(fmt::format("{} {} n={} threads={}", optimizer, name_of(element), n, threads));
          run_group(flat_group(optimizer, element, n, threads), grid.rounds, done);
        }
      }
    }
    for (const auto& group : special_groups(threads)) {
      begin(fmt::format("{} threads={}", group.back().scenario, threads));
      run_group(group, grid.rounds, done);
    }
  }
}

}  // namespace cautious::bench
