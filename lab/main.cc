// The program `cautious-lab`, behind `cautious lab`: the paper's theory, run. Every verb prints its claims with their numbers
// and writes a page, figures, tables and data into a directory. The files are a function of the command line, so old ones are
// replaced.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "cli/program.h"
#include "lab/bound/bound.h"
#include "lab/dynamics/dynamics.h"
#include "lab/experiment.h"
#include "lab/fixedpoint/fixedpoint.h"
#include "lab/toy_arguments.h"

namespace cautious::lab {
namespace {

using cli::Verb;

constexpr const char* kExamples =
    "  cautious lab all --out lab\n"
    "  cautious lab toy circle --start 4.6,4.2 --out local_front\n"
    "  cautious lab dynamics --trials 50 --out dynamics";

constexpr Range kSeed{0, 1e9, false, false}, kTrials{1, 10000, false, false};

using Runs = std::vector<std::function<Experiment(const Progress&)>>;

[[noreturn]] void refuse(const std::filesystem::path& out, const std::string& why) {
  throw Error(Fault::failure,
              fmt::format("cannot write into {}: {}; give --out another directory", base::in_quotes(out.string()), why));
}

// Before anything is computed: the directory or the nearest one above it that exists can be written to.
void check_directory(const std::filesystem::path& out) {
  if (out.empty()) throw Error(Fault::usage, "--out is empty; give a directory");
  std::error_code fault;
  auto above = std::filesystem::absolute(out, fault);
  while (!fault && !std::filesystem::exists(above, fault) && !fault && above != above.parent_path())
    above = above.parent_path();
  if (fault) refuse(out, fault.message());
  if (!std::filesystem::is_directory(above, fault)) refuse(out, base::in_quotes(above.string()) + " is not a directory");
  if (access(above.c_str(), W_OK) != 0) refuse(out, std::generic_category().message(errno));
}

void make_directory(const std::filesystem::path& out) {
  std::error_code fault;
  std::filesystem::create_directories(out, fault);
  if (fault) refuse(out, fault.message());
}

// Nothing is written before everything has been computed.
int run(const Runs& runs, const std::filesystem::path& out) {
  check_directory(out);
  const cli::Interruptible interruptible;
  std::vector<Experiment> experiments;
  {
    base::LiveLine line(base::LiveLine::Style::automatic);
    const auto total = static_cast<double>(runs.size());
    for (const auto& one : runs) {
      const auto before = static_cast<double>(experiments.size());
      experiments.push_back(one([&](double done, std::string_view what) {
        interruptible.check();
        line.show_fraction((before + done) / total, std::string(what));
      }));
    }
  }
  make_directory(out);
  write(experiments, out);
  std::string text;
  for (const Experiment& experiment : experiments) text += terminal_text(experiment) + "\n";
  text += (out / "report.html").string() + "\n";
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error(Fault::failure, "cannot write to standard output");
  }
  return 0;
}

// A verb with its --out, and numbers by name that are read when it runs.
struct LabVerb {
  CLI::App* app;
  std::shared_ptr<std::string> out = std::make_shared<std::string>();
  std::shared_ptr<std::map<std::string, std::string>> words = std::make_shared<std::map<std::string, std::string>>();

  LabVerb(CLI::App& parent, const char* name, const char* help) : app(parent.add_subcommand(name, help)) {
    app->add_option("--out", *out, "Directory for report.html, figures (.svg), tables (.csv) and data; made if missing")
        ->required()
        ->type_name("DIR");
  }

  void number(const std::string& name, const std::string& what, double usual, const Range& range) const {
    app->add_option_function<std::string>(
           "--" + name, [words = words, name](const std::string& text) { (*words)[name] = text; },
           fmt::format("{}; valid: {} (default: {})", what, to_string(range), base::to_text(usual)))
        ->type_name("NUMBER");
  }

