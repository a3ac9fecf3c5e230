#include "study/overview.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "report/page.h"
#include "study/judged.h"
#include "study/report_parts.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

// Names of the directories, or their paths where two have the same name.
std::vector<std::string> names_of(const std::vector<std::filesystem::path>& studies) {
  std::map<std::string, int> counts;
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& study : studies) {
    ++counts[directory_name(study)];
    if (!seen.insert(std::filesystem::weakly_canonical(study)).second) {
      throw Error(Fault::usage, fmt::format("{} is there twice; give each study once", base::in_quotes(study.string())));
    }
  }
  std::vector<std::string> names;
  for (const std::filesystem::path& study : studies) {
    const std::string name = directory_name(study);
    names.push_back(counts[name] > 1 ? study.string() : name);
  }
  return names;
}

// Of all studies, those of the same two arms together, in the order in which they first appear.
using Groups = std::vector<std::vector<Judged>>;

Groups grouped(const std::vector<std::filesystem::path>& studies, const std::string& column) {
  const std::vector<std::string> names = names_of(studies);
  Groups groups;
  for (std::size_t i = 0; i < studies.size(); ++i) {
    for (Judged& judged : judged_in(studies[i], names[i], column)) {
      if (!groups.empty()) {
        const Judged& first = groups.front().front();
        if (judged.measure != first.measure || judged.unit != first.unit) {
          throw Error(Fault::usage, fmt::format("{} is judged by {}, {} by {}; give studies of one measure", first.study,
                                                base::in_quotes(first.measure + in_brackets(first.unit)), judged.study,
                                                base::in_quotes(judged.measure + in_brackets(judged.unit))));
        }
      }
      const auto same = std::ranges::find(groups, judged.name(), [](const auto& group) { return group.front().name(); });
      if (same == groups.end()) {
        groups.push_back({std::move(judged)});
      } else {
        same->push_back(std::move(judged));
      }
    }
  }
  if (groups.empty()) throw Error(Fault::usage, "these studies have no prespecified differences");
  return groups;
}

// As many decimals as show two digits of the shortest interval.
class Decimals {
 public:
  explicit Decimals(const Groups& groups) {
    double shortest = INFINITY;
    for (const auto& group : groups) {
      for (const Judged& judged : group) {
        const double half = (judged.high - judged.low) / 2;
        if (judged.counts() && half > 0) shortest = std::min(shortest, half);
      }
    }
    if (std::isfinite(shortest)) decimals_ = std::clamp(1 - static_cast<int>(std::floor(std::log10(shortest))), 0, kMost);
  }
  std::string number(double value) const { return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals_) : "-"; }
  std::string signed_number(double value) const {
    return std::isfinite(value) ? fmt::format("{:+.{}f}", value, decimals_) : "-";
  }
  std::string interval(double low, double high) const {
    return std::isfinite(low) && std::isfinite(high) ? fmt::format("[{}, {}]", number(low), number(high)) : "-";
  }

 private:
  static constexpr int kMost = 8;
  int decimals_ = 4;
};

struct Mean {
  const std::vector<Judged>* group;
  Combined combined;

  const Judged& first() const { return group->front(); }
};

std::vector<Mean> means_of(const Groups& groups) {
  std::vector<Mean> means;
  for (const auto& group : groups) {
    std::vector<Finding> findings;
    for (const Judged& judged : group) {
      if (judged.counts()) findings.push_back(judged.finding());
    }
    if (findings.size() > 1) means.push_back({&group, combined(findings)});
  }
  return means;
}

