#include "cli/help.h"

#include <utility>

namespace cautious::cli {

ExamplesFirst::ExamplesFirst() {
  column_width(28);
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "VERB");
  label("REQUIRED", "(required)");
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

}  // namespace cautious::cli
