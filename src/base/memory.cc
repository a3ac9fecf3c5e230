// Control groups of both versions: in the second all are one tree below the root, in the first memory has a tree of its own. A
// limit holds for all groups below it, so every one from the process's own up to the root counts. A container may see its own
// group as the root; then the path in /proc leads nowhere, and the root is what is left.
#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace cautious::base {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

struct GroupFiles {
  const char *limit, *used, *cached;  // the last is a key of memory.stat: given back when memory is short
};
constexpr GroupFiles kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kSecond{"memory.max", "memory.current", "inactive_file"};

// The number in the file, or that after the key; `otherwise` where there is none, as in a limit of "max".
double number_in(const fs::path& file, std::string_view key, double otherwise) {
  std::ifstream in(file);
  double number = 0;
  if (key.empty()) return in >> number ? number : otherwise;
  for (std::string word; in >> word;) {
    if (word == key && in >> number) return number;
  }
  return otherwise;
}

double left_in(const fs::path& group, const GroupFiles& files) {
  const double limit = number_in(group / files.limit, "", kUnlimited);
  const double used = number_in(group / files.used, "", 0) - number_in(group / "memory.stat", files.cached, 0);
  return std::max(0.0, limit - std::max(0.0, used));
}

double left_up_to(const fs::path& root, std::string_view path, const GroupFiles& files) {
  double least = left_in(root, files);
  fs::path group = root;
  for (const fs::path& part : fs::path(path).relative_path()) {
    group /= part;
    least = std::min(least, left_in(group, files));
  }
  return least;
}

// "0::/user.slice" of the second version, "4:memory:/docker/1f2e" of the first.
double left_in_groups(const fs::path& proc, const fs::path& groups) {
  double least = kUnlimited;
  std::ifstream lines(proc / "self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") least = std::min(least, left_up_to(groups, path, kSecond));
    if (controllers.find(",memory,") != controllers.npos) least = std::min(least, left_up_to(groups / "memory", path, kFirst));
  }
  return least;
}

}  // namespace

double memory_available(const fs::path& proc, const fs::path& groups) {
  constexpr double kKilobyte = 1024;
  return std::min(kKilobyte * number_in(proc / "meminfo", "MemAvailable:", kUnlimited), left_in_groups(proc, groups));
}

}  // namespace cautious::base
