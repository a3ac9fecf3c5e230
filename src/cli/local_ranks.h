// Ranks of one run on this machine, as torchrun would start them.
#pragma once

#include <string>
#include <vector>

namespace cautious::cli {

// A port of 127.0.0.1 that nobody has now.
int free_port();
std::vector<std::string> environment_of_rank(int rank, int ranks, int port);
// The exit code that a shell shows for a status of waitpid().
int code_of_status(int status);

}  // namespace cautious::cli
