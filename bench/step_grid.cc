#include "bench/step_grid.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace cautious::bench {
namespace {

Optimizer make_optimizer(const StepCase& c) {
  Recipe ours = recipe(c.optimizer);
  set(ours, "decay", c.decay);
  Options options;
  options.threads = c.threads;
  options.norms = c.norms;
  options.rounding = Rounding::stochastic;
  return Optimizer(ours, options);
}

// Deterministic values in about [-1, 1], cheap enough for 10^8 of them.
float value_at(std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>(i * 2654435761u) >> 8;
  return static_cast<float>(mixed) * 0x1p-23f - 1.0f;
}

}  // namespace

std::size_t StepCase::total() const { return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}); }

int StepCase::moments() const { return optimizer == "adamw" ? 2 : 1; }

double StepCase::bytes_per_param() const { return 3.0 * static_cast<double>(size_of(element)) + 8.0 * moments(); }

std::vector<std::size_t> gpt2_small() {
  constexpr std::size_t kWidth = 768, kVocabulary = 50257, kContext = 1024, kLayers = 12;
  std::vector<std::size_t> sizes{kVocabulary * kWidth, kContext * kWidth};
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (const std::size_t size : {kWidth, kWidth, 3 * kWidth * kWidth, 3 * kWidth, kWidth * kWidth, kWidth, kWidth, kWidth,
                                   4 * kWidth * kWidth, 4 * kWidth, 4 * kWidth * kWidth, kWidth}) {
      sizes.push_back(size);
    }
  }
  sizes.push_back(kWidth);
  sizes.push_back(kWidth);
  return sizes;
}

Data::Data(Element element, std::size_t total, Spacing spacing, float gradient)
    : buffers_(2, total * size_of(element), spacing) {
  const auto n = static_cast<std::ptrdiff_t>(total);
#pragma omp parallel for
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float x = value_at(at), g = gradient * value_at(at + 12345);
    if (element == Element::bf16) {
      buffers_.at<std::uint16_t>(0)[at] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16);
      buffers_.at<std::uint16_t>(1)[at] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, g) >> 16);
    } else {
      buffers_.at<float>(0)[at] = x;
      buffers_.at<float>(1)[at] = g;
    }
  }
}

StepRunner::StepRunner(const StepCase& c, const Data& data) : sizes_(c.sizes), optimizer_(make_optimizer(c)) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < c.sizes.size(); ++i) {
    const std::size_t offset = first * size_of(c.element);
    optimizer_.add({fmt::format("t{}", i),
                    {static_cast<std::int64_t>(c.sizes[i])},
                    c.element,
                    c.element,
                    static_cast<std::byte*>(data.x()) + offset,
                    static_cast<const std::byte*>(data.g()) + offset});
    first += c.sizes[i];
  }
}

void StepRunner::set_moments(float value) {
  for (std::size_t i = 0; i < optimizer_.size(); ++i) {
    for (const StateTensor& state : optimizer_.state(i)) {
      if (state.type == "F32") std::fill_n(static_cast<float*>(state.data), sizes_[i], value);
    }
  }
}

LimitRunner::LimitRunner(const StepCase& c)
    : wide_(c.element == Element::bf16 ? 2 : 4, c.total() * 4, Spacing::staggered),
      narrow_(c.element == Element::bf16 ? 2 : 0, c.total() * 2, Spacing::staggered),
      threads_(c.threads) {
  const bool narrow = c.element == Element::bf16;
  traffic_.n = c.total();
  traffic_.m = wide_.at<float>(0);
  if (c.moments() == 2) traffic_.v = wide_.at<float>(1);
  if (narrow) {
    traffic_.x16 = narrow_.at<std::uint16_t>(0);
    traffic_.g16 = narrow_.at<std::uint16_t>(1);
  } else {
    traffic_.x = wide_.at<float>(2);
    traffic_.g = wide_.at<float>(3);
  }
  for (std::size_t b = 0; b < (narrow ? 2u : 4u); ++b) std::fill_n(wide_.at<float>(b), traffic_.n, 1.0f);
  for (std::size_t b = 0; b < (narrow ? 2u : 0u); ++b) std::fill_n(narrow_.at<std::uint16_t>(b), traffic_.n, std::uint16_t{1});
}

namespace {

// Something to time; run() is one step over `n` coordinates.
struct Contestant {
  std::function<void()> run;
  std::size_t n = 0;
  std::vector<double> ns_per_param;
};

// Round by round, each contestant in turn for about `kSlice` seconds or one step; what slows the machine slows them all.
void interleave(std::vector<Contestant>& contestants, int rounds) {
  constexpr double kSlice = 2e-3;
  constexpr std::size_t kCacheable = 4'000'000;
  for (Contestant& c : contestants) c.run();
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& c : contestants) {
      if (c.n <= kCacheable) c.run();  // back into the cache that the others have taken
      const auto repeats = std::max<std::size_t>(1, static_cast<std::size_t>(kSlice / (0.5e-9 * static_cast<double>(c.n))));
      const auto start = Clock::now();
      for (std::size_t i = 0; i < repeats; ++i) c.run();
      const double seconds = seconds_since(start);
      c.ns_per_param.push_back(seconds * 1e9 / static_cast<double>(repeats) / static_cast<double>(c.n));
    }
  }
}

// A case with its scenario's name and the scenario it is compared with.
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

  double limit = median(contestants[entries.size()].ns_per_param);
  if (first.moments() == 2) limit = std::max(limit, median(contestants.back().ns_per_param));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const StepCase& c = entries[i].step_case;
    const double ns = median(contestants[i].ns_per_param);
    double reference = ns;
    for (std::size_t j = 0; j < entries.size(); ++j) {
      const bool is_reference =
          entries[j].scenario == entries[i].reference || entries[j].step_case.decay == entries[i].reference;
      if (is_reference) reference = median(contestants[j].ns_per_param);
    }
    done({entries[i].scenario, c.optimizer, c.decay, std::string(name_of(c.element)), c.total(), c.sizes.size(), c.threads, ns,
          c.bytes_per_param(), limit, ns / limit, entries[i].reference, ns / reference});
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

// AdamW + CWD in the situations that slow others down, each next to its flat, staggered, ordinary twin.
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
