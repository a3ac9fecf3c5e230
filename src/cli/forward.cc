#include "cli/verbs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

namespace cautious::cli {

std::filesystem::path sibling_program(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path();
  for (const std::filesystem::path& place : {folder / name, folder / "../libexec/cautious" / name}) {
    if (std::filesystem::exists(place, error)) return place;
  }
  const char* const cure = name == "cautious-train" ? "this build has no libtorch: install libtorch-dev and build again with "
                                                      "-DCAUTIOUS_TORCH=ON"
                                                    : "build again with 'make build'";
  throw Error(Fault::failure, fmt::format("{} is not next to {}; {}", name, self.string(), cure));
}

void add_forwarded(CLI::App& parent, const char* verb_name, const char* line, const char* program, Verb& chosen, char** argv) {
  CLI::App* verb = parent.add_subcommand(verb_name, line);
  verb->prefix_command();
  verb->set_help_flag();
  verb->callback([&chosen, argv, program] {
    chosen = [argv, program]() -> int {
      const std::string path = sibling_program(program).string();
      // Threads that wait give way soon: on a shared machine, spinning ones take the cores from those that work.
      if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "3000", 0);
      execv(path.c_str(), argv);
      throw Error(Fault::failure, fmt::format("cannot start {}: {}", path, std::strerror(errno)));
    };
  });
}

}  // namespace cautious::cli
