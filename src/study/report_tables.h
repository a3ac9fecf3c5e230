// The tables of a study's report.
#pragma once

#include <string>
#include <vector>

#include "report/table.h"
#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

report::Table contrasts_table(const Verdict& verdict, bool primary);
// Every arm at every point.
report::Table arms_table(const Results& results);
// Every arm at its best point, in short.
report::Table best_table(const Results& results);
report::Table runs_table(const Results& results);
// The keys in which the arms differ, each at its best point.
report::Table differences_table(const Results& results);
report::Table paper_table(const Plan& plan);

// "0.0123"; "-" for what is not known.
std::string number_text(double value, int decimals);

}  // namespace cautious::study
