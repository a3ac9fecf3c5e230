// `cautious report`: the report of a study or run, written into its directory; of several studies, one page of them all.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "study/overview.h"
#include "study/report.h"

namespace cautious::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> directories;
  std::string out, column;
};

std::filesystem::path write(const ReportArguments& args) {
  const std::vector<std::filesystem::path> all(args.directories.begin(), args.directories.end());
  if (all.size() > 1) {
    if (args.out.empty()) throw Error(Fault::usage, "--out is missing; give a directory for the page of these studies");
    return study::write_overview(all, args.out, args.column);
  }
  if (!args.out.empty() || !args.column.empty()) {
    throw Error(Fault::usage, fmt::format("--{} is for several studies; the report of one is written into it, {}",
                                          args.out.empty() ? "column" : "out", base::in_quotes(args.directories.front())));
  }
  return study::write_report_of(all.front());
}

}  // namespace

void add_report(CLI::App& app, Verb& chosen) {
  auto args = std::make_shared<ReportArguments>();
  CLI::App& verb =
      *app.add_subcommand("report", "Write the report of a study or run, or one of several studies: page, figures and tables.");
  verb.footer(
      "  cautious report studies/adamw\n"
      "  cautious report runs/first\n"
      "  cautious report studies/* --out overview   # every difference of each study, and their means");
  verb.add_option("DIR", args->directories,
                  "Directory of a study, of a run or with runs in it; the report is written into it. Several studies make one "
                  "page, from the tables that their own reports left")
      ->required()
      ->type_name("");
  verb.add_option("--out", args->out, "Directory for the page of several studies")->type_name("DIR");
  verb.add_option("--column", args->column,
                  "Compare the arms of several studies in this column of their tables/runs.csv, as accuracy, instead of what "
                  "they were judged by")
      ->type_name("NAME");
  verb.callback([&chosen, args] {
    chosen = [args] {
      base::print(write(*args).string() + "\n");
      return 0;
    };
  });
}

}  // namespace cautious::cli
