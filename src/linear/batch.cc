#include "linear/orthogonal.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "linear/multiply.h"

namespace cautious::linear {
namespace {

// What is left of a thread's speed when all work on one matrix.
constexpr double kTogether = 0.85;

// The time of the tasks from `first` on when each goes to the thread that is free first.
template <class T>
double time_apart(const std::vector<Task<T>>& tasks, std::size_t first, int threads) {
  std::vector<double> busy(static_cast<std::size_t>(threads));
  for (std::size_t i = first; i < tasks.size(); ++i) *std::min_element(busy.begin(), busy.end()) += cost(tasks[i]);
  return *std::max_element(busy.begin(), busy.end());
}

}  // namespace

template <class T>
void Batch<T>::plan(int threads) {
  if (!tasks_.empty()) have_rooms<T>(threads);
  std::stable_sort(tasks_.begin(), tasks_.end(), [](const auto& a, const auto& b) { return cost(a) > cost(b); });
  shared_ = 0;
  double best = time_apart(tasks_, 0, threads), together = 0;
  const std::size_t most = std::min(tasks_.size(), static_cast<std::size_t>(threads));
  for (std::size_t i = 1; i <= most && threads > 1; ++i) {
    if (tasks_[i - 1].steps.empty()) break;  // a singular value decomposition is done by one thread
    together += cost(tasks_[i - 1]) / (kTogether * threads);
    const double time = together + time_apart(tasks_, i, threads);
    if (time < best) {
      best = time;
      shared_ = i;
    }
  }
  const std::size_t lanes = std::min(tasks_.size() - shared_, static_cast<std::size_t>(threads));
  scratch_.resize(std::max<std::size_t>(lanes, 1));
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    for (std::size_t lane = 0; lane < (i < shared_ ? 1 : scratch_.size()); ++lane) {
      scratch_[lane].resize(std::max(scratch_[lane].size(), scratch_size(tasks_[i])));
    }
  }
}

template <class T>
void Batch<T>::run(const Run& parallel) {
  const Pieces together{parallel};
  for (std::size_t i = 0; i < shared_; ++i) orthogonalise(together, tasks_[i], std::span(scratch_.front()));

  const Pieces whole;
  std::atomic<std::size_t> next = shared_;
  const auto lane = [&](std::size_t thread) {
    for (std::size_t i = next++; i < tasks_.size(); i = next++) orthogonalise(whole, tasks_[i], std::span(scratch_[thread]));
  };
  if (shared_ < tasks_.size()) parallel(scratch_.size(), std::cref(lane));
}

template class Batch<float>;
template class Batch<double>;

}  // namespace cautious::linear
