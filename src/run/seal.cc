#include "run/seal.h"

#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"

namespace cautious::run {
namespace {

using Sealed = nlohmann::ordered_json;

constexpr const char* kState = "state.json";

std::vector<std::string> sealed_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : base::entries_of(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != kState) names.push_back(name);
  }
  return names;
}

std::string text_of(const Sealed& json) { return json.dump(2) + "\n"; }

}  // namespace

std::string sealed(std::string_view state, const std::filesystem::path& folder) {
  Sealed json = Sealed::parse(state);
  Sealed& files = json["files"] = Sealed::object();
  for (const std::string& name : sealed_names(folder)) files[name] = base::sha256_of_file(folder / name);
  json["sha256"] = base::sha256_of(text_of(json));
  return text_of(json);
}

void check_seal(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kState;
  Sealed json = base::parse_json<Sealed>(base::read_file(file, base::kRecord));
  if (!json.is_object()) base::refuse_content(file.string(), "not a JSON object");
  if (!json.contains("files") && !json.contains("sha256")) return;
  const Sealed own = json.value("sha256", Sealed());
  json.erase("sha256");
  if (own != base::sha256_of(text_of(json))) {
    base::refuse_content(file.string(), "was changed after it was saved: its SHA-256 is not the one inside");
  }
  for (const auto& [name, sum] : json["files"].items()) {
    if (name.find('/') != name.npos || base::in_one_line(name) != name) {
      base::refuse_content(file.string(), "'files' has " + base::in_quotes(name) + ", which is no name of a file beside it");
    }
    const std::string found = base::sha256_of_file(folder / name);
    if (sum != found) {
      base::refuse_content((folder / name).string(),
                           "is not the file that was saved: its SHA-256 is not the one in state.json");
    }
  }
}

}  // namespace cautious::run
