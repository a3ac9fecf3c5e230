// tokenizer_config.json: which tokens begin and end a text, and the chat template, which may have a file of its own.
#include <fmt/format.h>

#include <string>
#include <system_error>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_json.h"

namespace cautious::data {
namespace {

using nlohmann::json;

[[noreturn]] void refuse_key(const std::string& file, const char* key, const json& value, const char* valid) {
  base::refuse_content(file, fmt::format("{} is {}; valid: {}", key, shown_json(value), valid));
}

// "</s>", or {"content": "</s>", ...}
std::optional<std::string> name_in(const json& config, const char* key, const std::string& file) {
  const json& value = member(config, key);
  if (value.is_null()) return std::nullopt;
  const json& name = value.is_object() ? member(value, "content") : value;
  if (!name.is_string()) refuse_key(file, key, value, "a token's text, an object with it as content, null");
  return name.get<std::string>();
}

// A text, or a list of {"name": ..., "template": ...} of which "default" is taken.
std::optional<std::string> template_in(const json& config, const std::string& file) {
  const json& value = member(config, "chat_template");
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) refuse_key(file, "chat_template", value, "a template, or a list with one named default");
  for (const json& named : value) {
    if (member(named, "name") == "default" && member(named, "template").is_string())
      return member(named, "template").get<std::string>();
  }
  base::refuse_content(file, "chat_template is a list without a template named 'default'");
}

std::size_t deepest(std::string_view text) {
  std::size_t depth = 0, most = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') ++i;
    if (quoted) continue;
    if (text[i] == '[' || text[i] == '{') most = std::max(most, ++depth);
    if (text[i] == ']' || text[i] == '}') depth = depth == 0 ? 0 : depth - 1;
  }
  return most;
}

}  // namespace

json json_of_file(const std::filesystem::path& path) try {
  constexpr std::size_t kDeepest = 100;
  const std::string text = base::read_file(path);
  if (const std::size_t depth = deepest(text); depth > kDeepest)
    base::refuse_content(path.string(), fmt::format("JSON nested {} deep; valid: [0, {}]", depth, kDeepest));
  return json::parse(text);
} catch (const json::exception& error) {
  const std::string_view words = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
  base::refuse_content(path.string(), fmt::format("not JSON: {}", base::in_quotes(words.substr(words.find("] ") + 2))));
}

const json& member(const json& object, const char* name) {
  static const json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

bool is_on(const json& object, const char* name, bool usual) {
  const json& value = member(object, name);
  return value.is_boolean() ? value.get<bool>() : usual;
}

std::string type_of(const json& object) {
  const json& type = member(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

std::string shown_json(const json& value) {
  const std::string text =
      value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
  return base::in_quotes(text.size() > 300 ? text.substr(0, 300) + "..." : text);
}

std::optional<TokenizerConfig> tokenizer_config(const std::filesystem::path& folder) {
  if (folder.extension() == ".gguf") return gguf_tokenizer_config(folder);
  const std::filesystem::path path = folder / "tokenizer_config.json", alone = folder / "chat_template.jinja";
  std::error_code ignored;
  const bool has_config = std::filesystem::exists(path, ignored), has_template = std::filesystem::exists(alone, ignored);
  if (!has_config && !has_template) return std::nullopt;
  TokenizerConfig out{path, has_template ? alone : path, {}, {}, {}, {}};
  if (has_config) {
    const json config = json_of_file(path);
    if (!config.is_object()) base::refuse_content(path.string(), "not an object");
    const json& add_bos = member(config, "add_bos_token");
    if (!add_bos.is_null() && !add_bos.is_boolean()) refuse_key(path.string(), "add_bos_token", add_bos, "true, false");
    if (add_bos.is_boolean()) out.add_bos = add_bos.get<bool>();
    out.bos = name_in(config, "bos_token", path.string());
    out.eos = name_in(config, "eos_token", path.string());
    out.chat_template = template_in(config, path.string());
  }
  if (has_template) out.chat_template = base::read_file(alone);
  return out;
}

nlohmann::ordered_json special_tokens(const Tokenizer& tokenizer) {
  const TokenizerTables tables = tokenizer.tables();
  nlohmann::ordered_json roles = nlohmann::ordered_json::object();
  const auto add = [&](const char* role, std::optional<Token> id) {
    if (id && tables.tokens[*id].kind == TokenKind::special) roles[role] = tables.tokens[*id].text;
  };
  add("bos_token", tokenizer.beginning().value_or(tokenizer.document_end()));
  add("eos_token", tokenizer.document_end());
  for (const auto& token : tables.tokens)
    if (token.kind == TokenKind::unknown) roles["unk_token"] = token.text;
  return roles;
}

nlohmann::ordered_json to_tokenizer_config(const Tokenizer& tokenizer, std::int64_t context, const std::string& chat_template) {
  nlohmann::ordered_json config{{"tokenizer_class", "PreTrainedTokenizerFast"},  // others take it from the model's class, which
                                {"clean_up_tokenization_spaces", false},         // would put a token before every text
                                {"model_max_length", context}};
  config.update(special_tokens(tokenizer));
  if (!chat_template.empty()) config["chat_template"] = chat_template;
  return config;
}

}  // namespace cautious::data
