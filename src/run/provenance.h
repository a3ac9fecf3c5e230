// Where numbers come from: program, compiler, machine.
#pragma once

#include <string>

namespace cautious::run {

struct Provenance {
  std::string version;   // "0.1.0"
  std::string git;       // commit of the sources, "-dirty" where they differ from it; "unknown" outside a repository
  std::string compiler;  // "GCC 12.2.0"
  std::string cpu;       // model name
  int cores;
};

Provenance provenance();

}  // namespace cautious::run
