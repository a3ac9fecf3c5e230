// Another program, started without a shell and waited for. It ends when this process does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cautious::base {

struct Command {
  std::vector<std::string> words;  // the program, found on the PATH, and its arguments
  std::filesystem::path folder;    // where it runs
  std::filesystem::path output;    // gets its standard output; empty: nobody does
};

struct Outcome {
  bool done = false;   // it ran and ended with 0
  std::string reason;  // otherwise: its own words about an error, or why it could not start
};

// An output that cannot be written is an Error(Fault::failure).
Outcome run(const Command& command);

}  // namespace cautious::base
