// A confusion matrix: how often each class was taken for each. A row is a true class, a column what it was taken for; blue
// cells are right, orange ones wrong, and the shade is the share of the row. It stays an image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::report {

struct MatrixChart {
  static constexpr std::string_view kScript = "";
  static constexpr std::size_t kMostClasses = 100;  // that the page can tell apart
  std::string title, description;
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> counts;  // as many rows and columns as classes
};

// Counts are written where the cells have room for them; of many classes only some are named.
std::string to_svg(const MatrixChart& chart);
inline std::string page_json(const MatrixChart&) { return {}; }

}  // namespace cautious::report
