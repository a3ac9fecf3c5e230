// `cautious lab toy`: the paper's toy experiment, drawn and written to a directory. The files are a function of the command
// line, so old ones are replaced; each appears complete or not at all.
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "cli/toy_picture.h"
#include "cli/verbs.h"
#include "io/atomic_file.h"
#include "lab/toy.h"
#include "lab/toy_text.h"
#include "recipe/names.h"

namespace cautious::cli {
namespace {

constexpr const char* kToyExamples =
    "  cautious lab toy --out toy\n"
    "  cautious lab toy circle --start 4.6,4.2 --out local_front\n"
    "  cautious lab toy parabola --weight_decay 0.4 --lr 0.005 --steps 8000 --out slow";

constexpr std::array<std::string_view, 3> kObjectives{"circle", "parabola", "all"};

struct Arguments {
  std::string objective = "all", out;
  std::map<std::string, std::string, std::less<>> words;  // the options that were given

  const std::string* find(std::string_view option) const {
    const auto at = words.find(option);
    return at == words.end() ? nullptr : &at->second;
  }
};

ToyPoint point(const std::string& text) {
  const auto comma = text.find(',');
  if (comma == std::string::npos || text.find(',', comma + 1) != std::string::npos) {
    throw Error(Fault::usage, fmt::format("start is {}, not a point; valid: two numbers of {} as X,Y", in_quotes(text),
                                          to_string(kToyStart)));
  }
  return {to_number("start x", text.substr(0, comma), kToyStart), to_number("start y", text.substr(comma + 1), kToyStart)};
}

ToyOptions options_of(const Arguments& args) {
  ToyOptions options;
  if (const auto* text = args.find("lr")) options.lr = to_number("lr", *text, kToyLr);
  if (const auto* text = args.find("weight_decay")) options.weight_decay = to_number("weight_decay", *text, kToyWeightDecay);
  if (const auto* text = args.find("beta1")) options.beta1 = to_number("beta1", *text, kMomentum);
  if (const auto* text = args.find("beta2")) options.beta2 = to_number("beta2", *text, kMomentum);
  if (const auto* text = args.find("eps")) options.eps = to_number("eps", *text, kFraction);
  if (const auto* text = args.find("steps")) options.steps = to_integer("steps", *text, kToySteps);
  if (const auto* text = args.find("schedule")) options.schedule = named<ScheduleKind>("schedule", *text);
  if (const auto* text = args.find("start")) options.start = point(*text);
  check(options);
  return options;
}

void make_directory(const std::filesystem::path& out) {
  std::error_code fault;
  std::filesystem::create_directories(out, fault);
  if (!std::filesystem::is_directory(out)) {
    const auto reason = fault ? fault.message() : "it is not a directory";
    throw Error(Fault::failure, fmt::format("cannot write into {}: {}", in_quotes(out.string()), reason));
  }
}

int run(const Arguments& args) {
  const auto chosen = kObjectives[index_of_name("toy objective", args.objective, kObjectives)];
  const ToyOptions options = options_of(args);
  const std::filesystem::path out(args.out);
  if (out.empty()) throw Error(Fault::usage, "--out is empty; give a directory");
  std::vector<ToyStudy> studies;
  for (const ToyObjective& objective : toy_objectives()) {
    if (chosen == "all" || chosen == objective.name) studies.push_back(run_toy(objective, options));
  }
  make_directory(out);
  io::write_atomically(out / "toy.csv", toy_csv(studies));
  io::write_atomically(out / "toy.json", toy_json(studies));
  io::write_atomically(out / "toy.svg", to_svg(toy_picture(studies)));

  std::string report = toy_table(studies) + "\n";
  for (const ToyStudy& study : studies) report += in_words(study) + "\n";
  report += fmt::format("\n{}\n", (out / "toy.svg").string());
  if (std::fputs(report.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error(Fault::failure, "cannot write to standard output");
  }
  return 0;
}

}  // namespace

void add_lab(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<Arguments>();
  CLI::App& lab = *app.add_subcommand("lab", "Small experiments of the paper.");
  lab.footer(kToyExamples);
  lab.require_subcommand(1);
  CLI::App& toy = *lab.add_subcommand("toy", "Adam, AdamW and Adam + CWD on two functions whose minimisers form a curve.");
  toy.footer(kToyExamples);
  toy.add_option("OBJECTIVE", args->objective, join(kObjectives) + " (default: all)")->type_name("");
  toy.add_option("--out", args->out, "Directory for toy.svg, toy.csv and toy.json; made if missing")
      ->required()
      ->type_name("DIR");
  const ToyOptions usual;
  const auto option = [&](const std::string& name, const char* type, const std::string& help) {
    const auto note = [words = &args->words, name](const std::string& text) { (*words)[name] = text; };
    toy.add_option_function<std::string>("--" + name, note, help)->type_name(type);
  };
  const auto number = [&](const std::string& name, const std::string& what, double value, const Range& range) {
    option(name, "NUMBER", fmt::format("{}; valid: {} (default: {})", what, to_string(range), to_text(value)));
  };
  number("lr", "Learning rate at its peak", usual.lr, kToyLr);
  number("weight_decay", "Of AdamW and CWD; the box is 1 over it", usual.weight_decay, kToyWeightDecay);
  number("beta1", "Coefficient of the first moment", usual.beta1, kMomentum);
  number("beta2", "Coefficient of the second moment", usual.beta2, kMomentum);
  number("eps", "Added to the denominator", usual.eps, kFraction);
  number("steps", "Steps of every arm", static_cast<double>(usual.steps), kToySteps);
  option("schedule", "NAME", join(names_of(ScheduleKind{})) + " (default: cosine)");
  option("start", "X,Y", "Where all arms start (default: the objective's own)");
  toy.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
