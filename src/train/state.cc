// state.json of a checkpoint and summary.json of a run.
#include "train/run.h"

#include <array>
#include <cmath>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "linear/blas.h"
#include "run/provenance.h"

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
    Number{"val_loss", [](RunState& s) -> double& { return s.last.loss; }},
    Number{"val_bpb", [](RunState& s) -> double& { return s.last.bits_per_byte; }},
    Number{"val_accuracy", [](RunState& s) -> double& { return s.last.accuracy; }},
    Number{"best_val_loss", [](RunState& s) -> double& { return s.best_loss; }},
};
constexpr std::array kCounts{
    Count{"step", [](RunState& s) -> std::int64_t& { return s.step; }},
    Count{"data", [](RunState& s) -> std::int64_t& { return s.data; }},
    Count{"losses", [](RunState& s) -> std::int64_t& { return s.losses; }},
    Count{"val_targets", [](RunState& s) -> std::int64_t& { return s.last.targets; }},
    Count{"best_step", [](RunState& s) -> std::int64_t& { return s.best_step; }},
};

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

std::string_view name_of(Outcome outcome) {
  return outcome == Outcome::done ? "done" : outcome == Outcome::stopped ? "stopped" : "diverged";
}

}  // namespace

std::string to_json(const RunState& state) {
  RunState copy = state;
  Json json;
  for (const Count& count : kCounts) json[std::string(count.name)] = count.of(copy);
  for (const Number& number : kNumbers) json[std::string(number.name)] = finite_or_null(number.of(copy));
  return json.dump(2) + "\n";
}

RunState read_state(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw Error(Fault::data, fmt::format("{}: cannot be read: the checkpoint is incomplete", file.string()));
  RunState state;
  const Json json = Json::parse(in, nullptr, false);
  const auto field = [&](std::string_view name) -> const Json& {
    const auto found = json.find(std::string(name));
    if (found == json.end() || !(found->is_number() || found->is_null())) {
      throw Error(Fault::data, fmt::format("{}: '{}' is missing or not a number", file.string(), name));
    }
    return *found;
  };
  if (!json.is_object()) throw Error(Fault::data, fmt::format("{}: not a JSON object", file.string()));
  for (const Count& count : kCounts) count.of(state) = field(count.name).is_null() ? 0 : field(count.name).get<std::int64_t>();
  for (const Number& number : kNumbers) {
    number.of(state) = field(number.name).is_null() ? RunState::kNone : field(number.name).get<double>();
  }
  return state;
}

std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome) {
  const run::Provenance from = run::provenance();
  const std::int64_t tokens = state.step * config.train.batch_size * run::sequence_length(config);
  Json json{{"objective", outcome == Outcome::done ? finite_or_null(state.last.loss) : Json(nullptr)},
            {"status", name_of(outcome)},
            {"val_loss", finite_or_null(state.last.loss)},
            {"val_bpb", finite_or_null(state.last.bits_per_byte)},
            {"val_accuracy", finite_or_null(state.last.accuracy)},
            {"val_targets", state.last.targets},
            {"best_val_loss", finite_or_null(state.best_loss)},
            {"best_step", state.best_step},
            {"steps", state.step},
            {"horizon", steps_of(config)},
            {"tokens", tokens},
            {"parameters", size_of(config.model.shape, 1, 1, false).parameters},
            {"decay_budget", finite_or_null(state.decay_budget)},
            {"seconds", state.seconds},
            {"optimizer", to_string(config.optimizer.recipe)},
            {"seed", config.train.seed},
            {"threads", config.train.threads},
            {"version", from.version},
            {"git", from.git},
            {"compiler", from.compiler},
            {"cpu", from.cpu},
            {"blas", linear::blas_name()}};
  return json.dump(2) + "\n";
}

}  // namespace cautious::train
