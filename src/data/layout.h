// Folders of text and tokens: their files, and the split that each one's name says it is of, as in repositories of data sets:
// data/train-00000-of-00002.parquet, test.jsonl, fineweb_val_000000.bin, validation/part.txt.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

using Files = std::vector<std::filesystem::path>;

// By their names: .tokens and .bin hold tokens, everything else is text (documents.h).
bool holds_tokens(const std::filesystem::path& file);

// All files below the folder with a suffix that is read, sorted by path. None, text beside tokens, a folder that cannot be
// read: an Error(Fault::data).
Files files_below(const std::filesystem::path& folder);

enum class Split { none, train, validation, test };
// The last word of the path below a folder that names one, between characters that are not letters.
Split split_of(const std::filesystem::path& below);

// A folder's files to train on and to validate on: by their names if some are of the training split and others of the
// validation split or, if there are none of that, the test split; then all others are left out. Otherwise all are to train on.
struct Layout {
  Files train{}, held_out{};
  Split held = Split::none;  // which split these are
  std::size_t left_out = 0;  // files of no split, or of the test split beside a validation split
};
Layout layout_of(const std::filesystem::path& folder);

}  // namespace cautious::data
