// What the verbs of `cautious bench` share.
#pragma once

#include <string>

#include "cli/verbs.h"

namespace cautious::cli {

// CPU, cores, compiler.
std::string machine_line();

void add_bench_polar(CLI::App& bench, Verb& chosen);

}  // namespace cautious::cli
