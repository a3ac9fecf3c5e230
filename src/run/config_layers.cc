// toml++ parses; from here on a value is a ConfigValue and knows its line.
#include "run/config_layers.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <toml++/toml.h>

#include "base/text.h"
#include "run/config_keys.h"

namespace cautious::run {
namespace {

using Kind = ConfigValue::Kind;

std::string text_of(const toml::node& number) {
  if (const auto* whole = number.as_integer()) return fmt::format("{}", whole->get());
  return base::to_text(number.as_floating_point()->get());
}

ConfigValue value_of(const toml::array& array) {
  ConfigValue result{Kind::strings};
  if (array.empty() || array.is_homogeneous<std::string>()) {
    for (const toml::node& item : array) result.items.push_back(item.as_string()->get());
    return result;
  }
  const bool numeric = std::all_of(array.begin(), array.end(), [](const toml::node& item) { return item.is_number(); });
  if (!numeric) return {Kind::other, "an array of different things"};
  std::vector<std::string> numbers;
  for (const toml::node& item : array) numbers.push_back(text_of(item));
  return {Kind::numbers, fmt::format("{}", fmt::join(numbers, ","))};
}

ConfigValue value_of(const toml::node& node) {
  if (node.is_number()) return {Kind::number, text_of(node)};
  if (const auto* boolean = node.as_boolean()) return {Kind::boolean, boolean->get() ? "true" : "false"};
  if (const auto* string = node.as_string()) return {Kind::string, string->get()};
  if (const auto* array = node.as_array()) return value_of(*array);
  return {Kind::other, node.is_table() ? "a table" : "a date or a time"};
}

std::string line_of(const std::string& file, const toml::node& node) {
  return fmt::format("{}:{}", file, node.source().begin.line);
}

// The parser's words may repeat the file's.
std::string words_of(const toml::parse_error& error) {
  constexpr std::size_t kLongest = 200;
  std::string words(error.description().substr(0, kLongest));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::replace_if(words.begin(), words.end(), is_control, ' ');
  return words;
}

[[noreturn]] void refuse_syntax(std::string_view where, const toml::parse_error& error) {
  const toml::source_position at = error.source().begin;
  throw Error(Fault::usage, fmt::format("{}:{}:{}: not TOML: {}", where, at.line, at.column, words_of(error)));
}

// Collects the values of a section and of the sections in it.
void collect(std::vector<Assignment>& all, const std::string& file, const std::string& prefix, const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const auto& sections = config_sections();
    const bool is_section = std::find(sections.begin(), sections.end(), name) != sections.end();
    if (const auto* inner = node.as_table(); inner && is_section) {
      collect(all, file, name + ".", *inner);
    } else if (inner) {
      throw Error(Fault::usage, fmt::format("{}: {}", line_of(file, node), base::unknown("section", name, sections)));
    } else if (is_section) {
      throw Error(Fault::usage, fmt::format("{}: {} is a section, not a value; write [{}] on a line of its own, then its keys",
                                            line_of(file, node), name, name));
    } else {
      all.push_back({Layer::file, line_of(file, node), name, value_of(node)});
    }
  }
}

std::string content_of(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Fault::usage, fmt::format("{}: cannot read the configuration: {}", file.string(), why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) refuse("is a directory");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(std::generic_category().message(errno));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) refuse(std::generic_category().message(errno));
  return text;
}

}  // namespace

std::string what_of(const Assignment& assignment) {
  if (assignment.layer == Layer::command_line) return assignment.place;
  return fmt::format("{}: {}", assignment.place, assignment.name);
}

std::string place_of(const Assignment& assignment) {
  return assignment.layer == Layer::command_line ? "command line" : assignment.place;
}

std::vector<Assignment> read_file(const std::filesystem::path& file) {
  std::vector<Assignment> all;
  const std::string name = file.string(), text = content_of(file);
  try {
    collect(all, name, "", toml::parse(text, name));
  } catch (const toml::parse_error& error) {
    refuse_syntax(name, error);
  }
  return all;
}

std::vector<Assignment> read_command_line(const ConfigSource& source) {
  std::vector<Assignment> all;
  if (!source.preset.empty()) all.push_back({Layer::command_line, "--preset", "model.preset", {Kind::typed, source.preset}});
  for (const auto& [name, text] : source.overrides) {
    if (name == "model.preset" && !source.preset.empty() && text != source.preset) {
      throw Error(Fault::usage, fmt::format("--preset is {} and --model.preset is {}; give one of them",
                                            base::in_quotes(source.preset), base::in_quotes(text)));
    }
    all.push_back({Layer::command_line, "--" + name, name, {Kind::typed, text}});
  }
  return all;
}

ConfigValue toml_value(std::string_view what, std::string_view text) {
  try {
    const toml::table table = toml::parse(fmt::format("value = {}", text));
    return value_of(*table.get("value"));
  } catch (const toml::parse_error& error) {
    throw Error(Fault::usage, fmt::format("{} is {}, not TOML: {}", what, base::in_quotes(text), words_of(error)));
  }
}

}  // namespace cautious::run
