// Numbers and outcomes as words, the same in all tables and sentences.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "study/report_parts.h"

namespace cautious::study {
namespace {

constexpr std::array kOutcomeWords{"lower",         "higher",      "practically equal", "not detectable", "edge of the grid",
                                   "the same runs", "too few runs"};

}  // namespace

std::string outcome_text(Outcome outcome) { return kOutcomeWords.at(static_cast<std::size_t>(outcome)); }

std::string exact_text(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string p_cell(double p) {
  if (std::isnan(p)) return "-";
  return p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", p);
}

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

}  // namespace cautious::study
