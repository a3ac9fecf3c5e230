// An experiment as text, JSON and a page.
#include "lab/experiment.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/text.h"

namespace cautious::lab {
namespace {

using Json = nlohmann::ordered_json;

// Of the claims that hold, `noticed` have a mutation that their check noticed.
struct Tallied {
  std::size_t holds = 0, fails = 0, undecided = 0, noticed = 0;
};

bool notices(const Claim& claim) {
  return std::any_of(claim.mutations.begin(), claim.mutations.end(), [](const Mutation& m) { return m.noticed; });
}

void count(const Experiment& experiment, Tallied& found) {
  for (const Section& section : experiment.sections) {
    for (const Claim& claim : section.claims) {
      found.holds += claim.outcome == Outcome::holds;
      found.fails += claim.outcome == Outcome::fails;
      found.undecided += claim.outcome == Outcome::undecided;
      found.noticed += claim.outcome == Outcome::holds && notices(claim);
    }
  }
}

Tallied tally(const Experiment& experiment) {
  Tallied found;
  count(experiment, found);
  return found;
}

std::string_view word(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kWords{"holds", "fails", "undecided", "noted"};
  return kWords[static_cast<std::size_t>(outcome)];
}

std::string in_one_line(const Tallied& found) {
  const auto [holds, fails, undecided, noticed] = found;
  std::string line = fmt::format("{} of {} claims hold", holds, holds + fails + undecided);
  if (holds > 0) line += fmt::format(" ({} with a mutation that was noticed)", noticed);
  if (fails > 0) line += fmt::format(", {} {} not", fails, fails == 1 ? "does" : "do");
  if (undecided > 0) line += fmt::format(", {} undecided", undecided);
  return line;
}

// What stands below a claim and its evidence, on the page and in a terminal.
std::vector<report::ClaimRemark> remarks_on(const Claim& claim) {
  std::vector<report::ClaimRemark> remarks;
  if (!claim.by_hand.empty()) remarks.push_back({"by-hand", "By hand:", claim.by_hand});
  for (const Mutation& mutation : claim.mutations) {
    remarks.push_back({mutation.noticed ? "noticed" : "unnoticed", fmt::format("Broken, {}:", mutation.change),
                       fmt::format("{}; {}", mutation.result, mutation.noticed ? "noticed" : "not noticed")});
  }
  if (claim.outcome == Outcome::holds && claim.mutations.empty()) {
    remarks.push_back(
        {"unnoticed", "Not broken on purpose:", claim.unbreakable.empty() ? "no mutation is run" : claim.unbreakable});
  }
  return remarks;
}

struct Failure {
  const Claim* claim;
  std::string where, anchor;  // the section, and its place on the page, where this is the first heading
};

std::vector<Failure> failures(const std::vector<Experiment>& experiments) {
  std::vector<Failure> found;
  std::size_t headings = 1;
  for (const Experiment& experiment : experiments) {
    ++headings;
    for (const Section& section : experiment.sections) {
      ++headings;
      for (const Claim& claim : section.claims) {
        if (claim.outcome == Outcome::fails) found.push_back({&claim, section.title, report::heading_anchor(headings)});
      }
    }
  }
  return found;
}

bool all_fail(const Section& section) {
  return std::all_of(section.claims.begin(), section.claims.end(),
                     [](const Claim& claim) { return claim.outcome == Outcome::fails; });
}

constexpr const char* kFailing = "What does not hold";

Json json(const report::Table& table) { return {{"name", table.name}, {"head", table.head}, {"rows", table.rows}}; }

Json json(const Claim& claim) {
  Json mutations = Json::array();
  for (const Mutation& mutation : claim.mutations) {
    mutations.push_back({{"change", mutation.change}, {"result", mutation.result}, {"noticed", mutation.noticed}});
  }
  return {{"claim", claim.text},      {"source", claim.source}, {"outcome", word(claim.outcome)},  {"evidence", claim.evidence},
          {"by_hand", claim.by_hand}, {"mutations", mutations}, {"unbreakable", claim.unbreakable}};
}

Json json(const Section& section) {
  Json claims = Json::array(), tables = Json::array(), figures = Json::array();
  for (const Claim& claim : section.claims) claims.push_back(json(claim));
  for (const report::Table& table : section.tables) tables.push_back(json(table));
  for (const report::Figure& figure : section.figures) figures.push_back(figure.name + ".svg");
  return {{"title", section.title}, {"command", section.command}, {"claims", claims}, {"tables", tables}, {"figures", figures}};
}

std::string to_json(const Experiment& experiment) {
  const auto [holds, fails, undecided, noticed] = tally(experiment);
  Json sections = Json::array();
  for (const Section& section : experiment.sections) sections.push_back(json(section));
  const Json document{{"experiment", experiment.name}, {"holds", holds},      {"noticed", noticed}, {"fails", fails},
                      {"undecided", undecided},        {"sections", sections}};
  return document.dump(2) + "\n";
}

void add(report::HtmlPage& page, const Section& section) {
  page.section(section.title);
  if (!section.text.empty()) page.paragraph(section.text);
  for (const Claim& claim : section.claims) {
    if (claim.outcome == Outcome::fails) {
      page.claim(claim.text, claim.source, word(claim.outcome), fmt::format("See “{}”, at the top", kFailing));
    } else {
      page.claim(claim.text, claim.source, word(claim.outcome), claim.evidence, remarks_on(claim));
    }
  }
  for (const report::Figure& figure : section.figures) page.figure(figure);
  for (const report::Table& table : section.tables) page.table(table);
  page.commands({section.command});
}

// Where they write to: the directory that was given, or, as long as a command does not make all of its page again, one in it.
void finish_commands(std::vector<Experiment>& experiments, const std::filesystem::path& directory) {
  std::set<std::string> commands;
  for (const Experiment& experiment : experiments) {
    for (const Section& section : experiment.sections) commands.insert(section.command);
  }
  for (Experiment& experiment : experiments) {
    const std::filesystem::path out = commands.size() == 1 ? directory : directory / experiment.name;
    for (Section& section : experiment.sections) section.command += " --out " + base::shell_word(out.string());
  }
}

report::Table symbols() {
  return {
      .name = "symbols",
      .title = "Symbols and words",
      .head = {"symbol", "meaning"},
      .rows = {{"f, x", "the function to minimise, and its variables, the parameters"},
               {"u, η, λ",
                "update, learning rate, weight decay: a step is x ← x - η (u + λ x), the last term where the mask is on"},
               {"mask, CWD", "cautious weight decay: the mask is on where u x ≥ 0, coordinate by coordinate"},
               {"m, v, m_hat", "momentum, mean of squared gradients; m_hat: m with Adam's correction for its start"},
               {"front", "the minimisers that none beats: no other has every |x_i| as small. Locally: none nearby"},
               {"s, selector",
                "a number in [0, 1] per coordinate: how much of the decay passes while the signs switch; equation (2) "
                "is x' = -λ s x"},
               {"n, p",
                "on a curve of minimisers: its normal, and the direction of the update that leads back to it; in Theorem 1 "
                "n is the batch size"},
               {"H", "the Lyapunov function that Table 1 gives for each system, and that should fall along its trajectories"},
               {"α, γ",
                "rates of the continuous systems: how fast m takes up the gradient, and how fast it fades (Lion-K) or v "
                "follows (Adam)"},
               {"K, O",
                "the convex function whose gradient at m is Lion-K's update; Muon's update, the orthogonal factor of m"},
               {"T, L, G, R, σ, d, ε",
                "of Theorem 1: steps, smoothness of f, bounds of |g| and |x|, noise, variables, Adam's ε"}},
      .note = {}};
}

std::string page_of(const std::vector<Experiment>& experiments) {
  report::HtmlPage page(experiments.size() == 1 ? experiments.front().title
                                                : "The laboratory: the theory of cautious weight decay, run");
  Tallied all;
  for (const Experiment& experiment : experiments) count(experiment, all);
  page.paragraph(in_one_line(all) + ".", "verdict");
  page.paragraph(
      "Each claim comes with the numbers of this run that decide it. \"Broken\": its check, repeated with something broken on "
      "purpose; one that does not notice proves little. \"Undecided\": this run cannot tell. \"Noted\": an observation that "
      "goes beyond the paper's claims.",
      "status");
  page.open_details("Symbols and words");
  page.table(symbols());
  page.close_details();
  if (const auto failing = failures(experiments); !failing.empty()) {
    page.part(kFailing);
    for (const auto& [claim, where, anchor] : failing) {
      auto remarks = remarks_on(*claim);
      remarks.push_back({"noticed", "Section:", where, anchor});
      page.claim(claim->text, claim->source, word(claim->outcome), claim->evidence, remarks);
    }
  }
  for (const Experiment& experiment : experiments) {
    page.part(experiment.title);
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
  return command;
}

std::string terminal_text(const std::vector<Experiment>& experiments) {
  std::string text, summary;
  const auto add = [&](const Claim& claim) {
    text += fmt::format("  {:<9}  {}{}\n             {}\n", word(claim.outcome), claim.text,
                        claim.source.empty() ? "" : fmt::format(" ({})", claim.source), claim.evidence);
    for (const auto& remark : remarks_on(claim)) text += fmt::format("             {} {}\n", remark.lead, remark.text);
  };
  const auto failing = failures(experiments);
  if (!failing.empty()) text += fmt::format("{}\n", kFailing);
  for (const Failure& failure : failing) add(*failure.claim);
  if (!failing.empty()) text += "\n";
  for (const Experiment& experiment : experiments) {
    for (const Section& section : experiment.sections) {
      if (all_fail(section)) continue;
      text += fmt::format("{}\n", section.title);
      for (const Claim& claim : section.claims) {
        if (claim.outcome != Outcome::fails) add(claim);
      }
      text += "\n";
    }
    summary += fmt::format("{}: {}\n", experiment.name, in_one_line(tally(experiment)));
  }
  return text + summary;
}

void write(std::vector<Experiment> experiments, const std::filesystem::path& directory) {
  finish_commands(experiments, directory);
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
