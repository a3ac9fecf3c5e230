// The namespace that formulas are compiled into: each instruction set has its own, so that the linker never merges a function
// built for one CPU with the same function built for another. Code outside src/kernels sees `portable`.
#pragma once

#ifndef CAUTIOUS_ISA
#define CAUTIOUS_ISA portable
#endif
