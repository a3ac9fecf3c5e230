// What the readers of tokenizer.json and tokenizer_config.json share: members that may be absent, and what was understood.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/tokenizer/sentence_pieces.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

// An Error(Fault::data) if it is not JSON, or nested so deeply that showing it would be a danger.
nlohmann::json json_of_file(const std::filesystem::path& path);

// A member that may be absent or null: then the null value.
const nlohmann::json& member(const nlohmann::json& object, const char* name);
bool is_on(const nlohmann::json& object, const char* name, bool usual);
std::string type_of(const nlohmann::json& object);
std::string shown_json(const nlohmann::json& value);

// What a tokenizer.json does to text before it merges (tokenizer_steps.cc). What would change the ids and is not known is
// refused by name rather than ignored.
struct TextSteps {
  std::optional<SpacePrefix> prefix;  // of sentence pieces
  bool splits_words = false;          // of sentence pieces: no merge may reach over a space
  std::string pattern;                // of a byte-level BPE
  bool composed = false;              // NFC
};
TextSteps text_steps(const nlohmann::json& root, const std::string& file);

// The added tokens that its post_processor puts around a text.
struct TextEnds {
  std::optional<std::string> beginning, end;
};
TextEnds text_ends(const nlohmann::json& root, const std::string& file);

// tokenizer_config.json of a folder; nothing where there is none.
struct TokenizerConfig {
  std::filesystem::path path, template_path;  // the template may have a file of its own, chat_template.jinja
  std::optional<std::string> bos, eos, chat_template;
  std::optional<bool> add_bos;
};
std::optional<TokenizerConfig> tokenizer_config(const std::filesystem::path& folder);
// The same out of a GGUF file, which may stand for the folder.
TokenizerConfig gguf_tokenizer_config(const std::filesystem::path& file);

// What others need beside a tokenizer.json. Special tokens by their roles: {"eos_token": "</s>"}. A token that texts contain
// too, as byte 0 of a byte tokenizer, has none: tokenizers would cut its name out of every text.
nlohmann::ordered_json special_tokens(const Tokenizer& tokenizer);
// A tokenizer_config.json, for a model that reads so many tokens; without a template if it is empty.
nlohmann::ordered_json to_tokenizer_config(const Tokenizer& tokenizer, std::int64_t context, const std::string& chat_template);

}  // namespace cautious::data
