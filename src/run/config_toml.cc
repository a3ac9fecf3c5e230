// A configuration as TOML: sections, values and comments in columns.
#include <algorithm>

#include "run/config_keys.h"

namespace cautious::run {
namespace {

constexpr std::size_t kWidest = 40;  // beyond it a comment stands right behind its value

// A key beside which another one decides is there as a comment.
std::string line_of(const Key& key) {
  const std::string_view name = without_section(key.name);
  return key.value.empty() ? fmt::format("# {} =", name) : fmt::format("{} = {}", name, key.value);
}

std::size_t width_of(const std::vector<Key>& keys) {
  std::size_t width = 0;
  for (const Key& key : keys) {
    const std::size_t length = line_of(key).size();
    if (length <= kWidest) width = std::max(width, length);
  }
  return width;
}

}  // namespace

std::string to_toml(const RunConfig& config) {
  const std::vector<Key> keys = keys_of(config);
  const std::size_t width = width_of(keys);
  std::string text =
      "# A training run of cautious: every key with its value, then its meaning | what is valid.\n"
      "# On the command line: --section.key=value\n";
  std::string_view section;
  for (const Key& key : keys) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("{:<{}}  # {} | {}\n", line_of(key), width, key.help, key.valid);
  }
  return text;
}

}  // namespace cautious::run
