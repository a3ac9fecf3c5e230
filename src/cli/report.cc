// `cautious report`: the report of a study or run, written into its directory.
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/terminal.h"
#include "cli/verbs.h"
#include "study/report.h"

namespace cautious::cli {

void add_report(CLI::App& app, Verb& chosen) {
  auto directory = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand("report", "Write the report of a study or run: report.html, figures and tables.");
  verb.footer(
      "  cautious report studies/adamw\n"
      "  cautious report runs/first");
  verb.add_option("DIR", *directory, "Directory of a study, of a run or with runs in it; the report is written into it")
      ->required()
      ->type_name("");
  verb.callback([&chosen, directory] {
    chosen = [directory] {
      const std::filesystem::path page = study::write_report_of(*directory);
      base::print(page.string() + "\n");
      return 0;
    };
  });
}

}  // namespace cautious::cli
