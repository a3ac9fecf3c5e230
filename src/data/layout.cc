#include "data/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"

namespace cautious::data {
namespace {

constexpr std::array<std::string_view, 10> kSuffixes = {".txt", ".text", ".jsonl", ".ndjson", ".parquet",
                                                        ".gz",  ".dz",   ".zst",   ".tokens", ".bin"};

constexpr std::array<std::pair<std::string_view, Split>, 9> kSplitNames = {{{"train", Split::train},
                                                                            {"training", Split::train},
                                                                            {"validation", Split::validation},
                                                                            {"valid", Split::validation},
                                                                            {"val", Split::validation},
                                                                            {"dev", Split::validation},
                                                                            {"test", Split::test},
                                                                            {"testing", Split::test},
                                                                            {"eval", Split::test}}};

bool known_suffix(const std::filesystem::path& file) {
  return std::find(kSuffixes.begin(), kSuffixes.end(), file.extension().string()) != kSuffixes.end();
}

}  // namespace

bool holds_tokens(const std::filesystem::path& file) { return file.extension() == ".tokens" || file.extension() == ".bin"; }

Files files_below(const std::filesystem::path& folder) {
  Files files;
  std::error_code error;
  for (const auto& entry : base::entries_below(folder, error)) {
    const bool hidden = entry.path().filename().string().starts_with('.');
    if (!hidden && known_suffix(entry.path()) && entry.is_regular_file()) files.push_back(entry.path());
  }
  if (error) throw Error(Fault::data, fmt::format("{}: cannot read the folder: {}", folder.string(), error.message()));
  if (files.empty())
    throw Error(Fault::data,
                fmt::format("{}: a folder without files to read; suffixes: {}", folder.string(), base::join(kSuffixes)));
  const auto tokens = std::find_if(files.begin(), files.end(), holds_tokens);
  const auto text = std::find_if_not(files.begin(), files.end(), holds_tokens);
  if (tokens != files.end() && text != files.end())
    throw Error(Fault::data,
                fmt::format("{}: a folder with text ({}) and tokens ({}), perhaps of the same text: name its files",
                            folder.string(), text->filename().string(), tokens->filename().string()));
  return files;
}

Split split_of(const std::filesystem::path& below) {
  Split split = Split::none;
  std::string word;
  for (const char c : below.string() + "/") {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      word += c;
      continue;
    }
    const auto named = std::ranges::find(kSplitNames, word, [](const auto& name) { return name.first; });
    if (named != kSplitNames.end()) split = named->second;
    word.clear();
  }
  return split;
}

Layout layout_of(const std::filesystem::path& folder) {
  Files all = files_below(folder);
  std::array<Files, 4> of_split;
  for (const auto& file : all) of_split[static_cast<std::size_t>(split_of(file.lexically_relative(folder)))].push_back(file);
  auto& [others, train, validation, test] = of_split;
  const Split held = !validation.empty() ? Split::validation : Split::test;
  if (train.empty() || (validation.empty() && test.empty())) return {std::move(all)};
  const std::size_t left_out = others.size() + (held == Split::validation ? test.size() : 0);
  return {std::move(train), held == Split::validation ? std::move(validation) : std::move(test), held, left_out};
}

}  // namespace cautious::data
