// Renders chat templates for chat_template_test.py: JSON lines in, {"text": ...} or {"error": ...} out.
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "data/tokenizer/chat_template.h"

int main() {
  using namespace cautious;
  for (std::string line; std::getline(std::cin, line);) {
    const auto asked = nlohmann::json::parse(line);
    std::vector<data::Message> messages;
    for (const auto& message : asked["messages"]) messages.push_back({message["role"], message["content"]});
    nlohmann::json answer;
    try {
      const auto chat = data::ChatTemplate::parse(asked["template"].get<std::string>(), "test", {asked["bos"], asked["eos"]});
      answer["text"] = chat.render(messages, asked["reply"]);
    } catch (const Error& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << "\n";
  }
}
