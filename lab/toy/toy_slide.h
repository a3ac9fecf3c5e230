// Why does the trajectory not stop on reaching the Pareto set? Runs at a constant learning rate on the near arc of the circle,
// which is Pareto-optimal, set against a prediction of their motion along it.
#pragma once

#include "lab/experiment.h"

namespace cautious::lab {

Section why_it_slides_on(double weight_decay);

}  // namespace cautious::lab
