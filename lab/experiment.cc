// An experiment as text, JSON and a page.
#include "lab/experiment.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"

namespace cautious::lab {
namespace {

using Json = nlohmann::ordered_json;

struct Tallied {
  std::size_t holds = 0, fails = 0, undecided = 0;
};

Tallied tally(const Experiment& experiment) {
  Tallied found;
  for (const Section& section : experiment.sections) {
    for (const Claim& claim : section.claims) {
      found.holds += claim.outcome == Outcome::holds;
      found.fails += claim.outcome == Outcome::fails;
      found.undecided += claim.outcome == Outcome::undecided;
    }
  }
  return found;
}

std::string_view word(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kWords{"holds", "fails", "undecided", "noted"};
  return kWords[static_cast<std::size_t>(outcome)];
}

std::string in_one_line(const Experiment& experiment) {
  const auto [holds, fails, undecided] = tally(experiment);
  std::string line = fmt::format("{} of {} claims hold", holds, holds + fails + undecided);
  if (fails > 0) line += fmt::format(", {} {} not", fails, fails == 1 ? "does" : "do");
  if (undecided > 0) line += fmt::format(", {} undecided", undecided);
  return line;
}

Json json(const report::Table& table) { return {{"name", table.name}, {"head", table.head}, {"rows", table.rows}}; }

Json json(const Section& section) {
  Json claims = Json::array(), tables = Json::array(), figures = Json::array();
  for (const Claim& claim : section.claims) {
    claims.push_back(
        {{"claim", claim.text}, {"source", claim.source}, {"outcome", word(claim.outcome)}, {"evidence", claim.evidence}});
  }
  for (const report::Table& table : section.tables) tables.push_back(json(table));
  for (const report::Figure& figure : section.figures) figures.push_back(figure.name + ".svg");
  return {{"title", section.title}, {"command", section.command}, {"claims", claims}, {"tables", tables}, {"figures", figures}};
}

std::string to_json(const Experiment& experiment) {
  const auto [holds, fails, undecided] = tally(experiment);
  Json sections = Json::array();
  for (const Section& section : experiment.sections) sections.push_back(json(section));
  const Json document{
      {"experiment", experiment.name}, {"holds", holds}, {"fails", fails}, {"undecided", undecided}, {"sections", sections}};
  return document.dump(2) + "\n";
}

void add(report::HtmlPage& page, const Section& section) {
  page.section(section.title);
  if (!section.text.empty()) page.paragraph(section.text);
  for (const Claim& claim : section.claims) page.claim(claim.text, claim.source, word(claim.outcome), claim.evidence);
  for (const report::Figure& figure : section.figures) page.figure(figure);
  for (const report::Table& table : section.tables) page.table(table);
  page.commands({section.command});
}

std::string page_of(const std::vector<Experiment>& experiments) {
  report::HtmlPage page(experiments.size() == 1 ? experiments.front().title
                                                : "The laboratory: the theory of cautious weight decay, run");
  std::string verdict;
  for (const Experiment& experiment : experiments) {
    verdict += fmt::format("{}{}: {}", verdict.empty() ? "" : "; ", experiment.name, in_one_line(experiment));
  }
  page.paragraph(verdict + ".", "verdict");
  page.paragraph(
      "Each claim comes with the numbers of this run that decide it. \"Undecided\": this run cannot tell. \"Noted\": an "
      "observation that goes beyond the paper's claims.",
      "status");
  for (const Experiment& experiment : experiments) {
    for (const Section& section : experiment.sections) add(page, section);
  }
  return page.finish();
}

}  // namespace

std::string command_of(std::string_view verb, std::initializer_list<CommandOption> options) {
  std::string command = fmt::format("cautious lab {}", verb);
  for (const CommandOption& option : options) {
    if (option.value != option.usual) command += fmt::format(" --{} {}", option.name, option.value);
  }
  return fmt::format("{} --out {}", command, verb);
}

std::string terminal_text(const Experiment& experiment) {
  std::string text;
  for (const Section& section : experiment.sections) {
    text += fmt::format("{}\n", section.title);
    for (const Claim& claim : section.claims) {
      text += fmt::format("  {:<9}  {}{}\n             {}\n", word(claim.outcome), claim.text,
                          claim.source.empty() ? "" : fmt::format(" ({})", claim.source), claim.evidence);
    }
    text += "\n";
  }
  return text + fmt::format("{}: {}\n", experiment.name, in_one_line(experiment));
}

void write(const std::vector<Experiment>& experiments, const std::filesystem::path& directory) {
  for (const Experiment& experiment : experiments) {
    for (const Section& section : experiment.sections) {
      for (const report::Figure& figure : section.figures)
        base::write_atomically(directory / (figure.name + ".svg"), figure.svg);
      for (const report::Table& table : section.tables)
        base::write_atomically(directory / (table.name + ".csv"), to_csv(table));
      for (const DataFile& file : section.files) base::write_atomically(directory / file.name, file.content);
    }
    base::write_atomically(directory / (experiment.name + ".json"), to_json(experiment));
  }
  base::write_atomically(directory / "report.html", page_of(experiments));
}

}  // namespace cautious::lab
