// Each entry by the fields it has; what is wrong with one is said with its place.
#include "data/instructions/conversations.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "base/text.h"
#include "data/documents.h"

namespace cautious::data {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kRoles{"system", "user", "assistant"};

Message message_of(const json& entry, const std::string& where) {
  if (!entry.is_object()) base::refuse_content(where, fmt::format("a message is a JSON {}, not an object", entry.type_name()));
  Message message{text_of(entry, "role", where), text_of(entry, "content", where)};
  if (std::ranges::find(kRoles, message.role) == kRoles.end()) {
    base::refuse_content(where, base::unknown("role", message.role, kRoles));
  }
  return message;
}

Conversation messages_of(const json& list, const std::string& where) {
  if (!list.is_array() || list.empty()) base::refuse_content(where, "field 'messages' is not a list of messages");
  Conversation conversation;
  for (const json& entry : list) conversation.messages.push_back(message_of(entry, where));
  const std::string& last = conversation.messages.back().role;
  if (last != "assistant") {
    base::refuse_content(where,
                         fmt::format("the last message is of the {}, not of the assistant: there is no answer to learn", last));
  }
  return conversation;
}

Conversation alpaca_of(const json& entry, const std::string& where) {
  const bool has_input = entry.contains("input") && !entry["input"].is_null();
  return {{{"user", text_of(entry, "instruction", where)}, {"assistant", text_of(entry, "output", where)}},
          has_input ? text_of(entry, "input", where) : "",
          ""};
}

Conversation conversation_of(const json& entry, const std::string& where) {
  if (entry.contains("messages")) return messages_of(entry["messages"], where);
  if (entry.contains("instruction")) return alpaca_of(entry, where);  // some such files have a field "text" besides
  if (entry.contains("text")) return {{}, "", text_of(entry, "text", where)};
  base::refuse_content(where, "none of the fields that conversations have; valid: instruction and output, messages, text");
}

}  // namespace

std::vector<Conversation> read_conversations(const std::filesystem::path& path) {
  std::vector<Conversation> all;
  if (has_objects(path)) {
    each_object(path, [&](const json& entry, const std::string& where) { all.push_back(conversation_of(entry, where)); });
  } else {
    each_document(path, [&](std::string_view text) { all.push_back({{}, "", std::string(text)}); });
  }
  return all;
}

}  // namespace cautious::data
