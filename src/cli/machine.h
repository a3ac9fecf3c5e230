// The machine in a line, for the heads of benchmarks.
#pragma once

#include <string>

namespace cautious::cli {

// CPU, cores, compiler.
std::string machine_line();

}  // namespace cautious::cli
