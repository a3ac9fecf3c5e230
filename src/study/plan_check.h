// What a plan must be before its runs are looked at: names, keys, and parts that go together.
#pragma once

#include <string_view>

#include "study/plan.h"
#include "study/plan_lines.h"

namespace cautious::study {

void check(const Plan& plan, const PlanLines& lines);

// The arm that a control follows; null for an arm that is none. The plan is checked.
const Arm* followed_by(const Plan& plan, const Arm& arm);

// Whether the run that this control follows decides the key, so that the control cannot set it.
bool comes_from_followed(const Arm& control, std::string_view key);

// expand() with lines for its messages.
std::vector<PlannedRun> expand(const Plan& plan, const PlanLines& lines);

}  // namespace cautious::study
