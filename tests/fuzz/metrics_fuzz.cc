// libFuzzer over metrics.jsonl: rows that are read are the same when they are written and read again.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "reader_fuzz.h"
#include "run/metrics.h"

namespace {

bool same(const cautious::run::MetricsRow& a, const cautious::run::MetricsRow& b) {
  if (a.step != b.step || a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i].second, y = b.values[i].second;
    const bool equal = x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
    if (a.values[i].first != b.values[i].first || !equal) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  const std::string& file = memory_file();
  write_bytes(file, {reinterpret_cast<const char*>(data), size});
  const auto last = read_or_refuse([&] { return run::last_step(file); }, file);
  const auto rows = read_or_refuse([&] { return run::read_metrics(file); }, file);
  if (!rows) return 0;
  demand(last && *last == (rows->empty() ? 0 : rows->back().step));
  std::string text;
  for (const run::MetricsRow& row : *rows) text += run::to_json(row) + "\n";
  write_bytes(file, text);
  const auto again = run::read_metrics(file);
  demand(again.size() == rows->size());
  for (std::size_t i = 0; i < again.size(); ++i) demand(same(again[i], (*rows)[i]));
  return 0;
}
