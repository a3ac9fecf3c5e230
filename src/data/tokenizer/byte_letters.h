// GPT-2's way to write bytes as printable characters: tokenizer.json, encoder.json and vocab.bpe hold tokens like this.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cautious::data {

std::string to_letters(std::string_view bytes);
// Nothing if a character stands for no byte.
std::optional<std::string> from_letters(std::string_view letters);

}  // namespace cautious::data
