// What the reports of studies and of runs are made of: curves of metrics, figures, tables, files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/page.h"
#include "report/table.h"
#include "run/metrics.h"
#include "study/results.h"
#include "study/verdict.h"

namespace cautious::study {

// One column over the steps.
struct Curve {
  std::vector<double> steps, values;  // rows without the column or with a number that is not finite are left out
};

Curve curve_of(const std::vector<run::MetricsRow>& rows, const std::string& column);

// The sum over the steps so far, from a column that has a number of single steps: a logged step counts for all since the one
// before it.
Curve summed(const Curve& curve);

// Mean at the steps that all have, with the lowest and the highest as the band where there are several.
report::ChartSeries mean_series(const std::vector<Curve>& curves);

// The metrics of a run, none if it has not begun.
std::vector<run::MetricsRow> metrics_in(const std::filesystem::path& run);

// The metrics of a study's runs, each read when it is first asked for.
class StudyMetrics {
 public:
  explicit StudyMetrics(const Results& results) : results_(results) {}

  // The runs of the arm at the point that are done, or, as long as none is, those that have begun.
  std::vector<Curve> curves(const std::string& arm, const Overrides& point, const std::string& column);

 private:
  const std::vector<run::MetricsRow>& rows(const FinishedRun& run);
  const Results& results_;
  std::map<std::string, std::vector<run::MetricsRow>> read_;
};

// What a figure of curves over the steps shows.
struct CurveFigure {
  std::string name, title, y_label;
  std::string column = {}, caption = {};
  report::Scale y_scale = report::Scale::linear;
  bool sum = false;    // over the steps so far
  double from = 0;     // the fraction of the steps that is left out at the beginning
  bool inset = false;  // of the first tenth
};

// The measure and losses first, then what the weights do.
std::vector<CurveFigure> loss_figures(run::TaskKind task);
std::vector<CurveFigure> inside_figures();

// Adds the chart of these series, named and coloured by the caller; not one of the end of a run that has fewer than three
// points, or all that the whole one has.
void add_curve_figure(std::vector<report::Figure>& figures, const CurveFigure& what, std::vector<report::ChartSeries> series,
                      const std::string& who);

// Below, `chosen` is best_points(results): where each arm is judged.

// Each arm at its point: mean over the seeds, and the band between the lowest and the highest.
void add_arms_curve_figure(std::vector<report::Figure>& figures, const CurveFigure& what, const Results& results,
                           const std::vector<Overrides>& chosen, StudyMetrics& metrics);
// Cells of tables: "not detectable"; every digit, nothing if not finite; "< 0.001".
std::string outcome_text(Outcome outcome);
std::string exact_text(double value);
std::string p_cell(double p);

// Prespecified: whether decay matters, then the primary contrasts.
report::Figure contrasts_figure(const Verdict& verdict, bool primary);
// Every arm at its point, single seeds as dots.
report::Figure arms_figure(const Results& results, const std::vector<Overrides>& chosen);
// One per axis of a grid with at least two numbers: the lowest mean loss over the other axes, and where each arm is judged.
std::vector<report::Figure> sweep_figures(const Results& results);
// The loss over what decay has removed, of every arm at every point.
report::Figure amounts_figure(const Results& results);

report::Table contrasts_table(const Verdict& verdict, bool primary);
report::Table tests_table(const Verdict& verdict);
// No rows where no grid is judged whole.
report::Table amounts_table(const Verdict& verdict);
// No rows where nothing was chosen.
report::Table tuning_table(const Results& results);
// Every arm at every point that is judged.
report::Table arms_table(const Results& results);
// Every arm at its point, in short.
report::Table chosen_table(const Results& results, const std::vector<Overrides>& chosen);
// Every arm at its point; no rows where the runs were asked no benchmark.
report::Table benchmarks_table(const Results& results, const std::vector<Overrides>& chosen);
report::Table runs_table(const Results& results);
// The keys in which the arms differ, each at its point.
report::Table differences_table(const Results& results, const std::vector<Overrides>& chosen);
report::Table paper_table(const Plan& plan);
// What the runs were made with: the different values that their summaries have of each key.
report::Table provenance_table(const Results& results);

// What the classifier of a run makes of its validation images, as its evaluation.json says.
struct Mistake {
  std::string name;                      // of the image
  std::size_t label = 0, predicted = 0;  // classes
  double probability = 0;                // of the predicted one
  std::string png;                       // in base64
};
struct Evaluation {
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> confusion;  // a row for each true class, a column for each predicted one
  std::vector<Mistake> mistakes;                     // worst first
};

// None without the file, as of language models; a damaged one is an Error(Fault::data) that names it.
std::optional<Evaluation> evaluation_in(const std::filesystem::path& run);

report::Figure confusion_figure(const Evaluation& evaluation);
report::Table confusion_table(const Evaluation& evaluation);
// How many images of each class are classified right.
report::Table classes_table(const Evaluation& evaluation);
std::vector<report::Picture> mistake_pictures(const Evaluation& evaluation);

// "1.3 million".
std::string count_words(double count);

// The last part of its path, also of "." and "runs/".
std::string directory_name(const std::filesystem::path& directory);

// figures/<name>.svg, tables/<name>.csv, .md and .tex, then report.html; each appears complete or not at all. Returns the path
// of report.html.
std::filesystem::path write_files(const std::filesystem::path& directory, const std::string& page,
                                  const std::vector<report::Figure>& figures, const std::vector<report::Table>& tables);

}  // namespace cautious::study
