// `cautious runs`: the runs below a folder, one line each.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "study/run_list.h"

namespace cautious::cli {
namespace {

struct RunsArguments {
  std::string folder = ".";
  bool json = false;
};

// Numbers to the right; a terminal shows the beginning of the last column.
std::string in_columns(const report::Table& table) {
  const std::size_t most = base::redrawable(stdout) ? base::terminal_size(stdout).width : std::string::npos;
  std::vector<std::vector<std::string>> lines{table.head};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  for (auto& line : lines) std::ranges::transform(line, line.begin(), [](const auto& cell) { return base::printable(cell); });
  std::vector<std::size_t> widths(table.head.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      row += fmt::format(fmt::runtime(i < 2 ? "{:<{}}  " : "{:>{}}  "), line[i], widths[i]);
    }
    row += line.back();
    text += std::string(base::cut(row.substr(0, row.find_last_not_of(' ') + 1), most)) + "\n";
  }
  return text;
}

int runs(const RunsArguments& args) {
  const std::vector<study::ListedRun> found = study::runs_below(args.folder);
  if (found.empty()) {
    throw Error(Fault::usage,
                fmt::format("there are no runs in {}; 'cautious train --out DIR' makes one", base::in_quotes(args.folder)));
  }
  base::print(args.json ? study::run_list_json(found) + "\n" : in_columns(study::run_list_table(found)));
  return 0;
}

}  // namespace

void add_runs(CLI::App& app, Verb& chosen) {
  auto args = std::make_shared<RunsArguments>();
  CLI::App& verb = *app.add_subcommand("runs", "List the runs in a folder: how far they are, their losses, how they differ.");
  verb.footer(
      "  cautious runs runs\n"
      "  cautious runs studies/adamw --json\n"
      "  cautious watch runs          # the same with curves, on a page that updates itself");
  verb.add_option("DIR", args->folder, "Folder with runs at any depth (default: this one)")->type_name("");
  verb.add_flag("--json", args->json, "Print a JSON array");
  verb.callback([&chosen, args] { chosen = [args] { return runs(*args); }; });
}

}  // namespace cautious::cli
