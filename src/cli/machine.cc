#include "cli/machine.h"

#include <fmt/format.h>

#include "run/provenance.h"

namespace cautious::cli {

std::string machine_line() {
  const run::Provenance here = run::provenance();
  return fmt::format("{}, {} cores, compiler {}", here.cpu, here.cores, here.compiler);
}

}  // namespace cautious::cli
