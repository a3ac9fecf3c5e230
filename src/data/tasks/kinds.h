// What each benchmark has of its own: names of files and fields, and the text of its prompts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/tasks/task.h"

namespace cautious::data {

struct TaskKind {
  std::string_view name, folder;                  // the set's own name, which its folder may have
  std::array<std::string_view, 3> splits;         // files of items, the best first
  std::array<std::string_view, 2> training;       // files of examples; empty: none
  bool normalized, described, in_order, divided;  // divided: may have a folder per subset
  TaskDoc (*read)(const nlohmann::json& item, const std::string& where);
};
std::span<const TaskKind> task_kinds();

bool is_request(const nlohmann::json& item);
// OLMo's requests, a line per choice: the next one of the last doc, or the first of a new one.
class RequestReader {
 public:
  void add(const nlohmann::json& item, const std::string& where, std::vector<TaskDoc>& docs);
  void finish(std::vector<TaskDoc>& docs);  // checks the last doc

 private:
  std::int64_t doc_ = -1;
  std::string where_ = {};
};

}  // namespace cautious::data
