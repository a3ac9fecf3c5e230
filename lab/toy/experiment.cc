// Studies as sections: claims, tables and paths.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

constexpr std::size_t kRowsPerPath = 500;

std::string shown(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.2e}", *value) : "-";
}

std::string shown(const std::optional<Pareto>& pareto) {
  if (!pareto) return "-";
  return *pareto == Pareto::optimal ? "yes" : *pareto == Pareto::beaten ? "no" : "undecided";
}

std::string end_point(const Point& end) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(end.size(), 3); ++i)
    text += fmt::format("{}{:.4f}", i == 0 ? "(" : ", ", end[i]);
  return text + (end.size() > 3 ? ", ...)" : ")");
}

report::Table table_of(const ToyStudy& study) {
  report::Table table;
  table.name = file_stem(study.problem) + "_ends";
  table.title = "Where the arms end";
  table.head = {"arm", "end point", "f", "to minimisers", "to front", "locally Pareto", "to box", "sum of |x|"};
  for (const ToyRun& run : study.runs) {
    table.rows.push_back({run.arm.name, end_point(run.end()), fmt::format("{:.2e}", run.f), shown(run.to_minimisers),
                          shown(run.to_front), run.to_minimisers && *run.to_minimisers <= kOn ? shown(run.pareto) : "-",
                          fmt::format("{:.2e}", run.to_box),
                          fmt::format("{:.3f}", as_vector(PointView(run.end())).lpNorm<1>())});
  }
  table.note = fmt::format(
      "Least f found in the box |x| ≤ {:.3g}: {:.3g}. Locally Pareto: the test at the nearest minimiser (null space of the "
      "Hessian, linear program).{}",
      study.box, study.least_in_box, study.trace ? "" : " The front is traced for two variables only.");
  return table;
}

// About 500 rows per path, the first and last point among them.
std::string paths_csv(const ToyStudy& study) {
  std::string csv = "arm,step,f";
  for (std::size_t i = 1; i <= study.problem.size(); ++i) csv += fmt::format(",x{}", i);
  csv += "\n";
  for (const ToyRun& run : study.runs) {
    const std::size_t last = run.path.size() - 1, stride = std::max<std::size_t>(1, last / kRowsPerPath);
    for (std::size_t t = 0; t <= last; t = t < last ? std::min(t + stride, last) : last + 1) {
      csv += fmt::format("{},{},{}", key_of(run.arm), t, base::to_text(study.problem.value(run.path[t])));
      for (const double value : run.path[t]) csv += "," + base::to_text(value);
      csv += "\n";
    }
  }
  return csv;
}

Section section_of(const ToyStudy& study, const std::string& arguments) {
  Section section;
  section.title = study.problem.title;
  section.text = fmt::format("f = {}; {} variables, all arms from {}. {}.", study.problem.formula, study.problem.size(),
                             end_point(study.runs.front().path.front()), settings(study.options));
  if (study.problem.name == "surface" && study.problem.file.empty()) {
    section.text += " The paper does not say which function its Figure 2 shows; this one is ours.";
  }
  for (const ToyArm& arm : study.options.arms) {
    section.text += fmt::format(" {}: {}{}.", arm.name, to_string(arm.recipe), arm.lr ? fmt::format(" lr={}", *arm.lr) : "");
  }
  section.command =
      fmt::format("cautious lab toy {}{}",
                  study.problem.file.empty() ? study.problem.name : in_shell_quotes(study.problem.file), arguments);
  section.claims = toy_claims(study);
  section.figures = toy_figures(study);
  section.tables.push_back(table_of(study));
  section.files.push_back({file_stem(study.problem) + "_paths.csv", paths_csv(study)});
  return section;
}

}  // namespace

std::string in_shell_quotes(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,=_+-/";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

Experiment toy_experiment(const std::vector<Problem>& problems, const ToyOptions& options, const std::string& arguments,
                          const Progress& progress) {
  Experiment experiment{"toy", "Toy problems: where weight decay leads", {}};
  const bool all = problems.size() == cautious::lab::problems().size() && arguments.empty();
  const double first = all ? 0.8 : 0;  // of the work
  if (all) {
    experiment.sections.push_back(
        random_problems(30, [&](double done, std::string_view what) { progress(first * done, what); }));
  }
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto alive = [&] {
      progress(first + (1 - first) * static_cast<double>(i) / static_cast<double>(problems.size()), problems[i].name);
    };
    alive();
    experiment.sections.push_back(section_of(run_toy(problems[i], options, alive), arguments));
    if (problems[i].name == "circle" && problems[i].file.empty() && arguments.empty()) {
      experiment.sections.back().claims.push_back(far_arc_claim());
      experiment.sections.push_back(why_it_slides_on(options.weight_decay));
    }
  }
  progress(1, "done");
  return experiment;
}

}  // namespace cautious::lab
