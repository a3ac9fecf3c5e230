#include "study/judged.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "report/table.h"
#include "study/report_parts.h"

namespace cautious::study {
namespace {

// Numbers whose squares are numbers.
constexpr Range kSquared{0, 1e100, false, false};
constexpr double kLeastSd = 1e-100;

// A table that the report of a study left, by the names of its columns. Rows are counted from 1.
class StudyTable {
 public:
  StudyTable(const std::filesystem::path& study, const std::string& table)
      : study_(study), file_(study / "tables" / (table + ".csv")) {
    const std::optional<std::string> text = base::read_file_if_any(file_, base::kRecord);
    if (!text) {
      throw Error(Fault::usage, fmt::format("{} has no tables/{}.csv: it is not a study, or its report was not written; to "
                                            "write it: {}",
                                            base::in_quotes(study.string()), table, again()));
    }
    try {
      rows_ = report::rows_of_csv(*text);
    } catch (const Error& error) {
      throw Error(Fault::data, fmt::format("{}: {}", file_.string(), error.what()));
    }
    if (rows_.empty()) refuse("is empty");
  }

  std::size_t rows() const { return rows_.size() - 1; }
  const std::vector<std::string>& head() const { return rows_[0]; }

  const std::string& text(std::size_t row, const std::string& column) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(rows_[0], column) - rows_[0].begin());
    if (at == rows_[0].size()) refuse(fmt::format("has no column {}", base::in_quotes(column)));
    if (at >= rows_[row].size()) refuse(fmt::format("row {} has no {}", row, base::in_quotes(column)));
    return rows_[row][at];
  }

  double number(std::size_t row, const std::string& column) const {
    const std::string& cell = text(row, column);
    if (cell.empty()) return std::nan("");
    const std::optional<double> value = base::parsed<double>(cell);
    if (!value || !kFinite.contains(*value))
      refuse(fmt::format("row {}: {} is {}; valid: a number", row, column, base::in_quotes(cell)));
    return *value;
  }

  std::size_t count(std::size_t row, const std::string& column) const {
    const std::optional<std::size_t> value = base::parsed<std::size_t>(text(row, column));
    if (!value) refuse(fmt::format("row {}: {} is {}; valid: a count", row, column, base::in_quotes(text(row, column))));
    return *value;
  }

 private:
  std::string again() const { return fmt::format("cautious report {}", base::shell_word(study_.string())); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Fault::data, fmt::format("{}: {}; to write it again: {}", file_.string(), why, again()));
  }

  std::filesystem::path study_, file_;
  std::vector<std::vector<std::string>> rows_;
};

// What says which run it is, and no number of it.
constexpr std::array kIdentity{"arm", "point", "seed", "use", "status"};

void check_column(const StudyTable& runs, const std::string& name, const std::string& column) {
  std::vector<std::string> numbers;
  std::ranges::copy_if(runs.head(), std::back_inserter(numbers),
                       [](const std::string& head) { return std::ranges::find(kIdentity, head) == kIdentity.end(); });
  if (std::ranges::find(numbers, column) != numbers.end()) return;
  throw Error(Fault::usage,
              fmt::format("--column {}: tables/runs.csv of {} has no such numbers; valid: {}", base::in_quotes(column), name,
                          base::in_one_line(fmt::format("{}", fmt::join(numbers, ", ")))));
}

// By seed, of the judged runs of an arm at a point.
std::map<std::string, double> column_of(const StudyTable& runs, const std::string& column, const std::string& arm,
                                        const std::string& point) {
  std::map<std::string, double> values;
  for (std::size_t row = 1; row <= runs.rows(); ++row) {
    const bool here = runs.text(row, "arm") == arm && runs.text(row, "point") == (point.empty() ? "-" : point);
    if (!here || runs.text(row, "use") != "judged" || runs.text(row, "status") != "done") continue;
    const double value = runs.number(row, column);
    if (kSquared.contains(std::abs(value))) values[runs.text(row, "seed")] = value;
  }
  return values;
}

// The same two arms by another number of their runs.
void judge_again(Judged& judged, const StudyTable& runs, const std::string& column) {
  const std::map<std::string, double> all_a = column_of(runs, column, judged.a, judged.point_a),
                                      all_b = column_of(runs, column, judged.b, judged.point_b);
  std::vector<double> a, b;
  for (const auto& [seed, value] : all_a) {
    const auto other = all_b.find(seed);
    if (other == all_b.end()) continue;
    a.push_back(value);
    b.push_back(other->second);
  }
  const Paired found = paired(a, b);
  judged.value = found.n > 0 ? found.difference : std::nan("");
  judged.low = found.interval.low;
  judged.high = found.interval.high;
  judged.p = found.t_p;
  judged.holm_p = std::nan("");
  judged.sd = found.sd / std::sqrt(2.0);
  judged.seeds = found.n;
  if (judged.outcome != outcome_text(Outcome::edge)) {
    const Outcome outcome = found.n < 2          ? Outcome::missing
                            : !(found.sd > 0)    ? Outcome::same
                            : found.t_p < kLevel ? (found.difference < 0 ? Outcome::lower : Outcome::higher)
                                                 : Outcome::open;
    judged.outcome = outcome_text(outcome);
  }
  judged.measure = column;
  judged.unit.clear();
}

}  // namespace

std::string Judged::name() const { return fmt::format("{} - {}", a, b); }

bool Judged::counts() const {
  const bool known = kSquared.contains(std::abs(value)) && std::isfinite(low) && std::isfinite(high);
  return known && sd >= kLeastSd && sd <= kSquared.high && seeds > 1 && outcome != outcome_text(Outcome::edge);
}

Finding Judged::finding() const { return {value, sd * std::sqrt(2 / static_cast<double>(seeds))}; }

std::vector<Judged> judged_in(const std::filesystem::path& study, const std::string& name, const std::string& column) {
  const StudyTable contrasts(study, "contrasts");
  std::optional<StudyTable> runs;
  if (!column.empty()) {
    runs.emplace(study, "runs");
    check_column(*runs, name, column);
  }
  std::vector<Judged> all;
  for (std::size_t row = 1; row <= contrasts.rows(); ++row) {
    const auto text = [&](const char* what) { return contrasts.text(row, what); };
    const auto number = [&](const char* what) { return contrasts.number(row, what); };
    all.push_back({name, text("a"), text("point of a"), text("b"), text("point of b"), text("outcome"), text("measure"),
                   text("unit"), number("difference"), number("low"), number("high"), number("p"), number("p (Holm)"),
                   number("sd"), contrasts.count(row, "seeds")});
    if (runs) judge_again(all.back(), *runs, column);
  }
  return all;
}

}  // namespace cautious::study
