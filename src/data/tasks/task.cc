// Where a task's files are, what is read from them, and the examples of a prompt.
#include "data/tasks/task.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/documents.h"
#include "data/tasks/kinds.h"

namespace cautious::data {
namespace {

namespace fs = std::filesystem;

// The file of that name, or a compressed one.
std::optional<fs::path> plain_or_compressed(const fs::path& file) {
  for (const char* const ending : {"", ".gz"}) {
    const fs::path candidate = file.string() + ending;
    if (fs::is_regular_file(candidate)) return candidate;
  }
  return std::nullopt;
}

std::optional<fs::path> first_of(const fs::path& folder, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    if (auto file = plain_or_compressed(folder / fmt::format("{}.jsonl", name))) return file;
  }
  return std::nullopt;
}

// Items and examples of one folder, or of one subset.
struct TaskFiles {
  fs::path items;
  std::optional<fs::path> training;
  std::string subset;
};

std::optional<TaskFiles> files_of_folder(const TaskKind& kind, const fs::path& folder, const std::string& subset) {
  auto items = first_of(folder, kind.splits);
  if (!items) items = plain_or_compressed(folder / "requests.jsonl");
  if (!items) return std::nullopt;
  return TaskFiles{*items, first_of(folder, kind.training), subset};
}

std::vector<TaskFiles> files_of_subsets(const TaskKind& kind, const fs::path& folder) {
  std::vector<TaskFiles> all;
  for (const fs::directory_entry& entry : base::entries_of(folder)) {
    if (!entry.is_directory()) continue;
    if (auto files = files_of_folder(kind, entry.path(), entry.path().filename().string())) all.push_back(*files);
  }
  return all;
}

std::vector<TaskFiles> find_files(const TaskKind& kind, const fs::path& data) {
  if (fs::is_regular_file(data)) return {TaskFiles{data, std::nullopt, ""}};
  if (!fs::is_directory(data)) {
    throw Error(Fault::data, fmt::format("--data: no file or folder {}", base::in_quotes(data.string())));
  }
  for (const std::string_view name : {kind.name, kind.folder}) {
    if (fs::is_directory(data / name)) {
      if (const auto files = files_of_folder(kind, data / name, "")) return {*files};
      if (kind.divided) {
        if (auto all = files_of_subsets(kind, data / name); !all.empty()) return all;
      }
    }
    for (const char* const form : {"{}.jsonl", "{}_val.jsonl"}) {
      if (const auto file = plain_or_compressed(data / fmt::format(fmt::runtime(form), name))) return {{*file, {}, ""}};
    }
  }
  base::refuse_content(data.string(),
                       fmt::format("no items of {0}; looked for {0}/{1}.jsonl, {0}/requests.jsonl, {2}{0}.jsonl and "
                                   "{0}_val.jsonl, also with .gz",
                                   kind.name, kind.splits[0],
                                   kind.divided ? fmt::format("{}/<subset>/{}.jsonl, ", kind.name, kind.splits[0]) : ""));
}

// Of one file; whether they are OLMo's requests.
bool read_docs(const TaskKind& kind, const fs::path& file, const std::string& subset, std::vector<TaskDoc>& docs) {
  const std::size_t before = docs.size();
  RequestReader requests;
  std::optional<bool> complete;
  each_object(file, [&](const nlohmann::json& item, const std::string& where) {
    if (!complete) complete = is_request(item);
    if (*complete) {
      requests.add(item, where, docs);
    } else {
      docs.push_back(kind.read(item, where));
      if (kind.described && subset.empty() && docs.back().subset.empty()) field_of(item, "subject", where);
    }
    if (!subset.empty() && docs.size() > before) docs.back().subset = subset;
  });
  requests.finish(docs);
  if (docs.size() == before) base::refuse_content(file.string(), fmt::format("no items of {}", kind.name));
  return *complete;
}

// `count` different numbers below `size`, none of them `except`; as drawn.
std::vector<std::size_t> drawn(std::size_t count, std::size_t size, std::optional<std::size_t> except, std::uint64_t key) {
  std::vector<std::size_t> numbers;
  for (std::uint64_t n = 0; numbers.size() < count; ++n) {
    const std::size_t number = base::mix64(key + n * base::kGolden) % size;
    if (number != except && std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::size_t> first_but(std::size_t count, std::optional<std::size_t> except) {
  std::vector<std::size_t> numbers;
  for (std::size_t n = 0; numbers.size() < count; ++n) {
    if (n != except) numbers.push_back(n);
  }
  return numbers;
}

std::string with_answer(const TaskDoc& doc) {
  const std::size_t gold = doc.gold.front();
  return doc.prompt + (doc.openings.empty() ? "" : doc.openings[gold]) + doc.continuations[gold] + "\n\n";
}

std::string examples_of(const Task& task, std::size_t number, std::size_t shots, std::uint64_t seed) {
  const std::string& subset = task.docs[number].subset;
  const auto given = task.examples.find(subset);
  const bool own = given == task.examples.end();  // from the items themselves
  const std::vector<std::size_t>& others = task.subsets.at(subset);
  const std::size_t size = own ? others.size() : given->second.size();
  std::optional<std::size_t> self;
  if (own) self = static_cast<std::size_t>(std::lower_bound(others.begin(), others.end(), number) - others.begin());
  const std::size_t available = size - (own ? 1 : 0);
  if (shots > available) {
    throw Error(Fault::data, fmt::format("{}{}: --shots is {}, but there are only {} examples", task.name,
                                         subset.empty() ? "" : " of " + subset, shots, available));
  }
  const std::uint64_t key = base::mix64(base::mix64(seed + base::hash_of(task.name)) + number);
  std::string text;
  for (const std::size_t n : task.in_order ? first_but(shots, self) : drawn(shots, size, self, key)) {
    text += with_answer(own ? task.docs[others[n]] : given->second[n]);
  }
  return text;
}

std::string description_of(const std::string& subset) {
  std::string subject = subset;
  std::replace(subject.begin(), subject.end(), '_', ' ');
  return fmt::format("The following are multiple choice questions (with answers) about {}.\n\n", subject);
}

std::vector<std::int64_t> encoded(const std::string& text, const Tokenizer& tokenizer) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  return {tokens.begin(), tokens.end()};
}

}  // namespace

std::span<const std::string_view> task_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const TaskKind& kind : task_kinds()) names.push_back(kind.name);
    return names;
  }();
  return kNames;
}

