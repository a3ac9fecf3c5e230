// A plan out of a text, in a directory of the running test, and plans to start from.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "run_fixture.h"
#include "study/plan.h"
#include "usage_message.h"

namespace cautious::study {

// The plan of plan.h.
inline constexpr std::string_view kExample = R"(title = "Does CWD help AdamW?"
seeds = [0, 1, 2]
[base]
model.preset = "nano-100k"
data.path = "gcide"
[grid]
"optimizer.weight_decay" = [0.1, 1.0]
[[arm]]
name = "plain"
optimizer.decay = "decoupled"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
[[arm]]
name = "random"
density_of = "cwd"
[[contrast]]
a = "cwd"
b = "plain"
best = true
)";

class StudyPlan : public RunFiles {
 protected:
  Plan read(std::string_view text) const {
    store(directory_ / "plan.toml", std::string(text));
    return read_plan(directory_ / "plan.toml");
  }

  // The line of the Error of reading or of expanding it, with the directory taken away.
  std::string refused(std::string_view text) const {
    std::string line = message([&] { expand(read(text)); });
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    const std::string folder = directory_.string() + "/";
    for (std::size_t at; (at = line.find(folder)) != std::string::npos;) line.erase(at, folder.size());
    return line;
  }
};

// The text with one part of it, which is there, replaced.
inline std::string with(std::string_view text, std::string_view part, std::string_view other) {
  std::string result(text);
  const std::size_t at = result.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  if (at != std::string::npos) result.replace(at, part.size(), other);
  return result;
}

// One arm, one seed, nothing else.
inline Plan small(const Overrides& base) {
  return {.title = "",
          .about = "",
          .base = base,
          .arms = {{"a", {}, "", ""}},
          .grid = {},
          .seeds = {0},
          .contrasts = {},
          .paper = {}};
}

}  // namespace cautious::study
