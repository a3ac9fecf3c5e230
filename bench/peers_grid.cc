// The peers, the check that they compute the same, and the rounds in which each takes its turn.
#include "bench/peers_grid.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/optim/adamw.h>

#include <cautious/error.h>
#include <cautious/torch.h>

#include "bench/machine.h"
#include "bench/step_case.h"

namespace cautious::bench {

// plain_loop.cc: step t of AdamW + CWD over n coordinates.
void plain_loop_o2(float* x, const float* g, float* m, float* v, std::size_t n, float lr, int t, int threads);
void plain_loop_o3(float* x, const float* g, float* m, float* v, std::size_t n, float lr, int t, int threads);

namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8, kWeightDecay = 0.1;

// What an optimizer is made for: tensors that lie one after another.
struct Problem {
  std::vector<std::size_t> sizes;
  float *x, *g;
  int threads;
  double lr;

  std::size_t total() const { return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}); }
};

using Step = std::function<void()>;

Step by_core(const Problem& problem, const Decay& decay, Norms norms) {
  Recipe adamw = recipe("adamw");
  adamw.decay = decay;
  Options options;
  options.threads = problem.threads;
  options.norms = norms;
  const auto optimizer = std::make_shared<Optimizer>(adamw, options);
  std::size_t first = 0;
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    const std::size_t n = problem.sizes[i];
    optimizer->add(fmt::format("t{}", i), {static_cast<std::int64_t>(n)}, problem.x + first, problem.g + first);
    first += n;
  }
  return [optimizer, lr = problem.lr] { optimizer->step({.lr = lr}); };
}

Step by_default(const Problem& problem) { return by_core(problem, Cautious{}, Norms::on); }
Step without_norms(const Problem& problem) { return by_core(problem, Cautious{}, Norms::off); }

std::vector<at::Tensor> tensors_of(const Problem& problem) {
  std::vector<at::Tensor> tensors;
  std::size_t first = 0;
  for (const std::size_t n : problem.sizes) {
    const at::IntArrayRef::value_type shape[]{static_cast<std::int64_t>(n)};
    at::Tensor x = at::from_blob(problem.x + first, shape).set_requires_grad(true);
    x.mutable_grad() = at::from_blob(problem.g + first, shape);
    tensors.push_back(x);
    first += n;
  }
  return tensors;
}

Step by_torch(const Problem& problem) {
  torch::Options options(problem.lr);
  options.recipe.decay = Cautious{};
  const auto optimizer = std::make_shared<torch::Optimizer>(tensors_of(problem), options);
  return [optimizer] { optimizer->step(); };
}

Step by_libtorch(const Problem& problem) {
  const auto optimizer = std::make_shared<::torch::optim::AdamW>(
      tensors_of(problem), ::torch::optim::AdamWOptions(problem.lr).weight_decay(kWeightDecay));
  return [optimizer] { optimizer->step(); };
}

// As a user of libtorch writes it from the paper: one tensor at a time, in place where that is natural.
Step by_aten(const Problem& problem) {
  struct Slot {
    at::Tensor x, m, v;
  };
  std::vector<Slot> slots;
  for (const at::Tensor& x : tensors_of(problem)) slots.push_back({x, at::zeros_like(x), at::zeros_like(x)});
  return [slots, lr = problem.lr, t = 0]() mutable {
    const at::NoGradGuard no_grad;
    ++t;
    const double scale1 = 1 - std::pow(kBeta1, t), scale2 = std::sqrt(1 - std::pow(kBeta2, t));
    for (Slot& slot : slots) {
      const at::Tensor& g = slot.x.grad();
      slot.m.mul_(kBeta1).add_(g, 1 - kBeta1);
      slot.v.mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
      const at::Tensor denominator = slot.v.sqrt().div_(scale2).add_(kEps);
      const at::Tensor u = (slot.m / scale1).div_(denominator);
      const at::Tensor mask = (u * slot.x).ge_(0);
      slot.x.addcmul_(slot.x, mask, -lr * kWeightDecay).add_(u, -lr);
    }
  };
}

Step by_loop(const Problem& problem, decltype(&plain_loop_o2) loop) {
  const auto m = std::make_shared<std::vector<float>>(problem.total());
  const auto v = std::make_shared<std::vector<float>>(problem.total());
  return [problem, loop, m, v, t = 0]() mutable {
    ++t;
    std::size_t first = 0;
    for (const std::size_t n : problem.sizes) {
      loop(problem.x + first, problem.g + first, m->data() + first, v->data() + first, n, static_cast<float>(problem.lr), t,
           problem.threads);
      first += n;
    }
  };
}

