// Benchmarks of multiple choice, with the prompts of EleutherAI's lm-evaluation-harness: which continuation is the likeliest?
// Reads the JSONL files of the Hugging Face sets, OLMo's requests.jsonl and llm.c's hellaswag_val.jsonl, also compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

// One item: what the model reads, and what it chooses between.
struct TaskDoc {
  std::string prompt;                      // what follows the examples
  std::vector<std::string> openings;       // by choice, between the prompt and the continuation; empty where there are none
  std::vector<std::string> continuations;  // by choice, with the space they begin with
  std::vector<std::size_t> gold;           // the right ones, at least one
  std::string subset;                      // MMLU's subject, AGIEval's exam; otherwise empty
};

struct Task {
  std::string name;
  bool normalized = false;  // acc_norm counts too
  bool described = false;   // MMLU: a prompt begins with a line about the subject
  bool in_order = false;    // MMLU: the examples are the first ones, for all items the same; otherwise drawn for each item
  bool complete = false;    // OLMo's requests: the prompts have their examples already
  std::vector<TaskDoc> docs = {};
  std::map<std::string, std::vector<std::size_t>> subsets = {};  // of the docs
  std::map<std::string, std::vector<TaskDoc>> examples = {};     // by subset, of the training file; empty if there is none
  std::vector<std::filesystem::path> files = {};                 // all that were read
};

std::span<const std::string_view> task_names();

// The task's items in the folder: <task>/validation.jsonl, <task>.jsonl, <task>_val.jsonl, <task>/requests.jsonl, or a folder
// per subset, each also with .gz; examples come from <task>/train.jsonl (MMLU, AGIEval: dev.jsonl), where there is one, and
// are not read unless asked for. `data` may also be a file of the task. An unknown name is an Error(Fault::usage); no file, no
// item or a malformed one an Error(Fault::data) with file and line. Fields that a task does not need are ignored: the sets have
// many.
Task read_task(std::string_view name, const std::filesystem::path& data, bool with_examples);

// What the model reads before an item's choices: the description, `shots` examples and the prompt. Examples are never the item
// itself, and a function of (seed, task, item). Too few of them is an Error(Fault::data).
std::string context_of(const Task& task, std::size_t doc, std::int64_t shots, std::uint64_t seed);

// Token ids of a choice in its context; the last `scored` of them are the choice's own, at least one, and before them there is
// at least one.
struct ChoiceTokens {
  std::vector<std::int64_t> tokens;
  std::int64_t scored;
};
// All choices of an item. The choice is what the tokens of context + continuation have after those of the context, whose
// trailing spaces go to the continuation. A tokenizer's beginning() is put first; an empty context is that, or the end of a
// document.
std::vector<ChoiceTokens> tokens_of(const TaskDoc& doc, const std::string& context, const Tokenizer& tokenizer);

}  // namespace cautious::data
