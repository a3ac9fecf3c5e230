// The verbs of cautious-train.
#pragma once

#include "cli/verbs.h"

namespace cautious::cli {

void add_train(CLI::App& app, Verb& chosen);
void add_sample(CLI::App& app, Verb& chosen);
void add_eval(CLI::App& app, Verb& chosen);
void add_bench_train(CLI::App& bench, Verb& chosen);

}  // namespace cautious::cli
