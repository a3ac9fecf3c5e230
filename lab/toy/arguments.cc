// The command line of `cautious lab toy`.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/text.h"
#include "lab/problem/problem.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr const char* kToyExamples =
    "  cautious lab toy --out toy\n"
    "  cautious lab toy circle --start 4.6,4.2 --out local_front\n"
    "  cautious lab toy parabola --arm \"lion decay=cautious\" --arm \"sgdm decay=cautious lr=0.002\" --out arms\n"
    "  cautious lab toy mine.toml --out mine     # f = \"(x1*x2 - 4)^2\"  start = [5.0, 0.5]";

std::vector<std::string_view> choices() {
  std::vector<std::string_view> names{"all"};
  for (const Problem& problem : problems()) names.emplace_back(problem.name);
  return names;
}

// A name, or a file: whatever exists or looks like a path.
std::vector<Problem> problems_of(const std::string& word) {
  if (word == "all") return problems();
  const auto names = choices();
  if (std::find(names.begin(), names.end(), word) != names.end()) return {problem(word)};
  if (word.find_first_of("/.") != std::string::npos || std::filesystem::exists(word)) return {read_problem(word)};
  throw Error(Fault::usage, base::unknown("toy problem", word, names) + ", or a file such as mine.toml");
}

// The character of the word that cannot be read counts from 1.
Point point(const std::string& text) {
  Point x;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    x.push_back(base::to_number(fmt::format("start x{} (character {})", x.size() + 1, from + 1),
                                text.substr(from, comma - from), kToyStart));
    from = comma + 1;
  }
  return x;
}

}  // namespace

void ToyArguments::add_to(CLI::App& app) {
  app.footer(kToyExamples);
  const auto names = choices();
  app.add_option("PROBLEM", problem_,
                 fmt::format("Function; valid: {}; or a file with f and start (default: all)",
                             base::join(std::span<const std::string_view>(names))))
      ->type_name("");
  const ToyOptions usual;
  const auto option = [&](const std::string& name, const char* type, const std::string& help) {
    app.add_option_function<std::string>(
           "--" + name, [this, name](const std::string& text) { words_[name] = text; }, help)
        ->type_name(type);
  };
  const auto number = [&](const std::string& name, const std::string& what, double value, const Range& range) {
    option(name, "NUMBER", fmt::format("{}; valid: {} (default: {})", what, to_string(range), base::to_text(value)));
  };
  app.add_option("--arm", arms_,
                 "A recipe and its fields, lr among them: \"adamw decay=cautious\"; once per arm (default: Adam, AdamW, Adam + "
                 "CWD; for matrices Muon too)")
      ->type_name("RECIPE")
      ->allow_extra_args(false);
  number("lr", "Learning rate at its peak", usual.lr, kToyLr);
  number("weight_decay", "Weight decay of the arms that decay; the box is 1 over it", usual.weight_decay, kToyWeightDecay);
  number("beta1", "Coefficient of the first moment of the usual arms", usual.beta1, kMomentum);
  number("beta2", "Coefficient of the second moment of the usual arms", usual.beta2, kMomentum);
  number("eps", "Added to the denominator by the usual arms", usual.eps, kFraction);
  number("steps", "Steps of every arm", static_cast<double>(usual.steps), kToySteps);
  option("schedule", "NAME",
         fmt::format("Course of the learning rate; valid: {} (default: cosine)", base::join(names_of(ScheduleKind{}))));
  option("start", "X1,X2,...", "Start of all arms (default: the problem's own)");
}

std::function<Experiment(const Progress&)> ToyArguments::read() const {
  const auto find = [&](std::string_view name) -> const std::string* {
    const auto at = words_.find(name);
    return at == words_.end() ? nullptr : &at->second;
  };
  const std::vector<Problem> problems = problems_of(problem_);
  ToyOptions options;
  if (const auto* text = find("lr")) options.lr = base::to_number("lr", *text, kToyLr);
  if (const auto* text = find("weight_decay")) {  // 0 has a message of its own
    options.weight_decay = *text == "0" ? 0 : base::to_number("weight_decay", *text, kToyWeightDecay);
  }
  if (const auto* text = find("beta1")) options.beta1 = base::to_number("beta1", *text, kMomentum);
  if (const auto* text = find("beta2")) options.beta2 = base::to_number("beta2", *text, kMomentum);
  if (const auto* text = find("eps")) options.eps = base::to_number("eps", *text, kFraction);
  if (const auto* text = find("steps")) options.steps = base::to_integer("steps", *text, kToySteps);
  if (const auto* text = find("schedule")) options.schedule = base::named<ScheduleKind>("schedule", *text);
  if (const auto* text = find("start")) {
    if (problems.size() > 1)
      throw Error(Fault::usage, "start needs one problem; name it: cautious lab toy circle --start " + *text);
    options.start = point(*text);
  }
  for (const char* name : {"beta1", "beta2", "eps"}) {
    if (const auto* text = find(name); text != nullptr && !arms_.empty()) {
      throw Error(Fault::usage,
                  fmt::format("{0} is for the usual arms; write it into the arm: --arm \"adamw {0}={1}\"", name, *text));
    }
  }
  options.arms = parse_arms(arms_, options.weight_decay);
  for (const Problem& problem : problems) check(problem, options);
  std::string arguments;
  for (const auto& [name, text] : words_) arguments += fmt::format(" --{} {}", name, in_shell_quotes(text));
  for (const std::string& arm : arms_) arguments += fmt::format(" --arm {}", in_shell_quotes(arm));
  return [problems, options, arguments](const Progress& progress) {
    return toy_experiment(problems, options, arguments, progress);
  };
}

}  // namespace cautious::lab
