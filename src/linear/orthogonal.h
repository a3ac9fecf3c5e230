// One matrix to its orthogonal factor: normalisation, Newton-Schulz steps in Gram form, scale.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cautious/polar.h>

#include "linear/pieces.h"

namespace cautious::linear {

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

}  // namespace cautious::linear
