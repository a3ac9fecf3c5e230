// Matrices to their orthogonal factors: normalisation, Newton-Schulz steps in Gram form, scale.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cautious/polar.h>

#include "linear/products.h"

namespace cautious::linear {

// What a named Newton-Schulz schedule divides by before its steps.
enum class Start {
  norm,  // the Frobenius norm times a factor
  rows,  // each row (of the short side) by the root of its row sum of |X X^T|: the "almost orthogonal" preconditioner
};

struct Beginning {
  Start start = Start::norm;
  double factor = 1;
};

Beginning beginning(NewtonSchulz schedule);

// What the orthogonal factor is multiplied by.
double shape_factor(MatrixScale scale, double rows, double cols);

// A rows x cols matrix without gaps and how to treat it.
template <class T>
struct Task {
  T* data;
  int rows, cols;
  const Polar* how;
  std::vector<Quintic> steps;
  std::vector<int> runs;  // of steps between two looks at the matrix itself
};

template <class T>
Task<T> make_task(T* data, int rows, int cols, const Polar& how);

// How many numbers of scratch memory a task needs.
template <class T>
std::size_t scratch_size(const Task<T>& task);

// Multiplications and additions, about.
template <class T>
double cost(const Task<T>& task);

template <class T>
void orthogonalise(const Pieces& pieces, const Task<T>& task, std::span<T> scratch);

// Many matrices: one per thread where there are enough, all threads on one where there are not. Scratch memory is kept from
// call to call.
template <class T>
class Batch {
 public:
  // `how` must outlive the batch.
  void add(T* data, int rows, int cols, const Polar& how) { tasks_.push_back(make_task(data, rows, cols, how)); }
  // After the last add: who does what, and memory for it.
  void plan(int threads);
  // `parallel` runs pieces on that many threads.
  void run(const Run& parallel);
  bool empty() const { return tasks_.empty(); }

 private:
  std::vector<Task<T>> tasks_;           // the dearest first
  std::size_t shared_ = 0;               // of them, those that all threads do together
  std::vector<std::vector<T>> scratch_;  // per thread
};

}  // namespace cautious::linear
