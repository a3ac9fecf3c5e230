// Where the parts of a plan stand in its file, for error messages. A part is named by words: "seeds", "base optimizer.lr",
// "grid optimizer.lr", "arm 0", "arm 0 density_of", "contrast 1". A plan that comes from no file has no lines.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cautious::study {

class PlanLines {
 public:
  PlanLines() = default;
  explicit PlanLines(std::string file) : file_(std::move(file)) {}

  void set(std::string part, unsigned line) { lines_.insert_or_assign(std::move(part), line); }

  // "plan.toml:7: " of the part, or of the one that it is in; "plan.toml: " of one that is not there.
  std::string before(std::string_view part) const {
    if (file_.empty()) return "";
    const unsigned line = line_of(part);
    return line == 0 ? file_ + ": " : fmt::format("{}:{}: ", file_, line);
  }

  // " in line 7" of the part, where it is known.
  std::string behind(std::string_view part) const {
    const unsigned line = line_of(part);
    return line == 0 ? "" : fmt::format(" in line {}", line);
  }

 private:
  unsigned line_of(std::string_view part) const {
    if (const auto found = lines_.find(std::string(part)); found != lines_.end()) return found->second;
    const std::size_t space = part.rfind(' ');
    return space == std::string_view::npos ? 0 : line_of(part.substr(0, space));
  }

  std::string file_;
  std::map<std::string, unsigned> lines_;
};

}  // namespace cautious::study
