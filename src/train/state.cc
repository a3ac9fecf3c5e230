// state.json of a checkpoint and summary.json of a run.
#include "train/run.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "linear/blas.h"
#include "run/config_table.h"
#include "run/provenance.h"
#include "run/seal.h"

namespace cautious::train {
namespace {

using Json = nlohmann::ordered_json;

struct Number {
  std::string_view name;
  double& (*of)(RunState& state);
};
struct Count {
  std::string_view name;
  std::int64_t& (*of)(RunState& state);
};

constexpr std::array kNumbers{
    Number{"seconds", [](RunState& s) -> double& { return s.seconds; }},
    Number{"loss_sum", [](RunState& s) -> double& { return s.loss_sum; }},
    Number{"decay_budget", [](RunState& s) -> double& { return s.decay_budget; }},
    Number{"start_norm", [](RunState& s) -> double& { return s.start_norm; }},
};
constexpr std::array kCounts{
    Count{"step", [](RunState& s) -> std::int64_t& { return s.step; }},
    Count{"data", [](RunState& s) -> std::int64_t& { return s.data; }},
    Count{"losses", [](RunState& s) -> std::int64_t& { return s.losses; }},
    Count{"best_step", [](RunState& s) -> std::int64_t& { return s.best_step; }},
};

std::string count_key(const Measures& measures) { return "val_" + measures.count; }
std::string best_key(const Measures& measures) { return "best_" + measures.columns[measures.objective]; }

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

// Of this process so far, in bytes.
std::int64_t peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::int64_t{used.ru_maxrss} * 1024;
}

std::string_view name_of(Outcome outcome) {
  return outcome == Outcome::done ? "done" : outcome == Outcome::stopped ? "stopped" : "diverged";
}

}  // namespace

const Measures& measures_of(run::TaskKind task) {
  static const Measures text{{"val_loss", "val_bpb", "val_accuracy"}, 0, "targets"};
  static const Measures image{{"val_loss", "val_error", "val_top5_error"}, 1, "images"};
  return task == run::TaskKind::image ? image : text;
}

RunState start_of(run::TaskKind task) {
  RunState state;
  state.last.numbers.assign(measures_of(task).columns.size(), RunState::kNone);
  return state;
}

std::string to_json(const RunState& state, run::TaskKind task) {
  const Measures& measures = measures_of(task);
  RunState copy = state;
  Json json;
  for (const Count& count : kCounts) json[std::string(count.name)] = count.of(copy);
  for (const Number& number : kNumbers) json[std::string(number.name)] = finite_or_null(number.of(copy));
  for (std::size_t i = 0; i < measures.columns.size(); ++i) json[measures.columns[i]] = finite_or_null(state.last.numbers[i]);
  json[count_key(measures)] = state.last.count;
  json[best_key(measures)] = finite_or_null(state.best);
  for (const auto& [key, value] : state.config) json["config"][key] = value;
  return json.dump(2) + "\n";
}

namespace {

RunState read_state(const std::filesystem::path& file, run::TaskKind task) {
  const auto text = base::read_file_if_any(file);
  if (!text) throw Error(Fault::data, fmt::format("{}: cannot be read: the checkpoint is incomplete", file.string()));
  RunState state = start_of(task);
  const Json json = base::parse_json<Json>(*text);
  const auto field = [&](std::string_view name) -> const Json& {
    const auto found = json.find(std::string(name));
    if (found == json.end() || !(found->is_number() || found->is_null())) {
      throw Error(Fault::data, fmt::format("{}: '{}' is missing or not a number", file.string(), name));
    }
    return *found;
  };
  if (!json.is_object()) throw Error(Fault::data, fmt::format("{}: not a JSON object", file.string()));
  const auto whole = [&](std::string_view name) {
    const Json& value = field(name);
    const bool negative = value.is_number_integer() && !value.is_number_unsigned();
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    if (value.is_number_integer() && !huge && (!negative || name == "data")) return value.get<std::int64_t>();
    throw Error(Fault::data,
                fmt::format("{}: '{}' is {}; valid: a whole number from 0 to 2^63-1", file.string(), name, value.dump()));
  };
  const auto number = [&](std::string_view name) {
    return field(name).is_null() ? RunState::kNone : field(name).get<double>();
  };
  const Measures& measures = measures_of(task);
  for (const Count& count : kCounts) count.of(state) = whole(count.name);
  for (const Number& one : kNumbers) one.of(state) = number(one.name);
  for (std::size_t i = 0; i < measures.columns.size(); ++i) state.last.numbers[i] = number(measures.columns[i]);
  state.last.count = whole(count_key(measures));
  state.best = number(best_key(measures));
  if (const auto config = json.find("config"); config != json.end() && config->is_object()) {
    for (const auto& [key, value] : config->items()) {
      if (value.is_string()) state.config.emplace_back(key, value.get<std::string>());
    }
  }
  return state;
}

}  // namespace