Step by_loop_o2(const Problem& problem) { return by_loop(problem, plain_loop_o2); }
Step by_loop_o3(const Problem& problem) { return by_loop(problem, plain_loop_o3); }

struct Peer {
  std::string name;
  Decay decay;
  Step (*make)(const Problem&);
};

std::vector<Peer> peers() {
  std::vector<Peer> all{{"cautious", Cautious{}, by_default},     {"cautious-norms-off", Cautious{}, without_norms},
                        {"cautious-torch", Cautious{}, by_torch}, {"libtorch-adamw", Decoupled{}, by_libtorch},
                        {"aten-cwd", Cautious{}, by_aten},        {"loop-o2", Cautious{}, by_loop_o2}};
  bool runs = true;
#if defined(__x86_64__)
  runs = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  if (runs) all.push_back({"loop-o3-avx2", Cautious{}, by_loop_o3});
  return all;
}

float value_at(std::size_t i) { return std::sin(static_cast<float>(i)); }

// Parameters after five steps over tensors of uneven sizes, with other gradients in each.
std::vector<float> parameters_after(const std::function<Step(const Problem&)>& make, int threads) {
  constexpr std::size_t kTotal = 160 + 1001 + 70'000;
  std::vector<float> x(kTotal), g(kTotal);
  for (std::size_t i = 0; i < kTotal; ++i) x[i] = value_at(i);
  const Step step = make({{160, 1001, 70'000}, x.data(), g.data(), threads, 1e-2});
  for (std::size_t t = 1; t <= 5; ++t) {
    for (std::size_t i = 0; i < kTotal; ++i) g[i] = value_at(3 * i + 1000 * t);
    step();
  }
  return x;
}

void check_agreement(int threads) {
  constexpr float kBound = 1e-5f;
  for (const Peer& peer : peers()) {
    const auto ours = [&](const Problem& problem) { return by_core(problem, peer.decay, Norms::off); };
    const std::vector<float> expected = parameters_after(ours, threads), x = parameters_after(peer.make, threads);
    float worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - expected[i]));
    if (!(worst <= kBound)) {
      throw Error(Fault::failure,
                  fmt::format("parameters of peer '{}' are {} from ours after five steps; they should agree to {}", peer.name,
                              worst, kBound));
    }
  }
}

void run_case(const PeerCase& given, int threads, int rounds, const std::function<void(const PeerRow&)>& done) {
  StepCase c;
  c.sizes = given.sizes;
  c.threads = threads;
  const Data data(c);
  const Problem problem{c.sizes, static_cast<float*>(data.x()), static_cast<float*>(data.g()), threads, 1e-6};
  const std::vector<Peer> all = peers();
  std::vector<Contestant> contestants;
  for (const Peer& peer : all) contestants.push_back({peer.make(problem), c.total()});
  const LimitRunner traffic(c);
  Floor floor(c.total(), threads);
  contestants.push_back({[&traffic] { traffic.run(); }, c.total()});
  contestants.push_back({[&floor] { floor.run(); }, c.total()});
  interleave(contestants, rounds, threads);

  const Contestant& ours = contestants.front();
  const Contestant& limit = slower(contestants[all.size()], contestants.back());
  const auto row = [&](const std::string& name, const std::string& decay, const Contestant& peer) {
    done({given.name, c.total(), c.sizes.size(), threads, name, decay, times_of(peer), ratio_of(peer, limit),
          ratio_of(peer, ours)});
  };
  for (std::size_t i = 0; i < all.size(); ++i) row(all[i].name, std::string(name_of(all[i].decay)), contestants[i]);
  row("limit", "none", limit);
}

}  // namespace

void run_peers_grid(const PeersGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const PeerRow&)>& done) {
  for (const int threads : grid.threads) {
    at::set_num_threads(threads);
    check_agreement(threads);
    for (const PeerCase& one : grid.cases) {
      const std::size_t total = std::accumulate(one.sizes.begin(), one.sizes.end(), std::size_t{0});
      begin(fmt::format("{} n={} threads={}", one.name, total, threads));
      run_case(one, threads, grid.rounds, done);
    }
  }
}

}  // namespace cautious::bench
