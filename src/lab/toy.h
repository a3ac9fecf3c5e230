// The paper's toy experiment: Adam, AdamW and Adam + CWD from one start on an objective whose minimisers form a curve, all with
// the same learning rate, betas and eps, and AdamW and CWD with the same weight decay. Data only; report/toy_*.h draw and write
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/field.h>
#include <cautious/schedule.h>

#include "lab/toy_objective.h"

namespace cautious {

// The defaults make all arms settle and the box |x|, |y| <= 1 / weight_decay = 2 keep clear of both curves of minimisers.
// beta2 = 0.95 as in language models: with 0.999 AdamW needs many times the steps to come to rest.
struct ToyOptions {
  double lr = 0.01;
  double weight_decay = 0.5;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  std::int64_t steps = 4000;
  ScheduleKind schedule = ScheduleKind::cosine;  // down to 0 unless constant
  std::optional<ToyPoint> start;                 // the objective's own unless set
};

inline constexpr Range kToyLr{0, 1, true, false};
inline constexpr Range kToyWeightDecay{0, 100, false, false};
inline constexpr Range kToySteps{1, 1e6, false, false};
inline constexpr Range kToyStart{-100, 100, false, false};

// Throws an Error(Fault::usage) that names the value and the valid range.
void check(const ToyOptions& options);

// An end point counts as on a set within kOn of it. While the learning rate is high, cautious decay chatters about the curve;
// an iterate counts as arrived within kNear.
inline constexpr double kOn = 1e-3;
inline constexpr double kNear = 0.05;

enum class ToyArm { adam, adamw, cwd };

std::string_view name_of(ToyArm arm);  // as in the paper: "Adam", "AdamW", "Adam + CWD"
std::string_view key_of(ToyArm arm);   // for files: "adam", "adamw", "adam_cwd"

struct ToyRun {
  ToyArm arm{};
  std::vector<ToyPoint> path;  // the start and the point after each step
  ToyPoint end;
  double f = 0;
  double to_manifold = 0, to_front = 0, to_local_front = 0, to_box = 0;
  std::optional<std::int64_t> arrival;  // the step after which it stays within kNear of the front
  double slide = 0;                     // distance between the point at arrival and the end
};

struct ToyStudy {
  const ToyObjective* objective = nullptr;
  ToyOptions options;
  double box = 0;            // half side 1 / weight_decay; infinite without weight decay
  double least_in_box = 0;   // what AdamW should reach according to the paper
  std::vector<ToyRun> runs;  // in the order of ToyArm
};

ToyStudy run_toy(const ToyObjective& objective, const ToyOptions& options);

// One sentence per arm: what the end points of this study say about the paper's claim for it. Worded from the numbers.
std::vector<std::string> verdict(const ToyStudy& study);

}  // namespace cautious
