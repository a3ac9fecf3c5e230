// A function to minimise, with derivatives, as the experiments take it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/numbers.h"

namespace cautious::lab {

// A part of x as an optimizer sees it; Muon needs matrices.
struct ProblemTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

struct Problem {
  std::string name, title;
  std::string formula;                 // of f, as shown
  std::string file;                    // that it came from; empty for the named ones
  std::vector<ProblemTensor> tensors;  // their entries, one tensor after the other and row after row, are x
  Point start;                         // of the usual run
  std::optional<double> least;         // the minimum of f, where it is known
  double view_low = 0, view_high = 1;  // what a picture of a problem of two variables shows on both axes

  std::function<double(PointView x)> value;
  std::function<void(PointView x, std::span<double> g)> gradient;
  std::function<void(PointView x, Matrix& h)> hessian;  // sized by the function; symmetric

  std::size_t size() const { return start.size(); }
};

// The named problems: circle, parabola, surface, rosenbrock, least-squares, deep-linear, factorisation.
const std::vector<Problem>& problems();

// An unknown name is an Error with a suggestion.
const Problem& problem(std::string_view name);

Point gradient(const Problem& problem, PointView x);
Matrix hessian(const Problem& problem, PointView x);

// Throws an Error (Fault::usage) unless x has the problem's size and x, f(x) and its gradient are finite; `what` names x in it.
void check_point(const Problem& problem, std::string_view what, PointView x);

// A problem from a TOML file:
//   f     = "(x1*x2 - 4)^2 + 0.1*(x3 - x1)^2"   # formula, expression.h
//   start = [5.0, 0.5, 2.0]
//   title = "Saddle"                            # optional, as are: least = 0.0, view = [0.0, 6.0]
// Without a view it holds 0 and the start. The name is the file's without its ending, and so is the title if there is none.
// Anything wrong is an Error (Fault::usage) "FILE:LINE:COLUMN: what, found, valid"; in a formula the column is the character's.
Problem read_problem(const std::filesystem::path& file);

}  // namespace cautious::lab
