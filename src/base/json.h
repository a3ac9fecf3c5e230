// JSON of files that anybody may have written.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace cautious::base {

// Whether no value lies in more than 64 others: what prints, copies or compares a value takes stack by its depth.
constexpr bool is_shallow(std::string_view json) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') {
      ++i;  // whatever follows is no quote
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kDeepest) return false;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return true;
}

// A discarded value (is_discarded()) if the text is not JSON, or nested deeper than that.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  return is_shallow(text) ? Json::parse(text, nullptr, false) : Json(nlohmann::detail::value_t::discarded);
}

}  // namespace cautious::base
