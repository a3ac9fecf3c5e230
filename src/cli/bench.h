// What the verbs of `cautious bench` share.
#pragma once

#include "cli/verbs.h"

namespace cautious::cli {

void add_bench_polar(CLI::App& bench, Verb& chosen);

}  // namespace cautious::cli
