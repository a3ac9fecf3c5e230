// libFuzzer over the items of benchmarks: the first byte says which, the lines that follow are items, or OLMo's requests.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/tasks/kinds.h"
#include "reader_fuzz.h"

namespace {

void check_doc(const cautious::data::TaskDoc& doc) {
  const std::size_t choices = doc.continuations.size();
  cautious::demand(choices > 0 && !doc.gold.empty());
  for (const std::size_t gold : doc.gold) cautious::demand(gold < choices);
  for (const std::string& text : doc.continuations) cautious::demand(!text.empty());
  cautious::demand(doc.openings.empty() || doc.openings.size() == choices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cautious;
  if (size == 0) return 0;
  const data::TaskKind& kind = data::task_kinds()[data[0] % data::task_kinds().size()];
  std::vector<nlohmann::json> items;
  for (std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1); !text.empty();) {
    const std::size_t end = text.find('\n');
    items.push_back(nlohmann::json::parse(text.substr(0, end), nullptr, false));
    if (!items.back().is_object()) items.pop_back();
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  for (const nlohmann::json& item : items) {
    const auto doc = read_or_refuse([&] { return kind.read(item, "file"); });
    if (doc) check_doc(*doc);
  }
  const auto docs = read_or_refuse([&] {
    std::vector<data::TaskDoc> all;
    data::RequestReader requests;
    for (const nlohmann::json& item : items) requests.add(item, "file", all);
    requests.finish(all);
    return all;
  });
  if (docs) {
    for (const data::TaskDoc& doc : *docs) check_doc(doc);
  }
  return 0;
}
