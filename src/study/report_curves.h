// The figures of a report that show curves over the steps.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "study/curves.h"
#include "study/results.h"

namespace cautious::study {

// What a figure of curves shows.
struct CurveFigure {
  std::string name, title, y_label;
  std::string column = {}, caption = {};
  report::Scale y_scale = report::Scale::linear;
  bool sum = false;    // over the steps so far
  double from = 0;     // the part of the steps that is left out at the beginning
  bool inset = false;  // of the first tenth
};

// Loss first, then what the weights do.
std::vector<CurveFigure> loss_figures();
std::vector<CurveFigure> inside_figures();

// The chart of these series, named and coloured by the caller.
report::Figure curve_figure(const CurveFigure& what, std::vector<report::ChartSeries> series, const std::string& who);

// Each arm at its best point: mean over the seeds, and the band between the lowest and the highest.
report::Figure arms_curve_figure(const CurveFigure& what, const Results& results, StudyMetrics& metrics);

}  // namespace cautious::study
