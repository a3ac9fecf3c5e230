// The built-in problems, one function per kind.
#pragma once

#include <vector>

#include "lab/problem/problem.h"

namespace cautious::lab {

// Of two variables: circle, parabola, surface, rosenbrock.
std::vector<Problem> plane_problems();

// Of matrices: least-squares, deep-linear, factorisation.
std::vector<Problem> matrix_problems();

}  // namespace cautious::lab
