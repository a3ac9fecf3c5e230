// The figures of a study's report.
#pragma once

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/page.h"
#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

// "weight_decay=0.1, lr=0.003"; "-" for none.
std::string point_text(const Overrides& point);

report::Figure contrasts_figure(const Verdict& verdict, bool primary);
// Every arm at its best point, single seeds as dots.
report::Figure arms_figure(const Results& results);
// One per axis of the grid with at least two numbers: the lowest mean loss over the other axes, and where each arm is best.
std::vector<report::Figure> sweep_figures(const Results& results);

}  // namespace cautious::study
