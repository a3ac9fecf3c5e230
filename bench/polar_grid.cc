#include "bench/polar_grid.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <random>

#include <cblas.h>
#include <fmt/format.h>

#include <cautious/optimizer.h>

#include "bench/machine.h"
#include "bench/rounds.h"
#include "linear/orthogonal.h"
#include "optim/work.h"

namespace cautious::bench {
namespace {

using Shape = std::pair<int, int>;

std::size_t size(int rows, int cols) { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols); }

// Newton-Schulz as it is usually written: three full products a step, each on all threads.
class NaivePolar {
 public:
  NaivePolar(int rows, int cols, std::vector<Quintic> steps);
  // In place, on `threads` threads of the BLAS.
  void run(float* matrix, int threads);
  // Multiplications and additions of one run().
  double flops() const;

 private:
  int n_, m_;
  bool tall_;
  std::vector<Quintic> steps_;
  std::vector<float> gram_, factor_, other_;
};

NaivePolar::NaivePolar(int rows, int cols, std::vector<Quintic> steps)
    : n_(std::min(rows, cols)),
      m_(std::max(rows, cols)),
      tall_(rows > cols),
      steps_(std::move(steps)),
      gram_(size(n_, n_)),
      factor_(size(n_, n_)),
      other_(size(n_, m_)) {}

void NaivePolar::run(float* matrix, int threads) {
  omp_set_num_threads(threads);
  const float norm = cblas_snrm2(n_ * m_, matrix, 1);
  cblas_sscal(n_ * m_, 1 / norm, matrix, 1);
  float *x = matrix, *y = other_.data();
  for (const Quintic& step : steps_) {
    const auto a = static_cast<float>(step.a), b = static_cast<float>(step.b), c = static_cast<float>(step.c);
    if (tall_) {
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n_, n_, m_, 1, x, n_, x, n_, 0, gram_.data(), n_);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n_, n_, m_, 1, x, m_, x, m_, 0, gram_.data(), n_);
    }
    std::copy(gram_.begin(), gram_.end(), factor_.begin());
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, n_, n_, c, gram_.data(), n_, gram_.data(), n_, b, factor_.data(),
                n_);
    std::copy_n(x, size(n_, m_), y);
    if (tall_) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, n_, 1, x, n_, factor_.data(), n_, a, y, n_);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, m_, n_, 1, factor_.data(), n_, x, m_, a, y, m_);
    }
    std::swap(x, y);
  }
  if (x != matrix) std::copy_n(x, size(n_, m_), matrix);
}

double NaivePolar::flops() const {
  const double n = n_, m = m_;
  return static_cast<double>(steps_.size()) * (4 * n * n * m + 2 * n * n * n);
}

double seconds_of(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return seconds_since(start);
}

std::vector<float> random_matrix(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(static_cast<std::size_t>(shape.first) * static_cast<std::size_t>(shape.second));
  for (float& entry : matrix) entry = normal(engine);
  return matrix;
}

double error_of(const Shape& shape, const Polar& how) {
  std::vector<float> single = random_matrix(shape, 7);
  std::vector<double> exact(single.begin(), single.end());
  polar(std::span(single), shape.first, shape.second, how);
  polar(std::span(exact), shape.first, shape.second, how);
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    apart += (single[i] - exact[i]) * (single[i] - exact[i]);
    all += exact[i] * exact[i];
  }
  return std::sqrt(apart / all);
}

// A list of matrices, and the ways to spend time on it.
class Contest {
 public:
  Contest(const std::vector<Shape>& shapes, const Polar& how, int threads)
      : threads_(threads),
        options_{.threads = threads},
        muon_(step_recipe(how), options_),
        elementwise_(elementwise_recipe(), elementwise_options(threads)) {
    matrices_.reserve(shapes.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto [rows, cols] = shapes[i];
      matrices_.push_back(random_matrix(shapes[i], static_cast<unsigned>(i)));
      gradients_.push_back(matrices_.back());
      batch_.add(matrices_.back().data(), rows, cols, how);
      naive_.emplace_back(rows, cols, quintics(how));
      multiplications_ += linear::cost(linear::make_task(matrices_.back().data(), rows, cols, how));
      for (Optimizer* each : {&muon_, &elementwise_}) {
        each->add(fmt::format("w{}", i), {rows, cols}, matrices_.back().data(), gradients_.back().data());
      }
    }
    batch_.plan(threads);
  }

  void ours() {
    batch_.run([this](std::size_t count, const auto& body) { optim::parallel(options_, count, body); });
  }
  void naive() {
    for (std::size_t i = 0; i < naive_.size(); ++i) naive_[i].run(matrices_[i].data(), threads_);
  }
  void step() { muon_.step({.lr = 1e-3}); }
  // All of a Muon step but the factors, and one pass more: momentum, clipping that needs whole tensors, and Algorithm 1.
  void elementwise() { elementwise_.step({.lr = 1e-3}); }

