// The chat template of a tokenizer_config.json: a Jinja template that makes one text of the messages of a conversation.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::data {

struct Message {
  std::string role, content;  // "system", "user", "assistant"
};

// What bos_token and eos_token are in a template; undefined where there is none.
struct ChatTokens {
  std::optional<std::string> bos, eos;
};

class ChatTemplate {
 public:
  // A template that is not valid, or uses what we do not have, is an Error(Fault::data) with `where` and the template's line.
  static ChatTemplate parse(std::string_view text, const std::string& where, const ChatTokens& tokens = {});
  // That of tokenizer_config.json (or chat_template.jinja) in a model's folder; none if it has none.
  static std::optional<ChatTemplate> of_folder(const std::filesystem::path& folder);

  // `reply`: ends with what an answer of the assistant begins with (add_generation_prompt). raise_exception() in the template
  // is an Error(Fault::data) with its text.
  std::string render(const std::vector<Message>& messages, bool reply) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

}  // namespace cautious::data
