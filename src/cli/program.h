// What all programs have in common: parsing, help, one line per error, exit codes, signals.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "cli/verbs.h"

namespace CLI {
class FormatterBase;
class ParseError;
}  // namespace CLI

namespace cautious::cli {

// Builds the command line with `add_verbs` and `examples`, parses it and runs the chosen verb. Returns the exit code:
// 0 done, 1 the machine failed, 2 the command line, 3 the data, 130/143 interrupted.
int run_program(int argc, char** argv, const char* examples, const std::function<void(CLI::App&, Verb&)>& add_verbs);

// The arguments as the parser knows them (parse.cc); a verb that does not exist and an option without its value are Errors.
std::vector<std::string> spelled(const CLI::App& app, int argc, char** argv);
// What is said when that or a verb fails: an option by the name that is typed, "--lr is '0'", and where help is.
std::string explain(const CLI::App& app, const CLI::ParseError& error);
std::string explain(const CLI::App& app, const Error& error);

// How help is laid out (help.cc).
std::shared_ptr<CLI::FormatterBase> help_format();

// The exit code of an Error.
int code_of(Fault fault);

// From now on, a file that is cut short while its memory is read ends the process with a line that names it (lost_file.cc).
void name_lost_files();

// What is left of a verb's arguments, keys of a run: --section.key=value or --section.key value. Anything else is an Error.
std::vector<std::pair<std::string, std::string>> settings_in(const CLI::App& verb);

// The text without line breaks or other control characters.
std::string one_line(std::string_view text);

// Which BLAS multiplies matrices, and its version: "OpenBLAS 0.3.21".
std::string blas_text();

// CPU, cores and compiler, for the heads of benchmarks.
std::string machine_line();

// The rows of a benchmark as they are measured: lines of JSON, or a table under its head. On a terminal, what is being measured
// meanwhile.
class BenchRows {
 public:
  BenchRows(bool json, const std::string& head);
  ~BenchRows();
  BenchRows(const BenchRows&) = delete;
  BenchRows& operator=(const BenchRows&) = delete;

  void measuring(const std::string& what) const;
  void print(const std::string& json, const std::string& line) const;  // one of them

 private:
  bool json_, live_;
};

struct Interrupted {
  int signal;  // the exit code is 128 + this
  std::string left = "nothing was written";
};

// Ctrl-C, SIGTERM and a closed terminal (SIGHUP, unless it is ignored, as under nohup) between steps, so that nothing half-done
// is left behind: while one exists, the signals are noted instead of ending the process; a second one ends it.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  int noted() const;   // the signal that has come, 0 if none
  void check() const;  // throws Interrupted if one has
};

}  // namespace cautious::cli
