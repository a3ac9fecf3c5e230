#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/program.h"

namespace cautious::cli {
namespace {

// Help texts with the examples first: a verb's footer() holds its examples. What an option goes with is said in words behind
// its meaning, so that its name and its value stand alone on the left.
class ExamplesFirst : public CLI::Formatter {
 public:
  ExamplesFirst();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App*) const override { return {}; }
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

constexpr std::size_t kColumn = 28;  // where meanings begin; share/manual.py reads it so
constexpr std::size_t kWidth = 120;  // of a line

// Lines that begin with spaces stay as they are; the others are one paragraph, in lines that fit beside the left column.
std::string folded(const std::string& text) {
  std::string result;
  std::size_t used = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ')) {
      result += fmt::format("\n{}", line);
      continue;
    }
    for (const base::Word& word : base::words_of(line)) {
      const bool fits = used + 1 + word.text.size() <= kWidth - kColumn;
      if (used > 0) result += fits ? ' ' : '\n';
      used = used > 0 && fits ? used + 1 + word.text.size() : word.text.size();
      result += word.text;
    }
  }
  return result;
}

ExamplesFirst::ExamplesFirst() {
  column_width(kColumn);
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "VERB");
}

std::string ExamplesFirst::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = Formatter::make_help(app, std::move(name), mode);
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n")) text.erase(at, 1);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string ExamplesFirst::make_description(const CLI::App* app) const {
  const std::string examples = app->get_footer();
  return app->get_description() + (examples.empty() ? "\n\n" : "\n\nExamples:\n" + examples + "\n\n");
}

bool takes_several(const CLI::Option& option) { return option.get_expected_max() > 1; }

std::string ExamplesFirst::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};
  std::string text = option->get_type_name().empty() ? "" : " " + option->get_type_name();
  if (option->get_positional() && takes_several(*option)) text += "...";
  return text + (option->get_required() ? " (required)" : "");
}

std::string listed(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* one : options) names.push_back(one->get_name());
  return base::join(names);
}

std::string ExamplesFirst::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_needs().empty()) text += fmt::format("; with {} only", listed(option->get_needs()));
  if (!option->get_excludes().empty()) text += fmt::format("; not with {}", listed(option->get_excludes()));
  if (!option->get_default_str().empty()) text += fmt::format(" (default: {})", option->get_default_str());
  return folded(text);
}

std::string ExamplesFirst::make_subcommand(const CLI::App* verb) const {
  std::string left = "  " + verb->get_display_name(true);
  left.resize(std::max(left.size() + 1, kColumn), ' ');
  std::string text = folded(verb->get_description());
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) text.insert(at + 1, kColumn, ' ');
  return left + text + "\n";
}

std::string ExamplesFirst::make_option_usage(const CLI::Option* option) const {
  const std::string text = make_option_name(option, true) + (takes_several(*option) ? "..." : "");
  return option->get_required() ? text : "[" + text + "]";
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<ExamplesFirst>(); }

}  // namespace cautious::cli
