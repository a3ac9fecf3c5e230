// What an experiment of the laboratory says: claims with their outcome and numbers, tables, figures, and the command that
// repeats it. The terminal, the page and the files are all written from this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart.h"
#include "report/page.h"
#include "report/table.h"

namespace cautious::lab {

// undecided: this run cannot tell, as an arm that has not come to rest. noted: an observation beyond what the paper claims.
enum class Outcome { holds, fails, undecided, noted };

inline Outcome outcome_of(bool holds) { return holds ? Outcome::holds : Outcome::fails; }

// A claim's check repeated with something broken on purpose. A check that does not notice proves little.
struct Mutation {
  std::string change;    // "without K2", "mask flipped"
  std::string result;    // the number that the check then finds; no full stop
  bool noticed = false;  // the claim would not hold
};

struct Claim {
  std::string text;    // one sentence, no full stop
  std::string source;  // "Table 1", "appendix E, lemma 2"; empty if ours
  Outcome outcome{};
  std::string evidence;                  // numbers of this run that decide it; no full stop
  std::string by_hand = {};              // of a claim that fails: a counterexample to check with a pencil
  std::vector<Mutation> mutations = {};  // of a claim that holds; at least one, or
  std::string unbreakable = {};          // why there is none
};

struct DataFile {
  std::string name;  // "toy_paths.csv"
  std::string content;
};

// One heading of the report.
struct Section {
  std::string title;
  std::string text;     // what was done, in a paragraph; may be empty
  std::string command;  // that shows this alone; write() adds --out
  std::vector<Claim> claims;
  std::vector<report::Figure> figures;
  std::vector<report::Table> tables;
  std::vector<DataFile> files;
};

struct Experiment {
  std::string name;  // of the verb and its files: "toy", "dynamics", "fixedpoint", "bound"
  std::string title;
  std::vector<Section> sections;
};

// The command that repeats an experiment, with the options that differ from the usual ones: "cautious lab bound --seeds 8".
struct CommandOption {
  std::string_view name;
  std::uint64_t value, usual;
};
std::string command_of(std::string_view verb, std::initializer_list<CommandOption> options);

// Called with the part done so far, 0 to 1, and what is under way. May throw to stop.
using Progress = std::function<void(double done, std::string_view what)>;

// Claims and their evidence for a terminal, "holds  ...", those that fail first.
std::string terminal_text(const std::vector<Experiment>& experiments);

// report.html, which begins with the claims that fail, and per experiment NAME.json, its figures (.svg), tables (.csv) and data
// files. All are a function of the experiments and of the directory's name, old ones are replaced, each appears complete or not
// at all.
void write(std::vector<Experiment> experiments, const std::filesystem::path& directory);

}  // namespace cautious::lab
