// `cautious report`: the report of a study or of a run, written into its directory.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "cli/verbs.h"
#include "study/reported.h"

namespace cautious::cli {

void add_report(CLI::App& app, Verb& chosen) {
  auto directory = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand("report", "The report of a study or of a run: report.html, figures and tables.");
  verb.footer(
      "  cautious report studies/adamw\n"
      "  cautious report runs/first");
  verb.add_option("DIR", *directory, "A study's directory, or a run's; the report is written into it")
      ->required()
      ->type_name("");
  verb.callback([&chosen, directory] {
    chosen = [directory] {
      const std::filesystem::path page = study::write_report_of(*directory);
      if (std::puts(page.c_str()) < 0 || std::fflush(stdout) != 0) {
        throw Error(Fault::failure, "cannot write to standard output");
      }
      return 0;
    };
  });
}

}  // namespace cautious::cli
