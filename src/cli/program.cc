#include "cli/program.h"

#include <fcntl.h>

#include <unistd.h>
#include <algorithm>
#include <array>
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
#include "run/config.h"
#include "run/provenance.h"

namespace cautious::cli {
namespace {

const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

// Every "--name" of the verb, and its own verbs.
std::vector<std::string> names_in(const CLI::App& app, bool options) {
  std::vector<std::string> result;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) result.push_back("--" + name);
    }
  } else {
    for (const CLI::App* verb : app.get_subcommands({})) result.push_back(verb->get_name());
  }
  return result;
}

std::string suggestion(std::string_view text, const std::vector<std::string>& choices) {
  const std::vector<std::string_view> views(choices.begin(), choices.end());
  const std::string_view meant = base::closest(text, views);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'", meant);
}

// The first argument that the parser had no use for, an option before a positional one.
std::string first_extra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& text) { return text.starts_with("-"); });
  return option != extras.end() ? *option : extras.empty() ? "" : extras.front();
}

// "; see 'cautious replay --help'" for the verb.
std::string see_help(const CLI::App& verb) {
  std::string name;
  for (const CLI::App* at = &verb; at != nullptr; at = at->get_parent()) name = at->get_name() + " " + name;
  return fmt::format("; see '{}--help'", name);
}

// The same for the one that the command line got to.
std::string next_command(const CLI::App& app) { return see_help(deepest(app)); }

// The parser's message about a value, in our words.
std::string conversion(const std::string& message) {
  constexpr std::string_view kStart = "Could not convert: ";
  if (message.find("At Most 1 required") != message.npos) return message.substr(0, message.find(':')) + " is given twice";
  if (!message.starts_with(kStart)) return message;
  const std::string rest = message.substr(kStart.size());
  const std::size_t equal = rest.find(" = ");
  return equal == rest.npos
             ? message
             : fmt::format("{} is {}, not a number", rest.substr(0, equal), base::in_quotes(rest.substr(equal + 3)));
}

// A failed parse: an unknown option or verb with a suggestion, otherwise the parser's own message.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = deepest(app);
  if (error.get_name() == "ArgumentMismatch" || error.get_name() == "ConversionError")
    return conversion(one_line(error.what()));
  const std::string extra = first_extra(app);
  const std::vector<std::string> verbs = names_in(verb, false);
  if (extra.starts_with("-")) {
    const std::string option = extra.substr(0, extra.find('='));
    return fmt::format("unknown option {}{}", base::in_quotes(option), suggestion(option, names_in(verb, true)));
  }
  if (!extra.empty() && !verbs.empty())
    return base::unknown("verb", extra, std::vector<std::string_view>(verbs.begin(), verbs.end()));
  if (!extra.empty()) return fmt::format("unexpected argument {}", base::in_quotes(extra));
  if (!verbs.empty()) return fmt::format("which verb? choices: {}", base::join(verbs));
  return conversion(one_line(error.what()));
}

// The name with - for _, by which options are equal.
std::string hyphenated(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// Options are found whether they are written with - or _; keys of a configuration have _. `--name=` and `help VERB` are what
// they look like.
std::vector<std::string> spelled(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && arguments[0] == "version") arguments[0] = "--version";
  const CLI::App* verb = &app;
  for (std::string& argument : arguments) {
    if (!argument.starts_with("--")) {
      const auto verbs = verb->get_subcommands({});
      const auto found = std::ranges::find(verbs, argument, [](const CLI::App* one) { return one->get_name(); });
      if (found != verbs.end()) verb = *found;
      continue;
    }
    if (argument == "--") break;
    const std::size_t equal = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(0, equal);
    if (name.find('.') != name.npos) {
      std::replace(name.begin() + 2, name.end(), '-', '_');
    } else {
      const std::vector<std::string> names = names_in(*verb, true);
      const auto same = std::ranges::find(names, hyphenated(name), hyphenated);
      if (same != names.end()) name = *same;
      if (same != names.end() && equal + 1 == argument.size()) {
        throw Error(Fault::usage, fmt::format("{} is empty; give it a value{}", name, see_help(*verb)));
      }
    }
    argument.replace(0, equal, name);
  }
  return arguments;
}

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
  name_lost_files();
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

namespace {

// The key of a run that an option without its section may have meant: --lr, --optimizer, --train-steps. Empty: none.
std::string meant_key(const std::string& word) {
  const std::string name = hyphenated(word).substr(std::min<std::size_t>(2, word.size()));
  if (name == "optimizer") return "optimizer.name";
  if (name == "data") return "data.path";
  const std::vector<run::ConfigKey> keys = run::config_keys({});
  for (const char* const section : {"optimizer", "train", "data", "schedule", "model", "eval"}) {
    for (const run::ConfigKey& known : keys) {
      if (hyphenated(known.name) == fmt::format("{}.{}", section, name)) return known.name;
    }
  }
  for (const run::ConfigKey& known : keys) {
    std::string flat = hyphenated(known.name);
    std::ranges::replace(flat, '.', '-');
    if (flat == name) return known.name;
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_in(const CLI::App& verb) {
  const std::vector<std::string> arguments = verb.remaining();
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string word = argument.substr(0, argument.find('='));
    if (!word.starts_with("--") || word.find('.') == std::string::npos) {
      std::vector<std::string> names;
      for (const CLI::Option* option : verb.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      }
      const std::vector<std::string_view> choices(names.begin(), names.end());
      if (const std::string key = word.starts_with("--") ? meant_key(word) : ""; !key.empty()) {
        throw Error(Fault::usage, fmt::format("no option named '{}'; did you mean '--{}'", word, key));
      }
      throw Error(Fault::usage, argument.starts_with("-") ? base::unknown("option", word, choices)
                                                          : fmt::format("unexpected argument {}", base::in_quotes(argument)));
    }
    const std::size_t equal = argument.find('=');
    if (equal == std::string::npos && i + 1 == arguments.size()) {
      throw Error(Fault::usage, fmt::format("{} has no value; write {}=VALUE", base::in_quotes(argument), argument));
    }
    const std::string value = equal == std::string::npos ? arguments[++i] : argument.substr(equal + 1);
    const std::string key = argument.substr(2, equal == std::string::npos ? equal : equal - 2);
    const auto before = std::ranges::find(result, key, &std::pair<std::string, std::string>::first);
    constexpr std::array<std::string_view, 4> kLists{"data.path", "data.val_path", "eval.tasks", "lora.targets"};
    if (before != result.end() && std::ranges::find(kLists, key) != kLists.end()) {  // of others the last decides
      throw Error(Fault::usage,
                  fmt::format("--{} is given twice; several values are one list: --{}={},{}", key, key, before->second, value));
    }
    result.emplace_back(key, value);
  }
  return result;
}

std::string blas_text() {
  const std::string all = linear::blas_name();
  return all.substr(0, all.find(' ', std::min(all.find(' '), all.size() - 1) + 1));
}

std::string one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

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
