#include "cli/checks.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/aside_folder.h"
#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"
#include "data/sets/catalog.h"
#include "run/run_data.h"

namespace cautious::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kShort = std::uintmax_t{4} << 20;  // bytes that are tokenized at once

std::uintmax_t size_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::uintmax_t size = fs::file_size(path, error);
    return error ? 0 : size;
  }
  std::uintmax_t size = 0;
  for (const auto& entry : base::entries_below(path, error)) {
    if (entry.is_regular_file()) size += size_of(entry.path());
  }
  return size;
}

std::uintmax_t size_of(const run::RunConfig::Data& data) {
  std::uintmax_t size = 0;
  for (const auto* const names : {&data.path, &data.val_path}) {
    for (const std::string& name : *names) size += size_of(name);
  }
  return size;
}

// The names of known sets as the folders that they are in.
void place_sets(run::RunConfig::Data& data, data::Content content) {
  const fs::path cache = data::cache_named(data.cache);
  const auto place = [&](std::vector<std::string>& names, const char* key) {
    for (std::string& name : names) {
      if (data::known_set_if_any(name) != nullptr) name = data::path_or_place(name, content, key, cache).string();
    }
  };
  place(data.path, "data.path");
  place(data.val_path, "data.val_path");
}

fs::path temporary_folder() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (!error) return folder;
  throw Error(Fault::failure,
              fmt::format("no folder for temporary files: {}; set TMPDIR to one that can be written", error.message()));
}

// In place of a long text comes a short one: all but the text itself is looked at.
void look_at_tokenizer(run::RunConfig config) {
  const fs::path file = fs::path(config.data.cache) / "short.txt";
  base::write_atomically(file, "A short text, of which half is for validation.\n");
  config.data.path = {file.string()};
  config.data.val_path.clear();
  config.data.weights.clear();
  config.data.val_fraction = 0.5;
  config.data.train_tokens = 0;
  (void)run::open_data(config, {});
}

bool look_at_text(run::RunConfig config, const OpenData& open) {
  struct Long {};
  const fs::path cache = data::cache_named(config.data.cache);
  config.data.tokenizer = data::tokenizer_place(config.data.tokenizer, "data.tokenizer", cache).string();
  place_sets(config.data, data::Content::text);
  if (!config.eval.tasks.empty()) config.eval.data = run::benchmark_files(config).string();
  const base::AsideFolder aside(temporary_folder() / "cautious-data");
  config.data.cache = aside.path().string();
  const bool is_long = size_of(config.data) > kShort;
  try {
    open(config, [&](const std::string&, double) {
      if (is_long) throw Long{};
    });
    return true;
  } catch (const Long&) {
    look_at_tokenizer(std::move(config));
    return false;
  }
}

bool look_at_conversations(const run::RunConfig& config, const OpenData& open) {
  run::RunConfig::Data data = config.data;
  place_sets(data, data::Content::instructions);
  if (size_of(data) > kShort) return false;
  open(config, {});
  return true;
}

}  // namespace

void check_out(const std::string& out) {
  std::error_code error;
  const auto status = fs::status(out, error);
  if (error && error != std::errc::no_such_file_or_directory) {  // a file on the way, a name that is too long
    throw Error(Fault::failure, fmt::format("--out: cannot make the directory {}: {}", base::in_quotes(out), error.message()));
  }
  if (!fs::exists(status) || fs::is_directory(status)) return;
  throw Error(Fault::usage, fmt::format("--out: {} is a file; give a directory", base::in_quotes(out)));
}

bool look_at_data(const run::RunConfig& config, const OpenData& open) {
  if (config.task == run::TaskKind::text) return look_at_text(config, open);
  if (config.task == run::TaskKind::instruct) return look_at_conversations(config, open);
  open(config, {});
  return true;
}

}  // namespace cautious::cli
