// The number that the runs of a study are judged by, the lower the better, and how it is written: the validation loss of
// language models, the top-1 error of image classifiers. What is called a loss in this room is this number.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "run/config.h"

namespace cautious::study {

struct Measure {
  // A number of summary.json and of tables.
  struct Column {
    const char* key;        // "val_loss"
    std::string_view head;  // "loss"
    int decimals;
  };

  run::TaskKind task;
  std::string_view name;        // "validation loss"
  std::string_view section;     // of a page with its curves: "Loss"
  std::string_view unit;        // of a difference, in a sentence
  std::string_view axis;        // behind the name on axes
  std::string_view difference;  // behind the name of a difference on axes
  // The difference that a study should be able to find. An interval inside it on both sides of 0 is called practically equal.
  double target;
  std::string_view beside;        // what the target is beside the paper's differences
  std::array<Column, 3> columns;  // the measure itself, then what tables show beside it
  std::string_view described;     // these three, in the note of a table

  std::string_view head() const { return columns[0].head; }
  int decimals() const { return columns[0].decimals; }
  std::string number(double value) const;         // "2.0136"
  std::string signed_number(double value) const;  // "+0.0136"
  std::string target_text() const;                // "0.005 nats"
  std::string title() const;                      // the name with a capital
};

const Measure& measure_of(run::TaskKind task);

}  // namespace cautious::study
