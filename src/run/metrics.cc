// metrics.jsonl is the truth; at the start the other two are made anew from its rows, whatever a killed process left in them.
#include "run/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"

namespace cautious::run {
namespace {

constexpr std::string_view kSample = "sample";  // the only text of a row

// A row of JSON as a stream of events: a key that occurs twice is seen, and nothing but numbers, and a text as the sample, is
// taken.
class RowEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RowEvents(std::string where) : where_(std::move(where)) {}

  MetricsRow take() {
    if (!has_step_) refuse("no 'step'");
    return std::move(row_);
  }

  bool null() override { return value(std::numeric_limits<double>::quiet_NaN(), "null"); }
  bool boolean(bool value) override { misplaced(value ? "true" : "false"); }
  // Integers come here only when written with a minus; -0 is a number of its own.
  bool number_integer(number_integer_t number) override {
    return value(number == 0 ? -0.0 : static_cast<double>(number), number == 0 ? "-0" : std::to_string(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (!inside_ || key_ != "step") return value(static_cast<double>(number), std::to_string(number));
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) misplaced(std::to_string(number));
    row_.step = static_cast<std::int64_t>(number);
    has_step_ = true;
    return true;
  }
  bool number_float(number_float_t number, const string_t& text) override { return value(number, text); }
  bool string(string_t& text) override {
    if (!inside_ || key_ != kSample) misplaced("the string " + base::in_quotes(text));
    row_.sample = text;
    return true;
  }
  bool binary(binary_t&) override { misplaced("binary"); }
  bool start_array(std::size_t) override { misplaced("an array"); }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    if (inside_) misplaced("an object");
    inside_ = true;
    return true;
  }
  bool end_object() override {
    inside_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (!keys_.insert(name).second) refuse(fmt::format("{} occurs twice", base::in_quotes(name)));
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOverflow = 406;
    refuse(fmt::format("{} at byte {}", error.id == kOverflow ? "a number beyond the range of doubles" : "not JSON", position));
  }

 private:
  bool value(double number, std::string_view text) {
    if (!inside_ || key_ == "step" || key_ == kSample) misplaced(text);
    row_.values.emplace_back(key_, number);
    return true;
  }
  [[noreturn]] void misplaced(std::string_view what) const {
    if (!inside_) refuse(fmt::format("{} instead of an object", what));
    const std::string_view expected = key_ == "step"    ? "a whole number from 0 to 2^63-1"
                                      : key_ == kSample ? "a text"
                                                        : "a number or null";
    refuse(fmt::format("{} is {}; expected {}", base::in_quotes(key_), what, expected));
  }
  [[noreturn]] void refuse(const std::string& what) const { base::refuse_content(where_, what); }

  std::string where_;
  MetricsRow row_;
  std::unordered_set<std::string> keys_;
  std::string key_;  // the last one
  bool inside_ = false, has_step_ = false;
};

// One line of metrics.jsonl, without its end.
MetricsRow read_row(std::string_view line, const std::string& where) {
  // To the JSON parser a NUL is the end of the text, whatever follows.
  if (const auto nul = line.find('\0'); nul != line.npos) base::refuse_content(where, fmt::format("NUL at byte {}", nul + 1));
  RowEvents events(where);
  nlohmann::json::sax_parse(line.begin(), line.end(), &events);
  return events.take();
}

constexpr std::string_view kEvents = "events.out.tfevents.";

// Shortest text that reads back as the same double; "-0" would read back as an integer.
std::string number_text(double value) { return value == 0 && std::signbit(value) ? "-0.0" : base::to_text(value); }

std::string json_of(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double wall_time(const MetricsRow& row) {
  const auto time = std::ranges::find(row.values, "time", &std::pair<std::string, double>::first);
  return time != row.values.end() && std::isfinite(time->second) ? time->second : now();
}

// RFC 4180: fields with separators in quotes, quotes doubled, lines end with CR LF.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// Of the CSV, after "step"; rows may be wide (numbers per tensor), so a name is found in constant time.
struct Columns {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::size_t> positions;

  void add(const std::string& name) {
    if (name != "step" && positions.emplace(name, names.size()).second) names.push_back(name);
  }
};

std::string csv_header(const Columns& columns) {
  std::string line = "step";
  for (const std::string& name : columns.names) line += ',' + csv_field(name);
  return line + "\r\n";
}

std::string csv_line(const MetricsRow& row, const Columns& columns) {
  std::vector<std::string> cells(columns.names.size());
  for (const auto& [name, value] : row.values)
    if (std::isfinite(value)) cells[columns.positions.at(name)] = number_text(value);
  return fmt::format("{}{}{}\r\n", row.step, cells.empty() ? "" : ",", fmt::join(cells, ","));
}

std::string event(const MetricsRow& row) {
  std::string records = tensorboard_scalars(wall_time(row), row.step, row.values);
  if (!row.sample.empty()) records += tensorboard_text(wall_time(row), row.step, kSample, row.sample);
  return records;
}

// Calls take(line, where) with every line that has its end.
template <class Take>
void each_row(const std::filesystem::path& jsonl, const Take& take) {
  const std::string text = base::read_file(jsonl);
  std::string_view rest = text;
  std::size_t number = 0;
  for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
    take(rest.substr(0, end), fmt::format("{}: line {}", jsonl.string(), ++number));
  }
}

// Rows up to a checkpoint were on the disk before it. What follows them may be anything after a power loss, and goes.
std::vector<MetricsRow> rows_until(const std::filesystem::path& jsonl, std::int64_t last_step) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(jsonl, error))) return {};
  std::vector<MetricsRow> rows;
  std::optional<Error> damage;
  each_row(jsonl, [&](std::string_view line, const std::string& where) {
    MetricsRow row;
    try {
      row = read_row(line, where);
    } catch (const Error& unreadable) {
      if (!damage) damage = unreadable;
      return;
    }
    if (row.step > last_step) return;
    if (damage) throw Error(*damage);
    rows.push_back(std::move(row));
  });
  return rows;
}

