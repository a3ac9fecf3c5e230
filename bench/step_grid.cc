#include "bench/step_grid.h"

#include <algorithm>
#include <deque>
#include <memory>

#include <fmt/format.h>

namespace cautious::bench {
namespace {

// A case with its scenario's name and the scenario or decay it is compared with.
struct Entry {
  std::string scenario, reference;
  StepCase step_case;
};
using Group = std::vector<Entry>;

// Where the contestants of a group stand: its cases in their order, then these.
struct Limit {
  Limit(const StepCase& c, std::size_t at) : element(c.element), moments(c.moments()), traffic(c), position(at) {}
  Element element;
  int moments;
  LimitRunner traffic;
  std::size_t position;
};

void run_group(const Group& group, int rounds, const std::function<void(const StepRow&)>& done) {
  std::deque<Data> data;
  std::deque<StepRunner> runners;
  std::deque<Limit> limits;
  std::vector<Contestant> contestants;
  const StepCase& first = group.front().step_case;
  for (const Entry& entry : group) {
    const StepCase& c = entry.step_case;
    const bool shared =
        !data.empty() && c.element == first.element && c.spacing == first.spacing && c.gradient == first.gradient;
    if (!shared) data.emplace_back(c);
    runners.emplace_back(c, shared ? data.front() : data.back());
    if (c.gradient == 0) runners.back().set_moments(1e-40f);  // where they would come to in time
    contestants.push_back({[runner = &runners.back()] { runner->run(); }, c.total()});
  }
  const auto limit_of = [&](const StepCase& c) {
    return std::find_if(limits.begin(), limits.end(),
                        [&](const Limit& limit) { return limit.element == c.element && limit.moments == c.moments(); });
  };
  for (const Entry& entry : group) {
    if (limit_of(entry.step_case) != limits.end()) continue;
    limits.emplace_back(entry.step_case, contestants.size());
    contestants.push_back({[traffic = &limits.back().traffic] { traffic->run(); }, first.total()});
  }
  Floor floor(first.total(), first.threads);
  contestants.push_back({[&floor] { floor.run(); }, first.total()});
  interleave(contestants, rounds, first.threads);

  for (std::size_t i = 0; i < group.size(); ++i) {
    const StepCase& c = group[i].step_case;
    const auto reference = std::find_if(group.begin(), group.end(), [&](const Entry& entry) {
      return entry.scenario == group[i].reference || entry.step_case.decay == group[i].reference;
    });
    const Contestant& twin = contestants[static_cast<std::size_t>(reference - group.begin())];
    const Contestant& traffic = contestants[limit_of(c)->position];
    const Contestant& limit = c.moments() == 2 ? slower(traffic, contestants.back()) : traffic;
    done({group[i].scenario, c.optimizer, c.decay, std::string(name_of(c.element)), c.norms, c.total(), c.sizes.size(),
          c.threads, c.bytes_per_param(), times_of(contestants[i]), times_of(limit), &limit == &traffic ? "traffic" : "floor",
          ratio_of(contestants[i], limit), group[i].reference, ratio_of(contestants[i], twin)});
  }
}

struct Scenario {
  std::string_view name;
  std::vector<std::size_t> sizes;       // unless the command line says otherwise; empty: tensors of its own
  std::vector<std::string> optimizers;  // unless the command line says otherwise
  std::vector<Norms> norms;             // of the case and of its twin
  void (*change)(StepCase&);            // what differs from the flat twin; null: all three decays of both types, no twin
};

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      {"flat", {10'000, 1'000'000, 30'000'000, 100'000'000}, {"sgdm", "adamw", "lion"}, {Norms::off}, nullptr},
      {"gpt2-small", {}, {"adamw"}, {Norms::off}, [](StepCase& c) { c.sizes = gpt2_small(); }},
      {"1000x160", {}, {"adamw"}, {Norms::off, Norms::on}, [](StepCase& c) { c.sizes.assign(1000, 160); }},
      {"norms", {1'000'000, 30'000'000}, {"adamw", "lion"}, {Norms::off}, [](StepCase& c) { c.norms = Norms::on; }},
      {"bf16", {30'000'000, 100'000'000}, {"adamw", "lion"}, {Norms::off}, [](StepCase& c) { c.element = Element::bf16; }},
      {"aliased", {30'000'000}, {"adamw"}, {Norms::off}, [](StepCase& c) { c.spacing = Spacing::aliased; }},
      {"denormal", {1'000'000}, {"adamw"}, {Norms::off}, [](StepCase& c) { c.gradient = 0; }},
  };
  return all;
}

// The three decays of one type, cautious compared with decoupled.
Group decays(StepCase c, Element element) {
  c.element = element;
  Group group;
  for (const char* decay : {"none", "decoupled", "cautious"}) {
    c.decay = decay;
    group.push_back({"flat", "decoupled", c});
  }
  return group;
}

// Groups of a scenario; `plain` has everything but what makes the scenario special.
std::vector<Group> groups_of(const Scenario& scenario, StepCase plain) {
  if (scenario.change == nullptr) return {decays(plain, Element::f32), decays(plain, Element::bf16)};
  std::vector<Group> groups;
  for (const Norms norms : scenario.norms) {
    plain.norms = norms;
    StepCase special = plain;
    scenario.change(special);
    plain.sizes = {special.total()};
    groups.push_back({{"flat", "flat", plain}, {std::string(scenario.name), "flat", special}});
  }
  return groups;
}

}  // namespace

std::vector<std::string_view> scenario_names() {
  std::vector<std::string_view> names;
  for (const Scenario& scenario : scenarios()) names.push_back(scenario.name);
  return names;
}

void run_step_grid(const StepGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const StepRow&)>& done) {
  const auto chosen = [&](const Scenario& scenario) {
    return grid.scenarios.empty() ||
           std::find(grid.scenarios.begin(), grid.scenarios.end(), scenario.name) != grid.scenarios.end();
  };
  for (const int threads : grid.threads) {
    for (const Scenario& scenario : scenarios()) {
      if (!chosen(scenario)) continue;
      std::vector<std::size_t> sizes = grid.sizes.empty() ? scenario.sizes : grid.sizes;
      if (scenario.sizes.empty()) sizes = {0};
      for (const std::size_t n : sizes) {
        for (const std::string& optimizer : grid.optimizers.empty() ? scenario.optimizers : grid.optimizers) {
          StepCase c;
          c.optimizer = optimizer;
          c.sizes = {n};
          c.threads = threads;
          c.pages = grid.pages;
          for (const Group& group : groups_of(scenario, c)) {
            const StepCase& last = group.back().step_case;
            begin(fmt::format("{} {} {} n={} threads={}", scenario.name, optimizer, name_of(last.element), last.total(),
                              threads));
            run_group(group, grid.rounds, done);
          }
        }
      }
    }
  }
}

}  // namespace cautious::bench
