#include "data/tasks/journal.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/text.h"
#include "data/documents.h"

namespace cautious::data {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path& made(const std::filesystem::path& folder) {
  if (const std::error_code error = base::make_folders(folder)) base::fail_at(folder, "make the folder", error.message());
  return folder;
}

void check_same(const std::filesystem::path& folder, const Json& earlier, const Json& identity) {
  for (const auto& [key, value] : identity.items()) {
    if (earlier.is_object() && earlier.contains(key) && earlier[key] == value) continue;
    throw Error(Fault::usage, fmt::format("--out {} holds another evaluation: its {} differs; give another folder",
                                          base::shell_word(folder.string()), key));
  }
}

// The file of samples, without the beginning of a line that a killed process may have left.
std::filesystem::path whole_lines(const std::filesystem::path& folder) {
  std::filesystem::path file = folder / "samples.jsonl";
  const auto text = base::read_file_if_any(file);
  if (text && !text->empty() && text->back() != '\n') base::cut_file(file, text->rfind('\n') + 1);
  return file;
}

// Nothing if it is none of the task's.
std::optional<std::vector<double>> sums_of(const Task& task, const nlohmann::json& number, const nlohmann::json& sums) {
  if (!number.is_number_unsigned() || number.get<std::size_t>() >= task.docs.size() || !sums.is_array() ||
      sums.size() != task.docs[number.get<std::size_t>()].continuations.size() ||
      !std::all_of(sums.begin(), sums.end(), [](const nlohmann::json& sum) { return sum.is_number(); })) {
    return std::nullopt;
  }
  return sums.get<std::vector<double>>();
}

}  // namespace

TaskJournal::TaskJournal(const std::filesystem::path& folder, const Json& identity)
    : folder_(folder), lock_(made(folder)), samples_(whole_lines(folder)) {
  const std::filesystem::path described = folder / "evaluation.json";
  if (const auto text = base::read_file_if_any(described)) {
    check_same(folder, base::parse_json<Json>(*text), identity);
  } else {
    base::write_atomically(described, identity.dump(2) + "\n");
  }
}

std::map<std::string, FinishedItems> TaskJournal::finished(const std::vector<const Task*>& tasks) const {
  std::map<std::string, FinishedItems> all;
  const std::filesystem::path file = folder_ / "samples.jsonl";
  if (std::filesystem::file_size(file) == 0) return all;
  each_object(file, [&](const nlohmann::json& sample, const std::string& where) {
    const std::string& name = text_of(sample, "task", where);
    const auto task = std::ranges::find(tasks, name, &Task::name);
    const nlohmann::json &number = field_of(sample, "doc_id", where), &sums = field_of(sample, "loglikelihoods", where);
    const auto read = task == tasks.end() ? std::nullopt : sums_of(**task, number, sums);
    if (!read) {
      base::refuse_content(where, fmt::format("not a sample of this evaluation; remove {} to begin again", folder_.string()));
    }
    const auto item = number.get<std::size_t>();
    FinishedItems& own = all[name];
    own.cut += sample.contains("cut") && own.answers.count(item) == 0 ? 1 : 0;
    own.answers.insert_or_assign(item, judge_answer((*task)->docs[item], *read));
  });
  return all;
}

void TaskJournal::add(const Task& task, std::size_t item, std::span<const double> sums, const TaskAnswer& answer, bool cut) {
  const TaskDoc& doc = task.docs[item];
  Json sample{{"task", task.name}, {"doc_id", item}};
  if (!doc.subset.empty()) sample["subset"] = doc.subset;
  sample["target"] = doc.gold.size() == 1 ? Json(doc.gold[0]) : Json(doc.gold);
  sample["loglikelihoods"] = sums;
  sample["acc"] = answer.acc ? 1 : 0;
  if (task.normalized) {
    sample["acc_norm"] = answer.acc_norm ? 1 : 0;
    sample["acc_bytes"] = answer.acc_bytes ? 1 : 0;
  }
  if (cut) sample["cut"] = true;
  samples_.append(sample.dump() + "\n");
}

void TaskJournal::finish(const Json& results) const {
  base::write_atomically(folder_ / "results.json", results.dump(2) + "\n");
}

}  // namespace cautious::data
