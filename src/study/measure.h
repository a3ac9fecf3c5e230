// The number that the runs of a study are judged by, the lower the better, and how it is written: the validation loss of
// language models, the top-1 error of image classifiers, what external runs report, or the error on a benchmark where the plan
// says so. What is called a loss in this room is this number.
#pragma once

#include <string>
#include <vector>

#include "run/config.h"

namespace cautious::study {

struct Measure {
  // A number of summary.json and of tables.
  struct Column {
    std::string key;   // "val_loss"
    std::string head;  // "loss"
    int decimals;
    bool accuracy = false;  // a fraction there; here the rest of it, in percent

    double of(double in_summary) const { return accuracy ? 100 - 100 * in_summary : in_summary; }
  };

  run::TaskKind task;
  std::string name;        // "validation loss"
  std::string section;     // of a page with its curves: "Loss"
  std::string unit;        // of a difference, in a sentence; may be empty, as may the next two
  std::string axis;        // behind the name on axes
  std::string difference;  // behind the name of a difference on axes
  // The difference that a study should be able to find. An interval inside it on both sides of 0 is called practically equal.
  double target;
  std::string beside;           // what the target is beside the paper's differences
  std::vector<Column> columns;  // the measure itself, then what tables show beside it
  std::string described;        // these, in the note of a table

  const std::string& head() const { return columns[0].head; }
  int decimals() const { return columns[0].decimals; }
  std::string number(double value) const;         // "2.0136"
  std::string signed_number(double value) const;  // "+0.0136"
  std::string with_unit(std::string text) const;  // "0.0136 nats"
  std::string target_text() const;                // "0.005 nats"
  std::string title() const;                      // the name with a capital
};

std::string with_capital(std::string text);

// " (nats per token)" behind a name; nothing for an empty unit.
std::string in_brackets(const std::string& unit);

Measure measure_of(run::TaskKind task);  // not of external runs, which say themselves
Measure measure_of(const run::RunConfig& config);

// What a plan's objective, "eval/hellaswag/acc_norm", means for such a run; an empty one is the task's own measure. A name that
// is not of this form, or of a benchmark that the run is not asked, is an Error(Fault::usage).
Measure measure_of(const std::string& objective, const run::RunConfig& config);

}  // namespace cautious::study
