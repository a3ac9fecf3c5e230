// tensorboard_write DIRECTORY ROWS LAST_STEP: continues the metrics in DIRECTORY after LAST_STEP, with the rows of a JSONL
// file that come after it; for comparison with other readers.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "run/metrics.h"

int main(int count, char** arguments) try {
  if (count != 4) {
    std::fputs("usage: tensorboard_write DIRECTORY ROWS LAST_STEP\n", stderr);
    return 2;
  }
  const auto rows = cautious::run::read_metrics(arguments[2]);
  const auto last_step = std::stoll(arguments[3]);
  std::vector<std::string> columns = {"step"};
  for (const auto& row : rows)
    for (const auto& [name, value] : row.values) columns.push_back(name);
  cautious::run::MetricsWriter writer(arguments[1], columns, last_step, true);
  for (const auto& row : rows)
    if (row.step > last_step) writer.add(row);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
