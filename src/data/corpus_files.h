// What data.path and data.val_path name, as files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cautious::data {

// By their names: .tokens and .bin hold tokens, everything else is text (documents.h).
bool holds_tokens(const std::filesystem::path& file);

// In the order of `names`: a file itself, a folder's files below it with a known suffix, sorted by path, a fetched known set's
// files. `key` is the configuration's, for messages. Nothing named, nothing there, a folder without files to read or with both
// text and tokens, a file named twice, a known set that was not fetched or is no text: an Error.
std::vector<std::filesystem::path> files_of(const std::vector<std::string>& names, const std::string& key,
                                            const std::filesystem::path& cache);

}  // namespace cautious::data
