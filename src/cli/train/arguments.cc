#include "cli/train/arguments.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/process.h"
#include "base/text.h"
#include "data/corpus.h"
#include "data/sets/catalog.h"
#include "train/run.h"

namespace cautious::cli {
namespace {

// What a run can be continued with.
[[noreturn]] void refuse_change(const std::string& flag, std::string_view key, const TrainArguments& args) {
  throw Error(Fault::usage,
              fmt::format("{} cannot change {}, because what is saved depends on it; keys that can change: {}; "
                          "for others start a new run with --init {}",
                          flag, base::in_quotes(key), base::join(train::changeable_keys()), base::shell_word(args.out)));
}

// What may change when a run is continued: where it runs, how it is watched and saved, never what it computes.
void check_resumed(const TrainArguments& args) {
  if (!args.configs.empty() || !args.preset.empty()) {
    throw Error(Fault::usage, fmt::format("--resume continues with {}; remove --{}",
                                          (std::filesystem::path(args.out) / "config.toml").string(),
                                          args.configs.empty() ? "preset" : "config"));
  }
  for (const auto& [key, value] : args.overrides) {
    if (key.starts_with("log.") || key.starts_with("checkpoint.") || key == "train.timeout" || key == "train.device") continue;
    if (!train::can_change(key)) refuse_change("--resume", key, args);
    throw Error(Fault::usage, fmt::format("--resume cannot change {} in passing; to go on with another value, on record: "
                                          "--change {}={}; keys that can change freely: checkpoint.*, log.*, train.device, "
                                          "train.timeout",
                                          key, key, value));
  }
}

run::RunConfig settled(run::RunConfig config, const ranks::Place& place) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (config.train.threads == 0) config.train.threads = std::max(1, cores / place.local_ranks);
  const auto absolute = [](std::string& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) path = std::filesystem::absolute(path).lexically_normal().string();
  };
  std::for_each(config.data.path.begin(), config.data.path.end(), absolute);
  std::for_each(config.data.val_path.begin(), config.data.val_path.end(), absolute);
  for (std::string* path :
       {&config.model.from, &config.optimizer.density_from, &config.optimizer.budget_from, &config.eval.data}) {
    absolute(*path);
  }
  if (config.data.tokenizer != "bytes") {
    config.data.tokenizer =
        data::tokenizer_place(config.data.tokenizer, "data.tokenizer", data::cache_named(config.data.cache)).string();
    absolute(config.data.tokenizer);
  }
  if (!config.data.cache.empty()) config.data.cache = std::filesystem::absolute(config.data.cache).lexically_normal().string();
  return config;
}

}  // namespace

std::vector<Setting> changes_in(const TrainArguments& args) {
  std::vector<Setting> changes;
  for (const std::string& text : args.changes) {
    const std::size_t equal = text.find('=');
    std::string key = text.substr(0, equal);
    std::ranges::replace(key, '-', '_');
    if (equal == text.npos || key.empty()) {
      throw Error(Fault::usage, fmt::format("--change is {}; write KEY=VALUE, as in: --change train.steps=4000,train.threads=2",
                                            base::in_quotes(text)));
    }
    changes.emplace_back(std::move(key), text.substr(equal + 1));
  }
  return changes;
}

run::ReadConfig read_arguments(const TrainArguments& args) {
  if (!args.changes.empty() && !args.resume) {
    throw Error(Fault::usage, "--change is for --resume; a new run is given --section.key=value");
  }
  run::ConfigSource source{
      .files = {args.configs.begin(), args.configs.end()}, .preset = args.preset, .overrides = args.overrides};
  if (args.resume) {
    check_resumed(args);
    source.files = {std::filesystem::path(args.out) / "config.toml"};
    for (const Setting& change : changes_in(args)) source.overrides.push_back(change);
    if (!std::filesystem::exists(source.files[0])) {
      throw Error(Fault::usage, fmt::format("--resume: {} is not a run directory: it has no config.toml", args.out));
    }
  }
  run::ReadConfig read = run::read_layers(source);
  for (const Setting& change : changes_in(args)) {
    if (!train::can_change(change.first)) refuse_change("--change", change.first, args);
  }
  for (const std::string& note : read.notes) {
    if (!args.quiet) base::tell(base::error_line("note: " + note));
  }
  return read;
}

run::RunConfig config_of(const TrainArguments& args, const ranks::Place& place) {
  return settled(read_arguments(args).config, place);
}

void check_task(const run::RunConfig& config) {
  if (config.task != run::TaskKind::external) return;
  throw Error(Fault::usage, "task is 'external', which a program of your own trains, as in 'cautious compare --command LINE'");
}

run::RunConfig config_to_train(const TrainArguments& args, const ranks::Place& place) {
  run::RunConfig config = config_of(args, place);
  check_task(config);
  if (config.data.path.empty()) {
    throw Error(Fault::usage, "data.path is not set; give --data.path=FILE, or a set's name from 'cautious data list'");
  }
  if (args.out.empty()) throw Error(Fault::usage, "--out is missing; give a directory for the run");
  train::check_ranks(config, place.ranks);
  return config;
}

}  // namespace cautious::cli
