// Studies as sections: claims, tables and paths.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

// The figures show Adam's three arms; for others and elsewhere it is the section's claim.
std::string source_of(const ToyStudy& study, const ToyRun& run, const char* section) {
  const std::string& name = study.problem.name;
  if (!std::holds_alternative<Adam>(run.arm.recipe.rule) || !study.problem.file.empty()) return section;
  return name == "circle" || name == "parabola" ? "Figure 3" : name == "surface" ? "Figure 2" : section;
}

// What has not come to rest, or where no stationary point was found, decides nothing unless the arm is there already.
Outcome outcome_of(const ToyRun& run, bool holds) {
  if (holds) return Outcome::holds;
  return run.at_rest && run.to_minimisers ? Outcome::fails : Outcome::undecided;
}

bool on_minimisers(const ToyRun& run) { return run.minimum && run.to_minimisers && *run.to_minimisers <= kOn; }

std::string off_minimisers(const ToyRun& run) {
  if (!run.to_minimisers) return "no stationary point was found near it, or not one with a clear tangent";
  const char* what = run.minimum ? "minimiser" : "stationary point, a saddle or maximum";
  if (*run.to_minimisers > kOn) return fmt::format("{:.2g} from the nearest {}", *run.to_minimisers, what);
  if (!run.minimum) return fmt::format("at a {}", what);
  return fmt::format("on the minimisers (distance {:.1e})", *run.to_minimisers);
}

// The rank of the nearest minimiser among the minimisers.
std::string standing(const ToyRun& run) {
  if (run.to_front && *run.to_front <= kOn) return ", on their Pareto front";
  if (run.to_local_front && *run.to_local_front <= kOn) {
    return fmt::format(", beaten by no minimiser nearby: on the paper's local front, {:.2g} from the global one",
                       *run.to_front);
  }
  if (run.to_front && std::isfinite(*run.to_front)) return fmt::format(", {:.2g} from their Pareto front", *run.to_front);
  if (!run.pareto || !run.minimum) return "";
  return *run.pareto == Pareto::optimal  ? ", locally Pareto-optimal (the linear program has no direction)"
         : *run.pareto == Pareto::beaten ? ", not Pareto-optimal (a minimiser nearby has smaller magnitudes)"
                                         : ", perhaps Pareto-optimal (first order does not decide)";
}

bool on_local_front(const ToyRun& run) {
  return run.pareto == Pareto::optimal || (run.to_local_front && *run.to_local_front <= kOn);
}

bool undecided(const ToyRun& run) { return !on_local_front(run) && run.pareto == Pareto::undecided; }

Claim without_decay(const ToyStudy& study, const ToyRun& run) {
  return {run.arm.name + " stops at a minimiser", source_of(study, run, "section 3.2"), outcome_of(run, on_minimisers(run)),
          fmt::format("f = {:.2g}, {}{}", run.f, off_minimisers(run), standing(run))};
}

Claim in_the_box(const ToyStudy& study, const ToyRun& run) {
  const bool inside = run.to_box <= kOn;
  const bool least = run.f <= study.least_in_box + kOn * (1 + as_vector(PointView(gradient(study.problem, run.end()))).norm());
  const auto where =
      inside ? fmt::format("it ends in the box, within {:g},", kOn) : fmt::format("it ends {:.2g} outside the box", run.to_box);
  return {fmt::format("{} minimises f within the box |x| ≤ 1/λ = {:.3g}", run.arm.name, study.box),
          source_of(study, run, "section 2.2"),
          inside && least ? Outcome::holds
          : run.at_rest   ? Outcome::fails
                          : Outcome::undecided,
          fmt::format("{} with f = {:.3g}, the least found there is {:.3g}; {}", where, run.f, study.least_in_box,
                      off_minimisers(run))};
}

Claim on_the_front(const ToyStudy& study, const ToyRun& run) {
  const auto slid =
      run.arrival && run.slide > kNear
          ? fmt::format("; it reached the front in step {} and then slid {:.2g} along it", *run.arrival, run.slide)
          : std::string();
  const bool there = on_minimisers(run) && on_local_front(run);
  return {run.arm.name + " slides within the minimisers to their local Pareto front", source_of(study, run, "section 3.2"),
          undecided(run) ? Outcome::undecided : outcome_of(run, there),
          fmt::format("f = {:.2g}, {}{}{}", run.f, off_minimisers(run), standing(run), slid)};
}

Claim as_found(const ToyRun& run) {
  return {fmt::format("Where {} ends", run.arm.name), "", Outcome::noted,
          fmt::format("f = {:.3g}, {}{}", run.f, off_minimisers(run), standing(run))};
}

Claim claim_of(const ToyStudy& study, const ToyRun& run) {
  const Recipe& recipe = run.arm.recipe;
  const bool sign_like = std::holds_alternative<Adam>(recipe.rule) || std::holds_alternative<Lion>(recipe.rule);
  const bool same_box = recipe.weight_decay == study.options.weight_decay && recipe.coupling == Coupling::plain;
  if (std::holds_alternative<None>(recipe.decay)) return without_decay(study, run);
  if (std::holds_alternative<Cautious>(recipe.decay)) return on_the_front(study, run);
  if (std::holds_alternative<Decoupled>(recipe.decay) && sign_like && same_box) {
    return in_the_box(study, run);
  }
  return as_found(run);
}

}  // namespace

std::vector<Claim> toy_claims(const ToyStudy& study) {
  std::vector<Claim> claims;
  for (const ToyRun& run : study.runs) {
    claims.push_back(claim_of(study, run));
    if (claims.back().outcome != Outcome::holds && !run.at_rest) {
      claims.back().evidence += "; it has not converged yet: give it more --steps";
    }
  }
  return claims;
}

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
  for (const ToyArm& arm : study.options.arms) {
    section.text += fmt::format(" {}: {}{}.", arm.name, to_string(arm.recipe), arm.lr ? fmt::format(" lr={}", *arm.lr) : "");
  }
  section.command =
      fmt::format("cautious lab toy {}{} --out toy",
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
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto alive = [&] { progress(static_cast<double>(i) / static_cast<double>(problems.size()), problems[i].name); };
    alive();
    experiment.sections.push_back(section_of(run_toy(problems[i], options, alive), arguments));
    if (problems[i].name == "circle" && problems[i].file.empty() && arguments.empty())
      experiment.sections.push_back(why_it_slides_on(options.weight_decay));
  }
  progress(1, "done");
  return experiment;
}

}  // namespace cautious::lab
