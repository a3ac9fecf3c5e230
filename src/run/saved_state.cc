#include "run/saved_state.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "run/seal.h"

namespace cautious::run {
namespace {

using StateJson = nlohmann::ordered_json;

struct StateNumber {
  std::string_view name;
  double SavedState::*member;
};
struct StateCount {
  std::string_view name;
  std::int64_t SavedState::*member;
};

constexpr std::array<StateNumber, 4> kStateNumbers{{{"seconds", &SavedState::seconds},
                                                    {"loss_sum", &SavedState::loss_sum},
                                                    {"decay_budget", &SavedState::decay_budget},
                                                    {"start_norm", &SavedState::start_norm}}};
constexpr std::array<StateCount, 4> kStateCounts{{{"step", &SavedState::step},
                                                  {"data", &SavedState::data},
                                                  {"losses", &SavedState::losses},
                                                  {"best_step", &SavedState::best_step}}};

StateJson finite_or_null(double number) { return std::isfinite(number) ? StateJson(number) : StateJson(nullptr); }

// The fields of a state.json.
class StateFields {
 public:
  explicit StateFields(const std::filesystem::path& file) : file_(file.string()) {
    const auto text = base::read_file_if_any(file, base::kRecord);
    if (!text) base::refuse_content(file_, "cannot be read: the checkpoint is incomplete");
    json_ = base::parse_json<StateJson>(*text);
    if (!json_.is_object()) base::refuse_content(file_, "not a JSON object");
  }

  std::int64_t whole(std::string_view name) const {
    const StateJson& value = field(name);
    const bool negative = value.is_number_integer() && !value.is_number_unsigned();
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    if (value.is_number_integer() && !huge && (!negative || name == "data")) return value.get<std::int64_t>();
    base::refuse_content(file_, fmt::format("'{}' is {}; valid: a whole number from 0 to 2^63-1", name, value.dump()));
  }

  double number(std::string_view name) const { return field(name).is_null() ? SavedState::kNone : field(name).get<double>(); }

  std::vector<std::pair<std::string, std::string>> texts(const std::string& name) const {
    std::vector<std::pair<std::string, std::string>> all;
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_object()) return all;
    for (const auto& [key, value] : found->items()) {
      if (value.is_string()) all.emplace_back(key, value.get<std::string>());
    }
    return all;
  }

 private:
  const StateJson& field(std::string_view name) const {
    const auto found = json_.find(std::string(name));
    if (found != json_.end() && (found->is_number() || found->is_null())) return *found;
    base::refuse_content(file_, fmt::format("'{}' is missing or not a number", name));
  }

  std::string file_;
  StateJson json_;
};

}  // namespace

const Measures& measures_of(TaskKind task) {
  static const Measures text{{"val_loss", "val_bpb", "val_accuracy"}, 0, "targets"};
  static const Measures image{{"val_loss", "val_error", "val_top5_error"}, 1, "images"};
  return task == TaskKind::image ? image : text;
}

SavedState start_of(TaskKind task) {
  SavedState state;
  state.last.numbers.assign(measures_of(task).columns.size(), SavedState::kNone);
  return state;
}

std::string to_json(const SavedState& state, TaskKind task) {
  const Measures& measures = measures_of(task);
  StateJson json;
  for (const StateCount& count : kStateCounts) json[std::string(count.name)] = state.*count.member;
  for (const StateNumber& number : kStateNumbers) json[std::string(number.name)] = finite_or_null(state.*number.member);
  for (std::size_t i = 0; i < measures.columns.size(); ++i) json[measures.columns[i]] = finite_or_null(state.last.numbers[i]);
  json[measures.count_key()] = state.last.count;
  json[measures.best_key()] = finite_or_null(state.best);
  for (const auto& [key, value] : state.config) json["config"][key] = value;
  return json.dump(2) + "\n";
}

SavedState read_state(const CheckpointInfo& saved, TaskKind task, std::int64_t steps) {
  const std::filesystem::path file = saved.path / "state.json";
  const StateFields fields(file);
  const Measures& measures = measures_of(task);
  SavedState state = start_of(task);
  for (const StateCount& count : kStateCounts) state.*count.member = fields.whole(count.name);
  for (const StateNumber& one : kStateNumbers) state.*one.member = fields.number(one.name);
  for (std::size_t i = 0; i < measures.columns.size(); ++i) state.last.numbers[i] = fields.number(measures.columns[i]);
  state.last.count = fields.whole(measures.count_key());
  state.best = fields.number(measures.best_key());
  state.config = fields.texts("config");
  if (state.step != saved.step || state.step > steps) {
    base::refuse_content(file.string(), fmt::format("'step' is {}; this is the checkpoint of step {}, of a run of {} steps",
                                                    state.step, saved.step, steps));
  }
  check_seal(saved.path);
  return state;
}

}  // namespace cautious::run
