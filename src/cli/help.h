// Help texts with the examples first: a verb's footer() holds its examples.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace cautious::cli {

class ExamplesFirst : public CLI::Formatter {
 public:
  ExamplesFirst();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App*) const override { return {}; }
};

}  // namespace cautious::cli
