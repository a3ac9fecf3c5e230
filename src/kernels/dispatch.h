// Chooses the kernels for this CPU.
#pragma once

#include <vector>

#include <cautious/optimizer.h>

#include "kernels/kernels.h"

namespace cautious::kernels {

// Instruction sets that this CPU has and this build contains, slowest first.
std::vector<Isa> available();

// The kernels of an instruction set; best honours the environment variable CAUTIOUS_ISA. An Error if the CPU lacks it.
const Kernels& kernels_for(Isa isa);

}  // namespace cautious::kernels
