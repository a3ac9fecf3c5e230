// A command line before the parser sees it, and what is said about a wrong one.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>
#include "base/text.h"
#include "cli/program.h"
#include "run/config_table.h"

namespace cautious::cli {
namespace {

const CLI::App& deepest(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.back());
}

// Every "--name" of the verb.
std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> result;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) result.push_back("--" + name);
  }
  return result;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> result;
  for (const CLI::App* verb : app.get_subcommands({})) result.push_back(verb->get_name());
  return result;
}

std::vector<std::string_view> views(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

std::string suggestion(std::string_view text, const std::vector<std::string>& choices) {
  const std::string_view meant = base::closest(text, views(choices));
  return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
}

// The first argument that the parser had no use for, an option before a positional one.
std::string first_extra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& text) { return text.starts_with("-"); });
  return option != extras.end() ? *option : extras.empty() ? "" : extras.front();
}

// "cautious bench train".
std::string command_of(const CLI::App& verb) {
  const CLI::App* const above = verb.get_parent();
  return above == nullptr ? verb.get_name() : command_of(*above) + " " + verb.get_name();
}

// The message and "see 'cautious replay --help'" for the verb.
std::string with_help(const std::string& message, const CLI::App& verb) {
  return fmt::format("{}{} see '{} --help'", message, message.ends_with('?') ? "" : ";", command_of(verb));
}

[[noreturn]] void refuse(const std::string& message, const CLI::App& verb) {
  throw Error(Fault::usage, with_help(message, verb));
}

// The parser's message about a value, in our words.
std::string conversion(const std::string& message) {
  constexpr std::string_view kStart = "Could not convert: ";
  if (message.find("At Most 1 required") != message.npos) return message.substr(0, message.find(':')) + " is given twice";
  if (!message.starts_with(kStart)) return message;
  const std::string rest = message.substr(kStart.size());
  const std::size_t equal = rest.find(" = ");
  if (equal == rest.npos) return message;
  const std::string value = rest.substr(equal + 3);
  const auto number = base::parsed<double>(value);
  const char* const fault = !number ? "not a number" : std::floor(*number) != *number ? "not a whole number" : "out of range";
  return fmt::format("{} is {}, {}", rest.substr(0, equal), base::in_quotes(value), fault);
}

// The first argument of the verb that is missing according to the message, though it may be what an option of many values has
// taken; otherwise the message.
std::string with_taken(const std::string& message, const CLI::App& verb) {
  const auto options = verb.get_options();
  const auto missing = std::ranges::find_if(options, [&](const CLI::Option* option) {
    return option->get_positional() && option->count() == 0 && message.starts_with(option->get_name() + " is ");
  });
  const auto taker = std::ranges::find_if(options, [](const CLI::Option* option) {
    return !option->get_positional() && option->get_delimiter() == '\0' && option->results().size() > 1;
  });
  if (missing == options.end() || taker == options.end()) return message;
  const std::vector<std::string> taken = (*taker)->results();
  const std::string option = (*taker)->get_name(), name = (*missing)->get_name();
  std::string line = fmt::format("{} {} {}", command_of(verb), base::shell_word(taken.back()), option);
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) line += " " + base::shell_word(taken[i]);
  return fmt::format("{} is missing, or {} has taken {} too; write {} first, as in: {}", name, option,
                     base::in_quotes(taken.back()), name, line);
}

// A failed parse: an unknown option with a suggestion, otherwise the parser's own message.
std::string why(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = deepest(app);
  if (error.get_name() == "ArgumentMismatch" || error.get_name() == "ConversionError")
    return conversion(one_line(error.what()));
  const std::string extra = first_extra(app);
  if (extra.starts_with("-")) {
    const std::string option = extra.substr(0, extra.find('='));
    return fmt::format("unknown option {}{}", base::in_quotes(option), suggestion(option, options_of(verb)));
  }
  if (!extra.empty()) return fmt::format("unexpected argument {}", base::in_quotes(extra));
  const std::vector<std::string> verbs = verbs_of(verb);
  if (!verbs.empty()) return fmt::format("which verb? choices: {}", base::join(verbs));
  return with_taken(conversion(one_line(error.what())), verb);
}