// TensorBoard shows all files of a folder together, so rows that are gone must be gone from all.
void remove_events(const std::filesystem::path& folder, const std::filesystem::path& except) {
  std::error_code error;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : base::entries_of(folder, error))
    if (entry.path() != except && entry.path().filename().string().starts_with(kEvents)) old.push_back(entry.path());
  if (error && error != std::errc::no_such_file_or_directory) base::fail_at(folder, "list the directory", error.message());
  for (const auto& path : old)
    if (!std::filesystem::remove(path, error) && error) base::fail_at(path, "remove", error.message());
}

std::filesystem::path new_events(const std::filesystem::path& folder, const std::vector<MetricsRow>& rows) {
  if (const std::error_code error = base::make_folders(folder)) base::fail_at(folder, "make the directory", error.message());
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  const auto path = folder / fmt::format("{}{:010}.{}", kEvents, static_cast<std::int64_t>(now()), host.data());
  std::string records = tensorboard_version(rows.empty() ? now() : std::min(wall_time(rows.front()), now()));
  for (const MetricsRow& row : rows) records += event(row);
  base::write_atomically(path, records);
  return path;
}

}  // namespace

std::vector<MetricsRow> read_metrics(const std::filesystem::path& jsonl) {
  std::vector<MetricsRow> rows;
  each_row(jsonl, [&](std::string_view line, const std::string& where) { rows.push_back(read_row(line, where)); });
  return rows;
}

std::int64_t last_step(const std::filesystem::path& jsonl) {
  for (std::size_t most = 1 << 12;; most *= 8) {
    const std::string text = base::read_end(jsonl, most);
    std::string_view rows = text;
    rows = rows.substr(0, rows.rfind('\n') + 1);  // a line without its end is being written
    const bool whole = text.size() < most;
    if (rows.empty() && whole) return 0;
    if (!rows.empty()) rows.remove_suffix(1);
    const std::size_t before = rows.rfind('\n');
    if (before == rows.npos && !whole) continue;  // a row that begins further up
    return read_row(rows.substr(before + 1), jsonl.string() + ": last line").step;
  }
}

struct MetricsWriter::Parts {
  Columns columns;
  base::AppendFile jsonl, csv;
  std::optional<base::AppendFile> events;

  Parts(Columns all, const std::filesystem::path& directory)
      : columns(std::move(all)), jsonl(directory / "metrics.jsonl"), csv(directory / "metrics.csv") {}
};

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, std::vector<std::string> names, std::int64_t last_step,
                             bool tensorboard) {
  const auto rows = rows_until(directory / "metrics.jsonl", last_step);
  Columns columns;
  for (const std::string& name : names) columns.add(name);
  for (const MetricsRow& row : rows)  // what earlier rows have and is no longer asked for stays, after the others
    for (const auto& [name, value] : row.values) columns.add(name);
  std::string jsonl, csv = csv_header(columns);
  for (const MetricsRow& row : rows) {
    jsonl += to_json(row) + '\n';
    csv += csv_line(row, columns);
  }
  base::write_atomically(directory / "metrics.jsonl", jsonl);
  base::write_atomically(directory / "metrics.csv", csv);
  parts_ = std::make_unique<Parts>(std::move(columns), directory);
  const auto path = tensorboard ? new_events(directory / "tb", rows) : std::filesystem::path{};
  remove_events(directory / "tb", path);
  if (tensorboard) parts_->events.emplace(path);
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::add(const MetricsRow& row) {
  const Columns& columns = parts_->columns;
  std::vector<bool> seen(columns.names.size());
  for (const auto& [name, value] : row.values) {
    const auto position = columns.positions.find(name);
    if (position == columns.positions.end())
      throw Error(Fault::usage,
                  base::unknown("metric", name, std::vector<std::string_view>(columns.names.begin(), columns.names.end())));
    if (seen[position->second])
      throw Error(Fault::usage, fmt::format("metric {} occurs twice in the row of step {}", base::in_quotes(name), row.step));
    seen[position->second] = true;
  }
  parts_->jsonl.append(to_json(row) + '\n');
  parts_->csv.append(csv_line(row, parts_->columns));
  if (parts_->events) parts_->events->append(event(row));
}

void MetricsWriter::sync() const {
  parts_->jsonl.sync();
  parts_->csv.sync();
  if (parts_->events) parts_->events->sync();
}

std::string to_json(const MetricsRow& row) {
  std::string line = fmt::format("{{\"step\":{}", row.step);
  for (const auto& [name, value] : row.values)
    line += fmt::format(",{}:{}", json_of(name), std::isfinite(value) ? number_text(value) : "null");
  if (!row.sample.empty()) line += fmt::format(",\"{}\":{}", kSample, json_of(row.sample));
  return line + '}';
}

}  // namespace cautious::run
