// Tokens and merges as the Hugging Face layout and GPT-2's files write them: in letters (byte_letters.h), the tokens as the
// keys of a JSON object, a merge as two of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/tokenizer/tokenizer_builder.h"

namespace cautious::data {

nlohmann::json json_of_file(const std::filesystem::path& path);

// Also finds the bytes' tokens. Names in `special` stand for no bytes.
void add_vocabulary(TokenizerBuilder& builder, const nlohmann::json& vocabulary, const std::vector<std::string_view>& special,
                    const std::string& file);

// "left right"; returns what is wrong with it.
std::optional<std::string> add_merge_line(TokenizerBuilder& builder, std::string_view line);

}  // namespace cautious::data