// The name with - for _, by which options are equal.
std::string hyphenated(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

// The verb's own spelling of an option "--name"; empty: it has none.
std::string option_named(const std::string& name, const CLI::App& verb) {
  const std::vector<std::string> names = options_of(verb);
  const auto same = std::ranges::find(names, hyphenated(name), hyphenated);
  return same == names.end() ? "" : *same;
}

// The verb of that name below another one; null where there are none, an Error where there are others.
const CLI::App* verb_below(const CLI::App& above, const std::string& name) {
  const std::vector<std::string> names = verbs_of(above);
  if (names.empty()) return nullptr;
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) refuse(base::unknown("verb", name, views(names)), above);
  return above.get_subcommands({})[static_cast<std::size_t>(found - names.begin())];
}

// ~/ as a shell expands it, which does not look behind the = of --out=~/runs/a.
std::string at_home(const std::string& value) {
  const char* const home = std::getenv("HOME");
  return home != nullptr && (value == "~" || value.starts_with("~/")) ? home + value.substr(1) : value;
}

// 1e3 as 1000, which all whole numbers of options are read from; any other text as it is.
std::string in_digits(const std::string& text) {
  if (base::parsed<std::int64_t>(text) || !base::parsed<double>(text)) return text;
  try {
    return std::to_string(run::to_whole("", {.text = text}, {-0x1p63, 0x1p63, false, true}));
  } catch (const Error&) {
    return text;
  }
}

// Without the blanks around it, unless a file is named so.
std::string trimmed(const std::string& item) {
  constexpr const char* kBlanks = " \t";
  const std::size_t first = item.find_first_not_of(kBlanks);
  std::error_code error;
  if (first == item.npos || std::filesystem::exists(item, error)) return item;
  return item.substr(first, item.find_last_not_of(kBlanks) - first + 1);
}

// What commas separate.
std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  for (const auto item : std::views::split(list, ',')) items.push_back(trimmed(std::string(item.begin(), item.end())));
  return items;
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The value of an option as its verb reads it.
std::string value_of(const CLI::Option& option, const std::string& value) {
  constexpr std::array<std::string_view, 4> kNumbers{"N", "NUMBER", "NUMBERS", "RANKS"};
  std::vector<std::string> items = option.get_delimiter() == '\0' ? std::vector{value} : items_of(value);
  if (is_one_of(kNumbers, option.get_type_name())) std::ranges::transform(items, items.begin(), in_digits);
  return fmt::format("{}", fmt::join(items, ","));
}

constexpr std::array<std::string_view, 4> kLists{"data.path", "data.val_path", "eval.tasks", "lora.targets"};
constexpr std::array<std::string_view, 4> kTexts{"log.command", "log.prompt", "objective.name", "objective.unit"};

// The value of a key as the key reads it: a list without the blanks around its items, and paths below ~.
std::string value_of(std::string_view key, const std::string& value) {
  const bool is_list = is_one_of(kLists, key) || key == "data.weights" || key.ends_with(".coefficients");
  if (!is_list) return is_one_of(kTexts, key) ? value : at_home(value);
  if (value.starts_with('[')) return value;
  std::vector<std::string> items = items_of(value);
  std::ranges::transform(items, items.begin(), at_home);
  return fmt::format("{}", fmt::join(items, ","));
}

// "--name" or "--name=value" with the name as the verb or a configuration spells it.
std::string with_own_name(const std::string& argument, const CLI::App& verb) {
  const std::size_t equal = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, equal);
  if (name.find('.') != name.npos) {
    std::replace(name.begin() + 2, name.end(), '-', '_');
  } else if (const std::string own = option_named(name, verb); !own.empty()) {
    name = own;
    if (equal + 1 == argument.size()) refuse(fmt::format("{} is empty; give it a value", name), verb);
    if (equal < argument.size()) {
      const CLI::Option& option = *verb.get_option(name);
      const std::string value = argument.substr(equal + 1), type = option.get_type_name();
      const bool is_text = type == "TEXT" || type == "LINE";  // where ~/ may be what is meant
      return fmt::format("{}={}", name, value_of(option, is_text ? value : at_home(value)));
    }
  }
  return name + argument.substr(equal);
}