  double naive_flops() const {
    double sum = 0;
    for (const NaivePolar& each : naive_) sum += each.flops();
    return sum;
  }
  double our_flops() const { return multiplications_; }

 private:
  static Recipe step_recipe(const Polar& how) {
    Recipe muon = recipe("muon");
    muon.rule = Muon{.polar = how};
    muon.decay = Cautious{};
    return muon;
  }

  static Recipe elementwise_recipe() {
    Recipe plain = recipe("sgdm");
    plain.decay = Cautious{};
    return plain;
  }
  static Options elementwise_options(int threads) { return {.update_rms_clip = 1e30, .threads = threads}; }

  int threads_;
  Options options_;
  Optimizer muon_, elementwise_;
  linear::Batch<float> batch_;
  std::vector<NaivePolar> naive_;
  std::vector<std::vector<float>> matrices_, gradients_;
  double multiplications_ = 0;
};

void measure(const std::vector<Shape>& shapes, PolarRow row, const PolarGrid& grid,
             const std::function<void(const PolarRow&)>& done) {
  Contest contest(shapes, grid.how, row.threads);
  Sgemm sgemm(1024);
  contest.ours();
  contest.naive();
  contest.step();
  contest.elementwise();
  std::vector<double> ours, naive, peak, step, ratio, rest;
  for (int round = 0; round < grid.rounds; ++round) {
    const auto often = [](double once, const std::function<void()>& run) {  // at least 20 ms
      const int times = std::max(1, static_cast<int>(0.02 / once));
      return seconds_of([&] {
               for (int i = 0; i < times; ++i) run();
             }) /
             times;
    };
    const double once = contest.naive_flops() / 1e11;
    ours.push_back(often(once, [&] { contest.ours(); }));
    naive.push_back(often(once, [&] { contest.naive(); }));
    step.push_back(often(once, [&] { contest.step(); }));
    peak.push_back(sgemm.flops() / 1e9 / often(sgemm.flops() / 1e11, [&] { sgemm.run(row.threads); }));
    ratio.push_back(naive.back() / ours.back());
    rest.push_back(often(once, [&] { contest.elementwise(); }) / step.back());
  }
  row.ms = median(ours) * 1e3;
  row.naive_ms = median(naive) * 1e3;
  row.speedup = median(ratio);
  row.sgemm_gflops = median(peak);
  row.effective_gflops = contest.naive_flops() / 1e9 / median(ours);
  row.bound = median(ours) / (contest.our_flops() / 1e9 / row.sgemm_gflops);
  row.elementwise = median(rest);
  done(row);
}

// GPT-2 small's matrices: 12 layers of fused QKV, projection and the two of the MLP.
std::vector<Shape> gpt2_matrices() {
  std::vector<Shape> shapes;
  for (int layer = 0; layer < 12; ++layer) {
    for (const Shape& shape : {Shape{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}) shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

void run_polar_grid(const PolarGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const PolarRow&)>& done) {
  const std::string schedule(name_of(grid.how.schedule));
  for (const Shape& shape : grid.sizes) {
    const double error = error_of(shape, grid.how);
    const double naive = NaivePolar(shape.first, shape.second, quintics(grid.how)).flops();
    const int many = std::clamp(static_cast<int>(2e11 / naive), 4, 64);  // some seconds
    for (const int threads : grid.threads) {
      for (const int count : {1, many}) {
        begin(fmt::format("{} of {} x {} on {} threads", count, shape.first, shape.second, threads));
        const PolarRow row{.rows = shape.first,
                           .cols = shape.second,
                           .count = count,
                           .threads = threads,
                           .schedule = schedule,
                           .error = error};
        measure(std::vector<Shape>(static_cast<std::size_t>(count), shape), row, grid, done);
      }
    }
  }
  if (!grid.gpt2) return;
  for (const int threads : grid.threads) {
    begin(fmt::format("GPT-2 small's matrices on {} threads", threads));
    const std::vector<Shape> shapes = gpt2_matrices();
    const double error = std::max({error_of(shapes[0], grid.how), error_of(shapes[1], grid.how), error_of(shapes[2], grid.how),
                                   error_of(shapes[3], grid.how)});
    const PolarRow row{.list = "gpt2-small",
                       .count = static_cast<int>(shapes.size()),
                       .threads = threads,
                       .schedule = schedule,
                       .error = error};
    PolarGrid fewer = grid;
    fewer.rounds = std::min(grid.rounds, 3);  // half a minute each
    measure(shapes, row, fewer, done);
  }
}

}  // namespace cautious::bench
