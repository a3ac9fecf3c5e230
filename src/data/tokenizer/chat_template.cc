// Messages in, text out.
#include "data/tokenizer/chat_template.h"

#include <fmt/format.h>

#include <utility>

#include "base/files.h"
#include "data/tokenizer/template_syntax.h"
#include "data/tokenizer/tokenizer_json.h"

namespace cautious::data {
namespace {

constexpr std::size_t kLongestTemplate = 1 << 20;
// Of a template without messages, and per byte of them: far beyond what any real one takes.
constexpr std::uint64_t kWork = 50'000'000, kWorkPerByte = 100;

}  // namespace

struct ChatTemplate::Parts {
  std::string where;
  ChatTokens tokens;
  TemplateStatement::Body body;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

ChatTemplate ChatTemplate::parse(std::string_view text, const std::string& where, const ChatTokens& tokens) {
  if (text.size() > kLongestTemplate)
    base::refuse_content(where, fmt::format("the chat template has {} bytes; valid: [0, {}]", text.size(), kLongestTemplate));
  TemplateTokens read(template_tokens(text, where), where);
  return ChatTemplate(std::make_shared<const Parts>(Parts{where, tokens, parsed_template(read)}));
}

std::optional<ChatTemplate> ChatTemplate::of_folder(const std::filesystem::path& folder) {
  const auto config = tokenizer_config(folder);
  if (!config || !config->chat_template) return std::nullopt;
  return parse(*config->chat_template, config->template_path.string() + ": chat template", {config->bos, config->eos});
}

std::string ChatTemplate::render(const std::vector<Message>& messages, bool reply) const {
  TemplateWork work{parts_->where, kWork};
  TemplateList list;
  for (const Message& message : messages) {
    work.left += kWorkPerByte * (message.role.size() + message.content.size() + 100);
    TemplateDict fields;
    fields.emplace_back("role", message.role);
    fields.emplace_back("content", message.content);
    list.emplace_back(std::move(fields));
  }
  TemplateDict names;
  names.emplace_back("messages", std::move(list));
  names.emplace_back("add_generation_prompt", reply);
  names.emplace_back("tools", TemplateNone{});
  names.emplace_back("documents", TemplateNone{});
  if (parts_->tokens.bos) names.emplace_back("bos_token", *parts_->tokens.bos);
  if (parts_->tokens.eos) names.emplace_back("eos_token", *parts_->tokens.eos);
  return run_template(parts_->body, names, work);
}

}  // namespace cautious::data
