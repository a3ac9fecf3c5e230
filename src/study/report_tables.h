// The tables of a study's report.
#pragma once

#include <string>
#include <vector>

#include "report/table.h"
#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

Table contrasts_table(const Verdict& verdict, bool primary);
// Every arm at every point.
Table arms_table(const Results& results);
// Every arm at its best point, in short.
Table best_table(const Results& results);
Table runs_table(const Results& results);
// The keys in which the arms differ, each at its best point.
Table differences_table(const Results& results);
Table paper_table(const Plan& plan);

// "0.0123"; "-" for what is not known.
std::string number_text(double value, int decimals);

}  // namespace cautious::study
