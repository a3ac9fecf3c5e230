#include "cli/engine_verbs.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

namespace cautious::cli {

std::filesystem::path engine_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = self.parent_path();
  for (const std::filesystem::path& place : {folder / "cautious-engine", folder / "../libexec/cautious/cautious-engine"}) {
    if (std::filesystem::exists(place, error)) return place;
  }
  throw Error(Fault::failure,
              fmt::format("cautious-engine is not beside {}; this build is without libtorch: install libtorch-dev "
                          "and build again with -DCAUTIOUS_TORCH=ON",
                          self.string()));
}

void forward_engine_verbs(CLI::App& app, Verb& chosen, char** argv) {
  const auto forward = [&chosen, argv](CLI::App& parent, const char* name, const char* line) {
    CLI::App* verb = parent.add_subcommand(name, line);
    verb->prefix_command();
    verb->set_help_flag();
    verb->callback([&chosen, argv] {
      chosen = [argv]() -> int {
        const std::string path = engine_program().string();
        execv(path.c_str(), argv);
        throw Error(Fault::failure, fmt::format("cannot start {}: {}", path, std::strerror(errno)));
      };
    });
  };
  forward(app, "train", kTrainLine);
  forward(app, "sample", kSampleLine);
  forward(app, "eval", kEvalLine);
  forward(*app.get_subcommand("bench"), "train", kBenchTrainLine);
}

}  // namespace cautious::cli