std::string changes_since(const RunState& before, const run::RunConfig& config, const std::vector<std::string>& changed) {
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  const auto now = run::computing_keys(config);
  std::vector<std::string> changes;
  for (const auto& [key, value] : before.config) {
    const auto found = std::ranges::find(now, key, &std::pair<std::string, std::string>::first);
    const std::string is = found == now.end() ? "" : found->second;
    if (is == value) continue;
    const auto rivals = run::rivals_of(config.task, key);  // setting one unsets the others
    const bool meant = std::ranges::any_of(
        changed, [&](const std::string& other) { return other == key || std::ranges::find(rivals, other) != rivals.end(); });
    if (!meant) {
      throw Error(Fault::usage,
                  fmt::format("config.toml: {} is {}, but step {} was computed with {}; write that back, or say that the "
                              "change is meant, as in: --resume --change {}={}",
                              key, shown(is), before.step, shown(value), key, is.empty() ? "VALUE" : is));
    }
    changes.push_back(fmt::format("{} from {} to {}", key, shown(value), shown(is)));
  }
  return changes.empty() ? "" : fmt::format("changed after step {}: {}", before.step, fmt::join(changes, ", "));
}

std::string resume_command(const std::filesystem::path& out) {
  return fmt::format("cautious train --out {} --resume", base::shell_word(out));
}

std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome) {
  const run::Provenance from = run::provenance();
  const Measures& measures = measures_of(config.task);
  const double objective = state.last.numbers[measures.objective];
  Json json{{"objective", outcome == Outcome::done ? finite_or_null(objective) : Json(nullptr)}, {"status", name_of(outcome)}};
  for (std::size_t i = 0; i < measures.columns.size(); ++i) json[measures.columns[i]] = finite_or_null(state.last.numbers[i]);
  json[count_key(measures)] = state.last.count;
  json[best_key(measures)] = finite_or_null(state.best);
  json.update({{"best_step", state.best_step},
               {"steps", state.step},
               {"horizon", steps_of(config)},
               {std::string(run::unit_of(config.task)), state.step * run::units_per_step(config)},
               {"parameters", run::parameters_of(config)},
               {"decay_budget", finite_or_null(state.decay_budget)},
               {"seconds", state.seconds},
               {"optimizer", to_string(config.optimizer.recipe)},
               {"seed", config.train.seed},
               {"threads", config.train.threads},
               {"ranks", state.ranks},
               {"optimizer_bytes", state.optimizer_bytes},
               {"peak_rss_bytes", peak_memory()},
               {"version", from.version},
               {"git", from.git},
               {"compiler", from.compiler},
               {"cpu", from.cpu},
               {"blas", linear::blas_name()}});
  if (state.ranks > 1) {
    json["traffic"] = {{"sent_bytes_per_step", state.traffic.bytes},
                       {"seconds_per_step", state.traffic.seconds},
                       {"waited_seconds_per_step", state.traffic.waited}};
  }
  for (const Score& score : state.scores) {
    json[score.name] = finite_or_null(score.value);
    json[score.name + "_stderr"] = finite_or_null(score.error);
  }
  return json.dump(2) + "\n";
}

std::string summary_csv(const std::vector<run::MetricsRow>& rows) {
  std::string text = "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\r\n";
  for (const run::MetricsRow& row : rows) {
    const auto value = [&](std::string_view name) {
      const auto found = std::ranges::find(row.values, name, &std::pair<std::string, double>::first);
      return found == row.values.end() ? RunState::kNone : found->second;
    };
    if (std::isnan(value("val_error"))) continue;
    text += fmt::format("{},{},{},{},{},{}\r\n", value("epoch"), value("loss"), value("val_loss"), 100 - value("val_error"),
                        100 - value("val_top5_error"), value("lr"));
  }
  return text;
}

RunState read_checkpoint(const run::CheckpointInfo& saved, const run::RunConfig& config, std::int64_t data) {
  const std::filesystem::path file = saved.path / "state.json";
  const std::int64_t steps = steps_of(config);
  RunState state = read_state(file, config.task);
  if (state.step != saved.step || state.step > steps) {
    throw Error(Fault::data, fmt::format("{}: 'step' is {}; this is the checkpoint of step {}, of a run of {} steps",
                                         file.string(), state.step, saved.step, steps));
  }
  run::check_seal(saved.path);
  if (state.data != data) {
    throw Error(
        Fault::usage,
        fmt::format("data.path is not what {} was trained on: {} changed; restore it, or start a new run with another --out",
                    saved.path.string(),
                    config.task == run::TaskKind::image ? "the images have" : "the text or the tokenizer has"));
  }
  return state;
}

}  // namespace cautious::train
