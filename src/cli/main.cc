// The program `cautious`: one verb per file, data on stdout, messages on stderr. Every error is one line, and the exit code
// tells whose turn it is: 0 done, 1 the machine failed, 2 the command line, 3 the data, 130/143 interrupted.
#include <cstdio>
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
#include "cli/verbs.h"

namespace {

using namespace cautious;
using namespace cautious::cli;

enum Exit { kDone = 0, kFailure = 1, kUsage = 2, kData = 3 };

constexpr const char* kExamples =
    "  cautious replay trace.safetensors --optimizer adamw --decay cautious --lr 1e-3 --out out.safetensors\n"
    "  cautious lab toy --out toy\n"
    "  cautious bench step --json\n"
    "  cautious replay --help";

int complain(int code, const std::string& message) {
  fmt::print(stderr, "cautious: {}\n", one_line(message));
  return code;
}

int show(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return kDone;
  return complain(kFailure, "cannot write to standard output");
}

int code_of(Fault fault) { return fault == Fault::usage ? kUsage : fault == Fault::data ? kData : kFailure; }

int run(int argc, char** argv) {
  CLI::App app("Optimizers with cautious weight decay.", "cautious");
  app.formatter(std::make_shared<ExamplesFirst>());
  app.set_version_flag("--version", "cautious " CAUTIOUS_VERSION, "Print the version");
  app.set_help_flag("--help,-h", "Print this help");
  app.require_subcommand(1);
  Verb chosen;
  add_replay(app, chosen);
  add_lab(app, chosen);
  add_bench(app, chosen);
  for (CLI::App* verb : app.get_subcommands({})) verb->group("Verbs");
  app.footer(kExamples);  // after the verbs, which would inherit it
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

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Interrupted& interrupted) {
    return complain(128 + interrupted.signal, "interrupted; nothing was written");
  } catch (const std::bad_alloc&) {
    return complain(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return complain(kFailure, error.what());
  }
}
