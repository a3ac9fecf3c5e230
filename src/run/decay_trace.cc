// Records are of equal size, so a step is found by its number.
#include "run/decay_trace.h"
#include "base/json.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::run {
namespace {

constexpr int kFormat = 2;

std::string trace_header(const std::vector<std::string>& tensors) {
  return nlohmann::json{{"format", kFormat}, {"tensors", tensors}}.dump() + "\n";
}

std::size_t record_bytes(std::size_t tensors) { return tensors * (sizeof(float) + sizeof(double)); }

template <class Number>
void append_bytes(std::string& record, Number number) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &number, sizeof(Number));
  record.append(bytes, sizeof(Number));
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(Number));
  return number;
}

std::string trace_in(const std::filesystem::path& file) {
  auto bytes = base::read_file_if_any(file);
  if (!bytes) base::refuse_content(file.string(), "there is no such file; a run writes it with --log.decay_trace=true");
  return *std::move(bytes);
}

// The names of the first line.
std::vector<std::string> tensors_of(const std::filesystem::path& file, const std::string& bytes) {
  const nlohmann::json head = base::parse_json(std::string_view(bytes).substr(0, bytes.find('\n')));
  if (bytes.find('\n') == std::string::npos || !head.is_object() || !head.contains("tensors") || !head["tensors"].is_array()) {
    base::refuse_content(file.string(), "not a decay trace; its first line must be {\"format\": 2, \"tensors\": [...]}");
  }
  if (head.value("format", nlohmann::json(1)) != kFormat) {
    base::refuse_content(
        file.string(), fmt::format("a decay trace of format {}, which does not have the budget of each tensor; this version "
                                   "reads format {}: run the reference again, with --log.decay_trace=true, in a new directory",
                                   base::in_one_line(head.value("format", nlohmann::json(1)).dump()), kFormat));
  }
  std::vector<std::string> tensors;
  for (const auto& name : head["tensors"]) tensors.push_back(name.is_string() ? name.get<std::string>() : "");
  return tensors;
}

}  // namespace

DecayTraceWriter::DecayTraceWriter(const std::filesystem::path& directory, const std::vector<std::string>& tensors,
                                   std::int64_t last_step) {
  const std::filesystem::path path = directory / kDecayTrace;
  const std::string head = trace_header(tensors);
  if (last_step == 0) {
    std::filesystem::remove(path);
  } else {
    const std::size_t keep = head.size() + static_cast<std::size_t>(last_step) * record_bytes(tensors.size());
    const std::string old = trace_in(path);
    tensors_of(path, old);
    if (!old.starts_with(head) || old.size() < keep) {
      base::refuse_content(path.string(), fmt::format("does not reach step {} of this run", last_step));
    }
    base::cut_file(path, keep);
  }
  file_ = std::make_unique<base::AppendFile>(path);
  if (last_step == 0) file_->append(head);
}

void DecayTraceWriter::add(const StepReport& report) {
  std::string record;
  for (const Tally& tally : report.tensors) append_bytes(record, static_cast<float>(tally.count == 0 ? 0 : tally.ratio()));
  for (const Tally& tally : report.tensors) append_bytes(record, tally.budget);
  file_->append(record);
}

DecayTrace DecayTrace::read(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kDecayTrace;
  const std::string bytes = trace_in(path);
  DecayTrace trace;
  trace.tensors_ = tensors_of(path, bytes);
  const std::size_t count = trace.tensors_.size(), size = record_bytes(count);
  for (std::size_t at = bytes.find('\n') + 1; size > 0 && at + size <= bytes.size(); at += size, ++trace.steps_) {
    for (std::size_t i = 0; i < count; ++i) {  // a cut-off last record is left out
      trace.densities_.push_back(number_at<float>(bytes, at + i * sizeof(float)));
      trace.budgets_.push_back(number_at<double>(bytes, at + count * sizeof(float) + i * sizeof(double)));
    }
  }
  for (std::size_t i = 0; i < trace.budgets_.size(); ++i) {
    const bool sound = trace.densities_[i] >= 0 && trace.densities_[i] <= 1 && trace.budgets_[i] >= 0 &&
                       trace.budgets_[i] <= std::numeric_limits<double>::max();
    if (sound) continue;
    base::refuse_content(path.string(),
                         fmt::format("step {}: tensor {} has density {} and budget {}; run the reference again", i / count + 1,
                                     base::in_quotes(trace.tensors_[i % count]), trace.densities_[i], trace.budgets_[i]));
  }
  return trace;
}

}  // namespace cautious::run
