// The claims of the paper's captions and of section 2.2, each set against the end points of a study.
#pragma once

#include <vector>

#include "lab/experiment.h"
#include "lab/toy/toy.h"

namespace cautious::lab {

// One claim per arm, worded by its rule and decay.
std::vector<Claim> toy_claims(const ToyStudy& study);

}  // namespace cautious::lab
