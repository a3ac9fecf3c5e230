// The files that hold a tokenizer. Each function throws Error(Fault::data) with the file and, where there are lines, the line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {

Tokenizer read_tokenizer_json(const std::filesystem::path& path);
Tokenizer read_tiktoken(const std::filesystem::path& path);
Tokenizer read_gpt2_files(const std::filesystem::path& encoder, const std::filesystem::path& merges);

// What the readers share: one line about what is wrong at a place of a file, such as "gpt2/vocab.bpe:17".
[[noreturn]] void refuse_file(std::string_view where, std::string_view what);
inline void check_file(std::string_view where, const std::optional<std::string>& wrong) {
  if (wrong) refuse_file(where, *wrong);
}
std::string text_of_file(const std::filesystem::path& path);

}  // namespace cautious::data
