// What both programs have in common: parsing, help, one line per error, exit codes.
#pragma once

#include <functional>

#include "cli/verbs.h"

namespace cautious::cli {

// Builds the command line with `add_verbs` and `examples`, parses it and runs the chosen verb. Returns the exit code:
// 0 done, 1 the machine failed, 2 the command line, 3 the data, 130/143 interrupted.
int run_program(int argc, char** argv, const char* examples, const std::function<void(CLI::App&, Verb&)>& add_verbs);

}  // namespace cautious::cli