// "lower in 2, not detectable in 9"
std::string outcomes_text(const std::vector<Judged>& group) {
  std::map<std::string, int> counts;
  for (const Judged& judged : group) ++counts[judged.outcome];
  std::vector<std::string> words;
  for (const auto& [outcome, count] : counts) words.push_back(fmt::format("{} in {}", outcome, count));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string sentence_of(const Mean& mean, const Decimals& decimals) {
  const Combined& all = mean.combined;
  const std::string unit = mean.first().unit.empty() ? "" : " " + mean.first().unit;
  return fmt::format(
      "{}: {}{} {} in the mean of {} studies ({}); {}. {}.", mean.first().name(), decimals.signed_number(all.mean), unit,
      decimals.interval(all.interval.low, all.interval.high), all.studies, p_text(all.p),
      all.between > 0 ? fmt::format("beyond the chance of their seeds the studies differ by {} (standard deviation)",
                                    decimals.number(all.between))
                      : "chance explains how the studies differ",
      with_capital(outcomes_text(*mean.group)));
}

// "cwd_plain"; longer where another figure has that name.
std::string file_of(const Mean& mean, const std::vector<report::Figure>& others) {
  std::string file = mean.first().a + "_" + mean.first().b;
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::ranges::replace_if(file, std::not_fn(fits), '_');
  while (std::ranges::find(others, file, &report::Figure::name) != others.end()) file += '_';
  return file;
}

// `better`: "left" or "right", of 0; empty if neither is.
report::Figure figure_of(const Mean& mean, std::string file, const std::string& better, const Decimals& decimals) {
  const Judged& first = mean.first();
  report::IntervalChart chart;
  chart.title = first.name();
  chart.x_label = fmt::format("difference of {}{}, with 95% interval{}", first.measure, in_brackets(first.unit),
                              better.empty() ? "" : fmt::format("; {} of 0: {} is better", better, first.a));
  chart.reference = 0;
  chart.description = sentence_of(mean, decimals);
  for (const Judged& judged : *mean.group) {
    if (!judged.counts()) continue;
    chart.entries.push_back({.name = fmt::format("{}, {} seeds", judged.study, judged.seeds),
                             .value = judged.value,
                             .low = judged.low,
                             .high = judged.high,
                             .points = {}});
  }
  const Combined& all = mean.combined;
  chart.entries.push_back({.name = fmt::format("mean of {} studies", all.studies),
                           .colour = 1,
                           .value = all.mean,
                           .low = all.interval.low,
                           .high = all.interval.high,
                           .points = {}});
  return {std::move(file), std::move(chart), ""};
}

report::Table means_table(const std::vector<Mean>& means, const Decimals& decimals) {
  report::Table table{
      .name = "means",
      .title = "Means over the studies" + in_brackets(means.empty() ? "" : means.front().first().unit),
      .head = {"difference", "studies", "mean", "95% interval", "p", "between studies"},
      .rows = {},
      .note =
          "Random effects: the true difference may be another one in each study. between studies: the standard deviation "
          "of these true differences (Paule and Mandel). Interval and p: Student's t with one degree of freedom less than "
          "there are studies (Hartung and Knapp).",
      .csv = {{"difference", "studies", "mean", "low", "high", "p", "between studies"}}};
  for (const Mean& mean : means) {
    const Combined& all = mean.combined;
    const std::string name = mean.first().name(), studies = std::to_string(all.studies);
    table.rows.push_back({name, studies, decimals.signed_number(all.mean),
                          decimals.interval(all.interval.low, all.interval.high), p_cell(all.p), decimals.number(all.between)});
    table.csv.push_back({name, studies, exact_text(all.mean), exact_text(all.interval.low), exact_text(all.interval.high),
                         exact_text(all.p), exact_text(all.between)});
  }
  return table;
}

report::Table every_difference_table(const Groups& groups, const std::string& column, const Decimals& decimals) {
  report::Table table{
      .name = "differences",
      .title = "Every prespecified difference" + in_brackets(groups.front().front().unit),
      .head = {"difference", "study", "first at", "second at", "value", "95% interval", "p", "p (Holm)", "outcome", "seeds"},
      .rows = {},
      .note = column.empty()
                  ? "As each study judged it; p (Holm): corrected for the prespecified differences of that study."
                  : fmt::format("The arms that each study compared, by {} instead: paired t-tests, exploratory.", column)};
  for (const auto& group : groups) {
    for (const Judged& judged : group) {
      table.rows.push_back({judged.name(), judged.study, judged.point_a.empty() ? "-" : judged.point_a,
                            judged.point_b.empty() ? "-" : judged.point_b, decimals.signed_number(judged.value),
                            decimals.interval(judged.low, judged.high), p_cell(judged.p), p_cell(judged.holm_p), judged.outcome,
                            std::to_string(judged.seeds)});
    }
  }
  return table;
}

void check_out(const std::filesystem::path& out) {
  for (const char* const owner : {"plan.toml", "config.toml"}) {
    std::error_code error;
    if (!std::filesystem::exists(out / owner, error)) continue;
    throw Error(Fault::usage, fmt::format("--out {} is the directory of a study or run, whose own report.html would be lost; "
                                          "give another directory",
                                          base::in_quotes(out.string())));
  }
}

}  // namespace

std::filesystem::path write_overview(const std::vector<std::filesystem::path>& studies, const std::filesystem::path& out,
                                     const std::string& column) {
  check_out(out);
  const Groups groups = grouped(studies, column);
  const std::string better = column.empty() ? "left" : column == "accuracy" ? "right" : "";
  const Decimals decimals(groups);
  const std::vector<Mean> means = means_of(groups);
  const std::vector<report::Table> tables{means_table(means, decimals), every_difference_table(groups, column, decimals)};
  std::vector<report::Figure> figures;

  report::HtmlPage page(fmt::format("{} studies", studies.size()));
  page.paragraph(
      fmt::format("{} in {} studies.", base::counted(tables[1].rows.size(), "prespecified difference"), studies.size()),
      "status");
  if (!column.empty()) {
    page.paragraph(
        fmt::format("Exploratory: by {}, with paired t-tests; the studies were made to be judged otherwise, and points "
                    "were chosen by that.",
                    column),
        "note");
  }
  for (const Mean& mean : means) {
    page.paragraph(sentence_of(mean, decimals), "verdict");
    figures.push_back(figure_of(mean, file_of(mean, figures), better, decimals));
  }
  page.paragraph(
      "A mean speaks of studies like these. It takes them as independent: studies that share runs count twice, and studies "
      "of one model on one text can be wrong together. Differences at the edge of a grid, and between runs that are the "
      "same, are in the table only.",
      "caution");
  for (const report::Figure& figure : figures) page.figure(figure);
  page.section("Means");
  page.table(tables[0]);
  page.section("Differences");
  page.table(tables[1]);
  return write_files(out, page.finish(), figures, tables);
}

}  // namespace cautious::study