  std::int64_t integer(const std::string& name, std::int64_t usual, const Range& range) const {
    const auto at = words->find(name);
    return at == words->end() ? usual : base::to_integer(name, at->second, range);
  }
};

DynamicsOptions dynamics_options(const LabVerb& verb) {
  DynamicsOptions options;
  options.seed = static_cast<std::uint64_t>(verb.integer("seed", 0, kSeed));
  options.trials = static_cast<std::size_t>(verb.integer("trials", static_cast<std::int64_t>(options.trials), kTrials));
  return options;
}

void add_dynamics(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "dynamics",
                     "Table 1 in continuous time: Lyapunov functions, sliding mode, and the remarks of appendix D.");
  verb.app->footer("  cautious lab dynamics --out dynamics\n  cautious lab dynamics --trials 50 --seed 1 --out more");
  const DynamicsOptions usual;
  verb.number("trials", "Random problems and starts per system", static_cast<double>(usual.trials), kTrials);
  verb.number("seed", "Of the random problems", 0, kSeed);
  verb.app->callback([verb, &chosen] {
    chosen = [verb] {
      const auto options = dynamics_options(verb);
      return run({[options](const Progress& progress) { return run_dynamics(options, progress); }}, *verb.out);
    };
  });
}

void add_fixedpoint(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "fixedpoint", "Section 2.2 and appendix C: which problem does each optimizer solve?");
  verb.app->footer("  cautious lab fixedpoint --out fixedpoint\n  cautious lab fixedpoint --steps 50000 --out more");
  const FixedpointOptions usual;
  verb.number("steps", "Steps of every arm", static_cast<double>(usual.steps), kFixedpointSteps);
  verb.number("seed", "Of the random problems", 0, kSeed);
  verb.app->callback([verb, &chosen] {
    chosen = [verb] {
      FixedpointOptions options;
      options.steps = verb.integer("steps", options.steps, kFixedpointSteps);
      options.seed = static_cast<std::uint64_t>(verb.integer("seed", 0, kSeed));
      return run({[options](const Progress& progress) { return run_fixedpoint(options, progress); }}, *verb.out);
    };
  });
}

void add_bound(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "bound", "Theorem 1: the convergence rate of Adam + CWD, its constants and its lemmas.");
  verb.app->footer("  cautious lab bound --out bound\n  cautious lab bound --seeds 256 --out more");
  const BoundOptions usual;
  verb.number("seeds", "Runs per estimate of the left side", static_cast<double>(usual.seeds), kBoundSeeds);
  verb.number("seed", "Of the first run", 0, kSeed);
  verb.app->callback([verb, &chosen] {
    chosen = [verb] {
      BoundOptions options;
      options.seeds = static_cast<std::size_t>(verb.integer("seeds", static_cast<std::int64_t>(options.seeds), kBoundSeeds));
      options.seed = static_cast<std::uint64_t>(verb.integer("seed", 0, kSeed));
      return run({[options](const Progress& progress) { return run_bound(options, progress); }}, *verb.out);
    };
  });
}

void add_toy(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "toy", "Some arms on a function whose minimisers form a curve or more: where do they end?");
  const auto arguments = std::make_shared<ToyArguments>();
  arguments->add_to(*verb.app);
  verb.app->callback([verb, arguments, &chosen] {
    chosen = [verb, arguments] {
      const auto study = arguments->read();
      return run({[&](const Progress& progress) { return study(progress); }}, *verb.out);
    };
  });
}

void add_all(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "all", "All of them with their defaults, on one page.");
  verb.app->footer("  cautious lab all --out lab");
  verb.app->callback([verb, &chosen] {
    chosen = [verb] {
      return run({[](const Progress& progress) { return ToyArguments().read()(progress); },
                  [](const Progress& progress) { return run_dynamics({}, progress); },
                  [](const Progress& progress) { return run_fixedpoint({}, progress); },
                  [](const Progress& progress) { return run_bound({}, progress); }},
                 *verb.out);
    };
  });
}

void add_lab(CLI::App& app, Verb& chosen) {
  CLI::App& lab = *app.add_subcommand("lab", cli::kLabLine);
  lab.footer(kExamples);
  lab.require_subcommand(1);
  add_toy(lab, chosen);
  add_dynamics(lab, chosen);
  add_fixedpoint(lab, chosen);
  add_bound(lab, chosen);
  add_all(lab, chosen);
}

}  // namespace
}  // namespace cautious::lab

int main(int argc, char** argv) {
  return cautious::cli::run_program(argc, argv, cautious::lab::kExamples, cautious::lab::add_lab);
}
