// What a model is taught by: conversations, from the files people have them in.
//   Alpaca     .json, a list of {"instruction", "input", "output"}, or .jsonl, one a line; "input" may be empty or absent
//   messages   .jsonl or .json, {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", ...}, ...]}
//   text       .txt, or .jsonl with a field "text": documents that are learned as a whole
// All may be gzipped (.gz).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/tokenizer/chat_template.h"

namespace cautious::data {

struct Conversation {
  // Ends with a message of the assistant. None: `text` is learned as a whole.
  std::vector<Message> messages;
  std::string input;  // of Alpaca: what the one instruction is about; empty: nothing
  std::string text;
};

// All of a file, in its order. What is malformed is an Error(Fault::data) with the file and the line or the entry's number.
std::vector<Conversation> read_conversations(const std::filesystem::path& file);

}  // namespace cautious::data
