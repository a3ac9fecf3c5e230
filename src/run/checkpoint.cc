// Only rename() makes a name valid or invalid: whatever is half written or half removed has a name that begins with a dot.
#include "run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include <cautious/error.h>

#include "base/aside_folder.h"
#include "base/files.h"
#include "base/text.h"
#include "data/corpus.h"
#include "data/sets/catalog.h"
#include "model/lora.h"

namespace cautious::run {
namespace {

constexpr const char* kStep = "step_";
constexpr const char* kBest = "best";

std::string folder_name(std::int64_t step) { return fmt::format("{}{:08}", kStep, step); }

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  const auto step = base::parsed<std::int64_t>(name.substr(5));
  return step && *step >= 0 && name == folder_name(*step) ? step : std::nullopt;
}

// Nothing if there is no such folder.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : base::entries_of(folder, error)) paths.push_back(entry.path());
  if (error && error != std::errc::no_such_file_or_directory) base::fail_at(folder, "list the directory", error.message());
  return paths;
}

void discard(const std::filesystem::path& path) {
  std::error_code error;
  do std::filesystem::remove_all(path, error);
  while (error == std::errc::interrupted);
  if (error) base::fail_at(path, "remove", error.message());
}

// An older checkpoint of the step changes places with the new one, so that there is always one; where the file system cannot
// do that, it goes aside first.
void put_in_place(const std::filesystem::path& aside, const std::filesystem::path& target) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(target, error))) return base::rename_folder(aside, target);
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  const auto old = base::aside_of(target.string() + ".old");
  base::rename_folder(target, old);
  base::rename_folder(aside, target);
  discard(old);
}

// The link is made aside and renamed, as everything here.
void link_best(const std::filesystem::path& folder, std::int64_t step) {
  const auto aside = folder / fmt::format(".{}.tmp", kBest);
  std::error_code error;
  std::filesystem::remove(aside, error);  // of a process that was killed here
  std::filesystem::create_symlink(folder_name(step), aside, error);
  if (error) base::fail_at(folder / kBest, "link", error.message());
  base::rename_folder(aside, folder / kBest);
  base::sync_path(folder);
}

void remove_oldest(const std::filesystem::path& folder, std::int64_t newest, std::int64_t keep) {
  std::error_code none;  // no link
  const std::string best = std::filesystem::read_symlink(folder / kBest, none).string();
  auto all = list_checkpoints(folder);
  auto excess = static_cast<std::int64_t>(all.size()) - keep;
  for (const CheckpointInfo& old : all) {
    if (excess <= 0) break;
    if (old.step == newest) continue;  // the one just written stays even if others have higher steps
    --excess;
    if (folder_name(old.step) == best) continue;  // besides the others
    const auto aside = base::aside_of(old.path);
    base::rename_folder(old.path, aside);
    discard(aside);
  }
}

bool is_model(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) {
    std::error_code error;
    return std::filesystem::is_regular_file(folder / name, error);
  };
  const bool adapters = has(model::kAdapterConfig) && has(model::kAdapterWeights);
  return adapters || (has("config.json") && (has("model.safetensors") || has("model.safetensors.index.json")));
}

// A file of llama2.c, or a folder with one, or a GGUF file. A run's directory, which has other .bin files, has a config.toml.
bool is_foreign(const std::filesystem::path& path) {
  const auto is_bin = [](const std::filesystem::path& file) {
    std::error_code error;
    const bool named = file.extension() == ".bin" && file.filename() != "tokenizer.bin";
    return named && std::filesystem::is_regular_file(file, error);
  };
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return is_bin(path) || path.extension() == ".gguf";
  return !std::filesystem::exists(path / "config.toml", error) && std::ranges::any_of(entries(path), is_bin);
}

}  // namespace

std::vector<CheckpointInfo> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<CheckpointInfo> found;
  for (const auto& path : entries(folder)) {
    std::error_code error;
    if (const auto step = step_of(path.filename().string()); step && std::filesystem::is_directory(path, error))
      found.push_back({*step, path});
  }
  std::ranges::sort(found, {}, &CheckpointInfo::step);
  return found;
}

void write_checkpoint(const std::filesystem::path& folder, std::int64_t step, Keeping keeping,
                      const std::function<void(const std::filesystem::path& aside)>& write) {
  base::check_range("the step of a checkpoint", static_cast<double>(step), kNonnegative);
  base::check_range("the number of checkpoints to keep", static_cast<double>(keeping.keep), {1, kLargest, false, true});
  if (const std::error_code error = base::make_folders(folder)) base::fail_at(folder, "make the directory", error.message());
  base::sync_path(folder.parent_path());  // made by an earlier process, it may not be on the disk; nor a file beside it
  base::remove_stray_folders(folder, kStep);
  {
    const base::AsideFolder aside(folder / folder_name(step));
    write(aside.path());
    aside.sync();
    put_in_place(aside.path(), folder / folder_name(step));
    base::sync_path(folder);
  }
  if (keeping.best) link_best(folder, step);
  remove_oldest(folder, step, keeping.keep);
}

void tidy_checkpoints(const std::filesystem::path& folder, std::int64_t keep) {
  base::remove_stray_folders(folder, kStep);
  if (const auto all = list_checkpoints(folder); !all.empty()) remove_oldest(folder, all.back().step, keep);
}

namespace {

// "did you mean 'stories15m'? " for a path that is nearly the name of a known model.
std::string model_meant(const std::string& path) {
  std::vector<std::string_view> models;
  for (const data::KnownSet& set : data::known_sets()) {
    if (set.content == data::Content::model) models.emplace_back(set.name);
  }
  const std::string_view meant = base::closest(path, models);
  return meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant);
}

}  // namespace

std::filesystem::path find_checkpoint(const std::filesystem::path& run) {
  if (is_model(run)) return run;
  const std::string name = base::in_quotes(run.string());
  std::error_code error;
  if (!std::filesystem::exists(run, error) && data::known_set_if_any(run.string()) != nullptr)
    return data::place_named(run.string(), data::Content::model, "", data::default_cache());
  const bool folder = std::filesystem::is_directory(run, error);
  const auto all = folder ? list_checkpoints(run / "checkpoints") : std::vector<CheckpointInfo>{};
  if (all.empty() && is_foreign(run)) return run;
  if (!folder) {
    const bool missing = error == std::errc::no_such_file_or_directory;
    const std::string why = missing ? "does not exist" : error ? "cannot be read: " + error.message() : "is not a directory";
    throw Error(Fault::data, fmt::format("{} {}; {}expected a run directory, a folder with config.json and model.safetensors "
                                         "or its index, a .gguf, a .bin of llama2.c, or a known model",
                                         name, why, missing ? model_meant(run.string()) : ""));
  }
  if (all.empty())
    throw Error(Fault::data, fmt::format("{} holds no checkpoint; looked for checkpoints/step_* (of a run), for config.json "
                                         "with model.safetensors or its index, and for a .bin of llama2.c",
                                         name));
  if (!is_model(all.back().path))
    throw Error(Fault::data,
                fmt::format("{} has no model.safetensors with config.json", base::in_quotes(all.back().path.string())));
  return all.back().path;
}

std::filesystem::path tokenizer_beside(const std::filesystem::path& model) {
  std::error_code error;
  if (std::filesystem::is_directory(model, error) || model.extension() == ".gguf") return model;
  return std::filesystem::absolute(model).parent_path();
}

}  // namespace cautious::run
