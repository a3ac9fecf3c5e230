// Records are of equal size, so a step is found by its number.
#include "run/decay_trace.h"

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

namespace cautious::run {
namespace {

std::string trace_header(const std::vector<std::string>& tensors) { return nlohmann::json{{"tensors", tensors}}.dump() + "\n"; }

std::size_t record_bytes(std::size_t tensors) { return tensors * sizeof(float) + sizeof(double); }

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
    if (!old.starts_with(head) || old.size() < keep) {
      base::refuse_content(path.string(), fmt::format("does not reach step {} of this run", last_step));
    }
    std::filesystem::resize_file(path, keep);
  }
  file_ = std::make_unique<base::AppendFile>(path);
  if (last_step == 0) file_->append(head);
}

void DecayTraceWriter::add(const StepReport& report) {
  std::string record;
  for (const Tally& tally : report.tensors) append_bytes(record, static_cast<float>(tally.count == 0 ? 0 : tally.ratio()));
  append_bytes(record, report.total.budget);
  file_->append(record);
}

DecayTrace DecayTrace::read(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kDecayTrace;
  const std::string bytes = trace_in(path);
  const std::size_t end = bytes.find('\n');
  const nlohmann::json head = nlohmann::json::parse(bytes.substr(0, end), nullptr, false);
  if (end == std::string::npos || !head.is_object() || !head.contains("tensors") || !head["tensors"].is_array()) {
    base::refuse_content(path.string(), "not a decay trace; its first line must be {\"tensors\": [...]}");
  }
  DecayTrace trace;
  for (const auto& name : head["tensors"]) trace.tensors_.push_back(name.is_string() ? name.get<std::string>() : "");
  const std::size_t size = record_bytes(trace.tensors_.size());
  for (std::size_t at = end + 1; at + size <= bytes.size(); at += size) {  // a cut-off last record is left out
    for (std::size_t i = 0; i < trace.tensors_.size(); ++i)
      trace.ratios_.push_back(number_at<float>(bytes, at + i * sizeof(float)));
    trace.budgets_.push_back(number_at<double>(bytes, at + size - sizeof(double)));
  }
  return trace;
}

double DecayTrace::ratio(std::int64_t step, std::size_t tensor) const {
  return ratios_.at(static_cast<std::size_t>(step - 1) * tensors_.size() + tensor);
}

double DecayTrace::budget(std::int64_t step) const { return budgets_.at(static_cast<std::size_t>(step - 1)); }

}  // namespace cautious::run
