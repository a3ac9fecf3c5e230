#include "cli/program.h"

#include <fcntl.h>

#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "linear/blas.h"
#include "run/provenance.h"

namespace cautious::cli {
namespace {

volatile std::sig_atomic_t last_signal = 0;

extern "C" void note(int signal) {
  last_signal = signal;
  std::signal(signal, SIG_DFL);
}

void on_signals(void (*act)(int)) {
  std::signal(SIGINT, act);
  std::signal(SIGTERM, act);
  if (std::signal(SIGHUP, act) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

enum Exit { kDone = 0, kFailure = 1, kUsage = 2, kData = 3 };

int complain(int code, const std::string& message) {
  base::tell(base::error_line(one_line(message)));
  return code;
}

int show(const std::string& text) {
  base::print(text);
  return kDone;
}

int run(int argc, char** argv, const char* examples, const std::function<void(CLI::App&, Verb&)>& add_verbs) {
  CLI::App app("Train neural networks with cautious weight decay, and find out whether it helps.", "cautious");
  app.formatter(help_format());
  app.set_version_flag("--version", "cautious " CAUTIOUS_VERSION, "Print the version");
  app.set_help_flag("--help,-h", "Print this help");
  app.require_subcommand(1);
  Verb chosen;
  add_verbs(app, chosen);
  for (CLI::App* verb : app.get_subcommands({})) verb->group("Verbs");
  app.footer(examples);  // after the verbs, which would inherit it
  try {
    std::vector<std::string> arguments = spelled(app, argc, argv);
    std::ranges::reverse(arguments);  // as the parser takes them
    if (argc == 1) return show(app.help());
    app.parse(std::move(arguments));
  } catch (const Error& error) {
    return complain(kUsage, error.what());
  } catch (const CLI::CallForHelp&) {
    return show(app.help());
  } catch (const CLI::CallForVersion&) {
    const run::Provenance here = run::provenance();
    return show(fmt::format("cautious " CAUTIOUS_VERSION "\ncommit {}, {}, {}\n", here.git, here.compiler, blas_text()));
  } catch (const CLI::ParseError& error) {
    return complain(kUsage, explain(app, error));
  }
  try {
    return chosen();
  } catch (const Error& error) {
    return complain(code_of(error.fault()), explain(app, error));
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
  name_lost_files();
  std::signal(SIGPIPE, SIG_IGN);  // a run is saved first, and messages that nobody reads change nothing
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond the limit is an error with a message
  try {
    return run(argc, argv, examples, add_verbs);
  } catch (const Interrupted& interrupted) {
    return complain(128 + interrupted.signal, "interrupted; " + interrupted.left);
  } catch (const std::bad_alloc&) {
    return complain(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return complain(kFailure, error.what());
  }
}

int code_of(Fault fault) { return fault == Fault::usage ? kUsage : fault == Fault::data ? kData : kFailure; }

std::string blas_text() {
  const std::string all = linear::blas_name();
  return all.substr(0, all.find(' ', std::min(all.find(' '), all.size() - 1) + 1));
}

std::string one_line(std::string_view text) { return base::printable(text.substr(0, text.find_last_not_of("\n ") + 1)); }

std::string machine_line() {
  const run::Provenance here = run::provenance();
  return fmt::format("{}, {} cores, compiler {}", here.cpu, here.cores, here.compiler);
}

BenchRows::BenchRows(bool json, const std::string& head) : json_(json), live_(isatty(STDERR_FILENO) != 0) {
  if (!json) fmt::print("{}\n", head);
}

BenchRows::~BenchRows() {
  if (live_) base::tell("\033[K");
}

void BenchRows::measuring(const std::string& what) const {
  if (live_) base::tell(fmt::format("measuring {}\033[K\r", what));
}

void BenchRows::print(const std::string& json, const std::string& line) const {
  fmt::print("{}\n", json_ ? json : line);
  std::fflush(stdout);
}

Interruptible::Interruptible() {
  last_signal = 0;
  on_signals(note);
}

Interruptible::~Interruptible() { on_signals(SIG_DFL); }

int Interruptible::noted() const { return static_cast<int>(last_signal); }

void Interruptible::check() const {
  if (noted() != 0) throw Interrupted{.signal = noted()};
}

}  // namespace cautious::cli