// The verb's option of that name, if it takes a value.
const CLI::Option* option_with_value(const std::string& name, const CLI::App& verb) {
  const CLI::Option* const option = verb.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_min() > 0 ? option : nullptr;
}

bool is_option(const std::string& argument, const CLI::App& verb) {
  return argument.starts_with("--") || (argument.starts_with("-") && verb.get_option_no_throw(argument) != nullptr);
}

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
  const CLI::Option* taker = nullptr;  // of further values
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    std::string& argument = arguments[i];
    if (!argument.starts_with("-")) {
      if (const CLI::App* const below = verb_below(*verb, argument)) verb = below;
      if (taker != nullptr) argument = value_of(*taker, argument);
      continue;
    }
    taker = nullptr;
    if (argument.starts_with("--")) argument = with_own_name(argument, *verb);
    const CLI::Option* const option = option_with_value(argument, *verb);
    if (option == nullptr) continue;
    if (++i == arguments.size() || is_option(arguments[i], *verb)) {
      refuse(fmt::format("{0} has no value; write {0}={1}", argument, option->get_type_name()), *verb);
    }
    arguments[i] = value_of(*option, arguments[i]);
    if (option->get_items_expected_max() > 1) taker = option;
  }
  return arguments;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) { return with_help(why(app, error), deepest(app)); }

std::string explain(const CLI::App& app, const Error& error) {
  const CLI::App& verb = deepest(app);
  std::string message = error.what();
  const std::string& name = error.where().empty() ? error.key() : error.where();
  if (const std::string option = option_named("--" + name, verb); !option.empty() && message.starts_with(name)) {
    message.replace(0, name.size(), option);
  }
  constexpr std::string_view kCache = "data.cache";  // which some verbs have as an option of their own
  if (const std::size_t at = message.find(kCache); at != message.npos && !option_named("--cache", verb).empty()) {
    message.replace(at, kCache.size(), "--cache");
  }
  return error.fault() == Fault::usage ? with_help(with_taken(message, verb), verb) : message;
}

std::vector<std::pair<std::string, std::string>> settings_in(const CLI::App& verb) {
  const std::vector<std::string> arguments = verb.remaining();
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string word = argument.substr(0, argument.find('='));
    if (!word.starts_with("--") || word.find('.') == std::string::npos) {
      if (const std::string key = word.starts_with("--") ? meant_key(word) : ""; !key.empty()) {
        throw Error(Fault::usage, fmt::format("no option named '{}'; did you mean '--{}'?", word, key));
      }
      throw Error(Fault::usage, argument.starts_with("-") ? base::unknown("option", word, views(options_of(verb)))
                                                          : fmt::format("unexpected argument {}", base::in_quotes(argument)));
    }
    const std::size_t equal = argument.find('=');
    if (equal == std::string::npos && (i + 1 == arguments.size() || arguments[i + 1].starts_with("--"))) {
      throw Error(Fault::usage, fmt::format("{0} has no value; write {0}=VALUE", argument));
    }
    const std::string key = argument.substr(2, equal == std::string::npos ? equal : equal - 2);
    const std::string value = value_of(key, equal == std::string::npos ? arguments[++i] : argument.substr(equal + 1));
    const auto before = std::ranges::find(result, key, &std::pair<std::string, std::string>::first);
    if (before != result.end() && is_one_of(kLists, key)) {  // of others the last decides
      throw Error(Fault::usage,
                  fmt::format("--{} is given twice; several values are one list: --{}={},{}", key, key, before->second, value));
    }
    result.emplace_back(key, value);
  }
  return result;
}

}  // namespace cautious::cli
