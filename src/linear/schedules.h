// What a named Newton-Schulz schedule divides by before its steps.
#pragma once

#include <cautious/polar.h>

namespace cautious::linear {

enum class Start {
  norm,  // the Frobenius norm times a factor
  rows,  // each row (of the short side) by the root of its row sum of |X X^T|: the "almost orthogonal" preconditioner
};

struct Beginning {
  Start start = Start::norm;
  double factor = 1;
};

Beginning beginning(NewtonSchulz schedule);

}  // namespace cautious::linear
