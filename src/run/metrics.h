// The metrics of a run: one row per logged step, in metrics.jsonl, metrics.csv and TensorBoard's event files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cautious::run {

// Numbers by column, in the order of the columns; a column may be missing. "step" is always there.
struct MetricsRow {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;
  std::string sample = {};  // what the model wrote, UTF-8; not in the CSV
};

// Reads metrics.jsonl. A last line without its end (the process was killed) is left out; anything else malformed is an
// Error(Fault::data) with file and line. null is NaN.
std::vector<MetricsRow> read_metrics(const std::filesystem::path& jsonl);

// The step of the last whole row, 0 if there is none or no such file. Reads the end of the file only.
std::int64_t last_step(const std::filesystem::path& jsonl);

// Writes into a run directory. Rows reach the files at once, so that others can follow them.
class MetricsWriter {
 public:
  // Columns of the CSV, "step" first. Rows after `last_step` (of a run that continued after its last checkpoint) are removed
  // from all three; a new run has last_step 0 and no rows. `tensorboard` off: no tb/ folder.
  MetricsWriter(const std::filesystem::path& directory, std::vector<std::string> columns, std::int64_t last_step,
                bool tensorboard);
  ~MetricsWriter();

  // A value whose column is not listed is an Error; NaN and infinities are null in JSON, empty in CSV. A full disk is an
  // Error(Fault::failure).
  void add(const MetricsRow& row);
  void sync() const;  // returns when all rows are on the disk

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// {"step":10,"loss":2.5,...}: the line of metrics.jsonl without its end.
std::string to_json(const MetricsRow& row);

// TensorBoard's event files (tensorboard.cc). Records ready to be appended to a file; the first of a file is the version.
std::string tensorboard_version(double wall_time);
std::string tensorboard_text(double wall_time, std::int64_t step, std::string_view tag, std::string_view text);
std::string tensorboard_scalars(double wall_time, std::int64_t step, std::span<const std::pair<std::string, double>> values);
std::uint32_t crc32c(std::string_view bytes);  // the checksum inside them

}  // namespace cautious::run
