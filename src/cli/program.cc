#include "cli/program.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/one_line.h"

namespace cautious::cli {
namespace {

enum Exit { kDone = 0, kFailure = 1, kUsage = 2, kData = 3 };

int complain(int code, const std::string& message) {
  const std::string line = fmt::format("cautious: {}\n", one_line(message));
  std::fputs(line.c_str(), stderr);  // where that fails there is nobody to tell; the code still says it
  return code;
}

int show(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return kDone;
  return complain(kFailure, "cannot write to standard output");
}

int code_of(Fault fault) { return fault == Fault::usage ? kUsage : fault == Fault::data ? kData : kFailure; }

int run(int argc, char** argv, const char* examples, const std::function<void(CLI::App&, Verb&)>& add_verbs) {
  CLI::App app("Optimizers with cautious weight decay.", "cautious");
  app.formatter(std::make_shared<ExamplesFirst>());
  app.set_version_flag("--version", "cautious " CAUTIOUS_VERSION, "Print the version");
  app.set_help_flag("--help,-h", "Print this help");
  app.require_subcommand(1);
  Verb chosen;
  add_verbs(app, chosen);
  for (CLI::App* verb : app.get_subcommands({})) verb->group("Verbs");
  app.footer(examples);  // after the verbs, which would inherit it
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return show(app.help());
  } catch (const CLI::CallForVersion&) {
    return show("cautious " CAUTIOUS_VERSION "\n");
  } catch (const CLI::ParseError& error) {
    return complain(kUsage, explain(app, error) + next_command(app));
  }
  try {
    return chosen();
  } catch (const Error& error) {
    return complain(code_of(error.fault()), error.what() + (error.fault() == Fault::usage ? next_command(app) : ""));
  }
}

// A descriptor that the caller closed would be given to the next file that is opened, and messages written into that file.
void fill_closed_descriptors() {
  for (int file = 0; file <= 2; ++file) {
    if (fcntl(file, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDWR) < 0) std::_Exit(kFailure);
  }
}

}  // namespace

int run_program(int argc, char** argv, const char* examples, const std::function<void(CLI::App&, Verb&)>& add_verbs) {
  fill_closed_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond the limit is an error with a message
  try {
    return run(argc, argv, examples, add_verbs);
  } catch (const Interrupted& interrupted) {
    return complain(128 + interrupted.signal, "interrupted; nothing was written");
  } catch (const std::bad_alloc&) {
    return complain(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return complain(kFailure, error.what());
  }
}

}  // namespace cautious::cli
