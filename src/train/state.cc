// What a checkpoint says to the run that continues it, and summary.json of a run.
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

#include "base/fields.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "linear/blas.h"
#include "run/config_table.h"
#include "run/provenance.h"

namespace cautious::train {
namespace {

using Json = nlohmann::ordered_json;

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

// Of this process so far, in bytes.
std::int64_t peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::int64_t{used.ru_maxrss} * 1024;
}

// A step's sequences, and all counts of tokens, follow from its number and the batch; so the batch is not among them.
constexpr std::array<std::string_view, 12> kChangeable{
    "train.steps",      "train.tokens", "train.tokens_per_param", "train.epochs",        "train.images", "train.threads",
    "train.grad_accum", "optimizer.lr", "optimizer.weight_decay", "optimizer.grad_clip", "schedule.*",   "eval.*"};

std::string_view name_of(Outcome outcome) {
  return outcome == Outcome::done ? "done" : outcome == Outcome::stopped ? "stopped" : "diverged";
}

}  // namespace

bool can_change(std::string_view key) {
  return std::ranges::any_of(kChangeable, [&](std::string_view one) {
    return one.ends_with('*') ? key.starts_with(one.substr(0, one.size() - 1)) : key == one;
  });
}

std::vector<std::string> changeable_keys() { return {kChangeable.begin(), kChangeable.end()}; }

std::string changes_since(const run::SavedState& before, const run::RunConfig& config,
                          const std::vector<std::string>& changed) {
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
      const std::string declare =
          fmt::format(", or say that the change is meant, as in: --resume --change {}={}", key, is.empty() ? "VALUE" : is);
      throw Error(Fault::usage, fmt::format("config.toml: {} is {}, but step {} was computed with {}; write that back{}", key,
                                            shown(is), before.step, shown(value), can_change(key) ? declare : ""));
    }
    changes.push_back(fmt::format("{} from {} to {}", key, shown(value), shown(is)));
  }
  return changes.empty() ? "" : fmt::format("changed after step {}: {}", before.step, fmt::join(changes, ", "));
}

std::string changes_since(const std::filesystem::path& file, const run::RunConfig& config,
                          const std::vector<std::string>& changed) {
  run::SavedState before;
  before.config = run::computing_keys(run::read_config({.files = {file}, .preset = "", .overrides = {}}));
  return changes_since(before, config, changed);
}

std::string resume_command(const std::filesystem::path& out) {
  return fmt::format("cautious train --out {} --resume", base::shell_word(out));
}

std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome) {
  const run::Provenance from = run::provenance();
  const run::Measures& measures = run::measures_of(config.task);
  const double objective = state.last.numbers[measures.objective];
  Json json{{"objective", outcome == Outcome::done ? finite_or_null(objective) : Json(nullptr)}, {"status", name_of(outcome)}};
  for (std::size_t i = 0; i < measures.columns.size(); ++i) json[measures.columns[i]] = finite_or_null(state.last.numbers[i]);
  json[measures.count_key()] = state.last.count;
  json[measures.best_key()] = finite_or_null(state.best);
  json.update({{"best_step", state.best_step},
               {"steps", state.step},
               {"horizon", steps_of(config)},
               {std::string(run::unit_of(config.task)), state.step * run::units_per_step(config)},
               {"parameters", run::parameters_of(config)},
               {"decay_budget", finite_or_null(state.decay_budget)},
               {"seconds", state.seconds},
               {"optimizer", fmt::format("{} {}", config.optimizer.name, base::to_line(fields(config.optimizer.recipe)))},
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

bool says_done(const std::filesystem::path& summary) {
  const auto text = base::read_file_if_any(summary, base::kRecord);
  if (!text) return false;
  const Json json = base::parse_json<Json>(*text);
  return json.is_object() && json.contains("status") && json["status"] == name_of(Outcome::done);
}

std::vector<std::string> columns_of(run::TaskKind task, const std::vector<std::string>& telemetry) {
  const std::string unit(run::unit_of(task));
  std::vector<std::string> all{"step", unit, "epoch", "loss"};
  const auto add = [&](const std::vector<std::string>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(run::measures_of(task).columns);
  add({"lr", "weight_decay", "grad_norm", "clip_scale", unit + "_per_s", "seconds", "time"});
  add(telemetry);
  return all;
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

run::SavedState read_checkpoint(const run::CheckpointInfo& saved, const run::RunConfig& config, std::int64_t data) {
  run::SavedState state = run::read_state(saved, config.task, steps_of(config));
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
