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
#include "cli/program.h"
#include "cli/verbs.h"
#include "lab/bound/bound.h"
#include "lab/dynamics/dynamics.h"
#include "lab/experiment.h"
#include "lab/fixedpoint/fixedpoint.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

using cli::Verb;

constexpr const char* kExamples =
    "  cautious lab all --out lab\n"
    "  cautious lab toy circle --start 4.6,4.2 --out local_front\n"
    "  cautious lab dynamics --trials 50 --out dynamics";

constexpr Range kSeed{0, 1e9, false, false};

using Runs = std::vector<std::function<Experiment(const Progress&)>>;

[[noreturn]] void refuse(const std::filesystem::path& out, const std::string& why, Fault fault = Fault::failure) {
  throw Error(fault, fmt::format("cannot write into {}: {}; give --out another directory", base::in_quotes(out.string()), why));
}

// Before anything is computed: the directory or the nearest one above it that exists can be written to.
void check_directory(const std::filesystem::path& out) {
  if (out.empty()) throw Error(Fault::usage, "--out is empty; give a directory");
  std::error_code fault;
  auto above = std::filesystem::absolute(out, fault);
  while (!fault && !std::filesystem::exists(above, fault) && !fault && above != above.parent_path())
    above = above.parent_path();
  if (fault) refuse(out, fault.message());
  if (!std::filesystem::is_directory(above, fault))
    refuse(out, base::in_quotes(above.string()) + " is not a directory", Fault::usage);
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
  const std::string text = terminal_text(experiments) + "\n" + (out / "report.html").string() + "\n";
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

// An experiment with two options: a count, and a seed.
template <class Options, class Count>
struct Counted {
  const char *name, *help, *footer;
  const char *count_name, *count_help;
  Count Options::*count;
  Range range;
  const char* seed_help;
  Experiment (*run)(const Options&, const Progress&);
};

template <class Options, class Count>
void add(CLI::App& parent, Verb& chosen, const Counted<Options, Count>& one) {
  const LabVerb verb(parent, one.name, one.help);
  verb.app->footer(one.footer);
  verb.number(one.count_name, one.count_help, static_cast<double>(Options{}.*one.count), one.range);
  verb.number("seed", one.seed_help, 0, kSeed);
  verb.app->callback([verb, one, &chosen] {
    chosen = [verb, one] {
      Options options;
      Count& count = options.*one.count;
      count = static_cast<Count>(verb.integer(one.count_name, static_cast<std::int64_t>(count), one.range));
      options.seed = static_cast<std::uint64_t>(verb.integer("seed", 0, kSeed));
      return run({[one, options](const Progress& progress) { return one.run(options, progress); }}, *verb.out);
    };
  });
}

constexpr Counted<DynamicsOptions, std::size_t> kDynamics{
    .name = "dynamics",
    .help = "Table 1 in continuous time: Lyapunov functions, sliding mode, and the remarks of appendix D.",
    .footer = "  cautious lab dynamics --out dynamics\n  cautious lab dynamics --trials 50 --seed 1 --out more",
    .count_name = "trials",
    .count_help = "Random problems and starts per system",
    .count = &DynamicsOptions::trials,
    .range = {1, 10000, false, false},
    .seed_help = "Seed of the random problems",
    .run = run_dynamics};

constexpr Counted<FixedpointOptions, std::int64_t> kFixedpoint{
    .name = "fixedpoint",
    .help = "Section 2.2 and appendix C: which problem does each optimizer solve?",
    .footer = "  cautious lab fixedpoint --out fixedpoint\n  cautious lab fixedpoint --steps 50000 --out more",
    .count_name = "steps",
    .count_help = "Steps of every arm",
    .count = &FixedpointOptions::steps,
    .range = kFixedpointSteps,
    .seed_help = "Seed of the random problems",
    .run = run_fixedpoint};

constexpr Counted<BoundOptions, std::size_t> kBound{
    .name = "bound",
    .help = "Theorem 1: the convergence rate of Adam + CWD, its constants and its lemmas.",
    .footer = "  cautious lab bound --out bound\n  cautious lab bound --seeds 256 --out more",
    .count_name = "seeds",
    .count_help = "Runs per estimate of the left side",
    .count = &BoundOptions::seeds,
    .range = kBoundSeeds,
    .seed_help = "Seed of the first run",
    .run = run_bound};

void add_toy(CLI::App& parent, Verb& chosen) {
  const LabVerb verb(parent, "toy", "Some arms on a function whose minimisers form a curve or a surface: where do they end?");
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
  add(lab, chosen, kDynamics);
  add(lab, chosen, kFixedpoint);
  add(lab, chosen, kBound);
  add_all(lab, chosen);
}

}  // namespace

}  // namespace cautious::lab

int main(int argc, char** argv) {
  return cautious::cli::run_program(argc, argv, cautious::lab::kExamples, cautious::lab::add_lab);
}
