#include "data/corpus_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>

#include <cautious/error.h>
#include "data/corpus.h"
#include "data/sets/catalog.h"
#include "base/text.h"

namespace cautious::data {
namespace {

using std::filesystem::path;

constexpr std::array<std::string_view, 8> kSuffixes = {".txt", ".text", ".jsonl", ".ndjson", ".gz", ".dz", ".tokens", ".bin"};

bool known_suffix(const path& file) {
  return std::find(kSuffixes.begin(), kSuffixes.end(), file.extension().string()) != kSuffixes.end();
}

std::vector<path> files_below(const path& folder) try {
  std::vector<path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool hidden = entry.path().filename().string().starts_with('.');
    if (!hidden && known_suffix(entry.path()) && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error(Fault::data, fmt::format("{}: a folder without files to read; suffixes: {}", folder.string(), base::join(kSuffixes)));
  const auto tokens = std::find_if(files.begin(), files.end(), holds_tokens);
  const auto text = std::find_if_not(files.begin(), files.end(), holds_tokens);
  if (tokens != files.end() && text != files.end())
    throw Error(Fault::data,
                fmt::format("{}: a folder with text ({}) and tokens ({}), perhaps of the same text: name its files",
                            folder.string(), text->filename().string(), tokens->filename().string()));
  return files;
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(Fault::data, fmt::format("{}: cannot read the folder: {}", folder.string(), error.code().message()));
}

// What `cautious data get` must be told for this cache; nothing for the one it takes by itself.
std::string cache_option(const path& cache) {
  bool usual = false;
  try {
    usual = cache == default_cache();
  } catch (const Error&) {
  }
  return usual ? "" : fmt::format(" --cache {}", cache.string());
}

std::vector<path> files_of_set(const KnownSet& set, const path& cache) {
  if (set.content != Content::text)
    throw Error(Fault::usage, fmt::format("'{}' is a set of {}, not of text", set.name,
                                          set.content == Content::images ? "images" : "tokenizers"));
  if (!fetched(set, cache))
    throw Error(Fault::data, fmt::format("'{}' is not in {}; get it: cautious data get {}{}", set.name,
                                         place_of(set, cache).parent_path().string(), set.name, cache_option(cache)));
  return files_below(place_of(set, cache));
}

[[noreturn]] void no_such(const std::string& name, const std::string& key) {
  if (name.find_first_of("/.") != name.npos)
    throw Error(Fault::data, fmt::format("{}: no file or folder {}", key, base::in_quotes(name)));
  std::vector<std::string_view> texts;
  for (const KnownSet& set : known_sets()) {
    if (set.content == Content::text) texts.push_back(set.name);
  }
  throw Error(Fault::usage, fmt::format("{}: {}", key, base::unknown("file, folder or known set", name, texts)));
}

std::vector<path> files_of_name(const std::string& name, const std::string& key, const path& cache) {
  std::error_code none;
  const auto status = std::filesystem::status(name, none);
  if (std::filesystem::is_directory(status)) return files_below(name);
  if (std::filesystem::exists(status)) return {name};
  const auto& sets = known_sets();
  const auto set = std::find_if(sets.begin(), sets.end(), [&](const KnownSet& known) { return known.name == name; });
  if (set == sets.end()) no_such(name, key);
  return files_of_set(*set, cache);
}

}  // namespace

bool holds_tokens(const path& file) { return file.extension() == ".tokens" || file.extension() == ".bin"; }

std::vector<path> files_of(const std::vector<std::string>& names, const std::string& key, const path& cache) {
  if (names.empty())
    throw Error(Fault::usage, fmt::format("{} is empty; it takes files, folders or the name of a set of `cautious data`", key));
  std::vector<path> files;
  std::set<path> seen;
  for (const std::string& name : names) {
    for (path& file : files_of_name(name, key, cache)) {
      std::error_code none;
      if (!seen.insert(std::filesystem::weakly_canonical(file, none)).second)
        throw Error(Fault::usage, fmt::format("{} names {} twice", key, file.string()));
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace cautious::data
