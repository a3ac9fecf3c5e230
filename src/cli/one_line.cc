#include "cli/one_line.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"

namespace cautious::cli {
namespace {

const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

// Every "--name" of the verb, and its own verbs.
std::vector<std::string> words(const CLI::App& app, bool options) {
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

std::string suggestion(std::string_view word, const std::vector<std::string>& choices) {
  const std::vector<std::string_view> views(choices.begin(), choices.end());
  const std::string_view meant = base::closest(word, views);
  return meant.empty() ? "" : fmt::format("; did you mean '{}'", meant);
}

// The first word that the parser had no use for, an option before a positional one.
std::string first_extra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& word) { return word.starts_with("-"); });
  return option != extras.end() ? *option : extras.empty() ? "" : extras.front();
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

std::string next_command(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = &deepest(app); at != nullptr; at = at->get_parent()) name = at->get_name() + " " + name;
  return fmt::format("; see '{}--help'", name);
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = deepest(app);
  const std::string extra = first_extra(app);
  const std::vector<std::string> verbs = words(verb, false);
  if (extra.starts_with("-")) {
    const std::string option = extra.substr(0, extra.find('='));
    return fmt::format("no option {}{}", base::in_quotes(option), suggestion(option, words(verb, true)));
  }
  if (!extra.empty() && !verbs.empty())
    return base::unknown("verb", extra, std::vector<std::string_view>(verbs.begin(), verbs.end()));
  if (!extra.empty()) return fmt::format("one argument too many: {}", base::in_quotes(extra));
  if (!verbs.empty()) return fmt::format("which verb? choices: {}", base::join(verbs));
  return one_line(error.what());
}

}  // namespace cautious::cli