Task read_task(std::string_view name, const fs::path& data, bool with_examples) {
  const TaskKind& kind = task_kinds()[base::index_of_name("task", name, task_names(), "--tasks")];
  Task task{.name = std::string(name), .normalized = kind.normalized, .described = kind.described, .in_order = kind.in_order};
  for (const TaskFiles& files : find_files(kind, data)) {
    task.complete = read_docs(kind, files.items, files.subset, task.docs);
    task.files.push_back(files.items);
    if (!files.training || !with_examples) continue;
    std::vector<TaskDoc> examples;
    read_docs(kind, *files.training, files.subset, examples);
    for (TaskDoc& example : examples) task.examples[example.subset].push_back(std::move(example));
    task.files.push_back(*files.training);
  }
  for (std::size_t i = 0; i < task.docs.size(); ++i) task.subsets[task.docs[i].subset].push_back(i);
  return task;
}

std::string context_of(const Task& task, std::size_t number, std::int64_t shots, std::uint64_t seed) {
  const TaskDoc& doc = task.docs[number];
  if (task.complete) {
    if (shots == 0) return doc.prompt;
    throw Error(Fault::usage, fmt::format("{}: --shots is {}, but the prompts of requests.jsonl are complete; leave it out",
                                          task.name, shots));
  }
  return (task.described ? description_of(doc.subset) : "") + examples_of(task, number, static_cast<std::size_t>(shots), seed) +
         doc.prompt;
}

std::vector<ChoiceTokens> tokens_of(const TaskDoc& doc, const std::string& context, const Tokenizer& tokenizer) {
  const std::optional<Token> beginning = tokenizer.beginning();
  std::vector<ChoiceTokens> choices;
  std::vector<std::int64_t> before;
  std::string last;
  for (std::size_t i = 0; i < doc.continuations.size(); ++i) {
    std::string text = doc.openings.empty() ? context : context + doc.openings[i];
    const std::size_t kept = text.find_last_not_of(" \t\n\r\f\v") + 1;  // 0 if it is all spaces
    const std::string whole = text + doc.continuations[i];
    text.resize(kept);
    if (i == 0 || text != last) before = encoded(text, tokenizer);
    last = text;
    const std::vector<std::int64_t> both = encoded(whole, tokenizer);
    // Where the two merge into no more tokens than the context has, the choice is encoded alone.
    const std::vector<std::int64_t> own = both.size() > before.size()
                                              ? std::vector(both.begin() + std::ssize(before), both.end())
                                              : encoded(whole.substr(kept), tokenizer);
    ChoiceTokens choice{{}, std::ssize(own)};
    if (beginning) choice.tokens.push_back(*beginning);
    if (!beginning && before.empty()) choice.tokens.push_back(tokenizer.document_end());
    choice.tokens.insert(choice.tokens.end(), before.begin(), before.end());
    choice.tokens.insert(choice.tokens.end(), own.begin(), own.end());
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace cautious::data
