// A problem from a TOML file:
//   f     = "(x1*x2 - 4)^2 + 0.1*(x3 - x1)^2"   # formula, expression.h
//   start = [5.0, 0.5, 2.0]
//   title = "Saddle"                            # optional, as are: least = 0.0, view = [0.0, 6.0]
// Without a view it holds 0 and the start. The name is the file's without its ending, and so is the title if there is none.
// Anything wrong is an Error (Fault::usage) "FILE:LINE:COLUMN: what, found, valid"; in a formula the column is the character's.
#pragma once

#include <filesystem>

#include "lab/problem/problem.h"

namespace cautious::lab {

Problem read_problem(const std::filesystem::path& file);

}  // namespace cautious::lab
