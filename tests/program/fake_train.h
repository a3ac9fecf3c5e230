// A stand-in for cautious-train: a shell script that takes the same words and leaves the same files. What a run does depends
// on the arm in its folder's name: bad fails, wild diverges, gone is killed, long continues until it is told to save, meet
// waits until three of its kind have begun, others are done, with a loss of 2 at weight decay 0.5 and of 2.5 elsewhere.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "run_fixture.h"
#include "study/runner.h"

namespace cautious::study {

inline constexpr const char* kFakeTrain = R"sh(#!/bin/sh
out= config= how=new
while [ $# -gt 0 ]; do
  case $1 in --out) out=$2; shift;; --config) config=$2; shift;; --resume) how=resumed;; esac
  shift
done
here=${0%/*}
name=${out##*/}
say() { echo "$1 $name $how $(date +%s%N) $OMP_NUM_THREADS$OPENBLAS_NUM_THREADS$OMP_WAIT_POLICY" >> "$here/calls"; }
summary() {
  echo "{\"status\": \"$1\", \"val_loss\": $2, \"val_bpb\": 1, \"val_accuracy\": 0, \"decay_budget\": 0, \"seconds\": 2}" > "$out/summary.json"
}
say begin
if [ -e "$out/failure.txt" ]; then echo "not empty" >&2; exit 2; fi
if [ $how = new ] && [ -e "$out/config.toml" ]; then echo "there is a run" >&2; exit 2; fi
case $name in
  bad*) if [ ! -e "$here/fixed" ]; then echo "some words" >&2; echo "cautious: no memory" >&2; exit 1; fi;;
  gone*) kill -9 $$;;
esac
mkdir -p "$out"
[ $how = resumed ] || cp "$config" "$out/config.toml"
grep -q '^decay_trace = true' "$out/config.toml" && echo trace > "$out/decay_trace.bin"
echo '{"step":10,"loss":3}' > "$out/metrics.jsonl"
case $name in
  wild*) summary diverged null; echo "cautious: diverged in step 11" >&2; exit 4;;
  long*) if [ $how = new ]; then
           trap 'summary stopped null; exit 143' TERM
           echo ready >> "$here/ready"
           while :; do sleep 0.02; done
         fi;;
  meet*) echo met >> "$here/met"
         turns=0
         while [ "$(wc -l < "$here/met")" -lt 3 ] && [ $turns -lt 1500 ]; do sleep 0.02; turns=$((turns + 1)); done;;
esac
sleep 0.2
case $name in *weight_decay=0.5*) summary done 2;; *) summary done 2.5;; esac
say end
)sh";

class FakeStudy : public RunFiles {
 protected:
  struct Call {
    std::string what, name, how;
    std::int64_t time = 0;
    std::string environment;
  };

  void SetUp() override {
    RunFiles::SetUp();
    store(program(), kFakeTrain);
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }

  std::filesystem::path program() const { return directory_ / "train"; }
  std::filesystem::path study() const { return directory_ / "study"; }

  static Plan plan_of(std::vector<std::string> arms, std::vector<std::uint64_t> seeds = {0}) {
    Plan plan{.title = "A test",
              .about = "",
              .base = {{"data.path", "somewhere"}, {"train.steps", "40"}},
              .arms = {},
              .grid = {},
              .seeds = std::move(seeds),
              .contrasts = {},
              .paper = {}};
    int number = 0;
    for (std::string& name : arms) plan.arms.push_back({std::move(name), {{"optimizer.lr", std::to_string(++number)}}, "", ""});
    return plan;
  }

  static Plan with_control(Plan plan, const std::string& of) {
    plan.arms.push_back({"control", {}, of, ""});
    return plan;
  }

  // Whether it came to its end.
  bool run(const Plan& plan, int jobs = 1) const {
    return run(plan, study(), {.program = program(), .jobs = jobs, .stop = {}, .watch = {}});
  }
  static bool run(const Plan& plan, const std::filesystem::path& directory, const RunnerOptions& options) {
    return run_study(plan, expand(plan), directory, options).finished;
  }

  // Of all processes so far: what ("begin" or "end"), which run, new or resumed, when.
  std::vector<Call> calls(const std::string& what = "begin") const {
    std::vector<Call> found;
    std::istringstream in(content(directory_ / "calls"));
    for (Call call; in >> call.what >> call.name >> call.how >> call.time >> call.environment;) {
      if (call.what == what) found.push_back(call);
    }
    return found;
  }

  std::map<std::string, FinishedRun> by_arm() const {
    std::map<std::string, FinishedRun> found;
    for (const FinishedRun& one : read_results(study()).runs) found[one.run.arm] = one;
    return found;
  }

  std::filesystem::path folder(const FinishedRun& one) const { return study() / "runs" / one.run.folder; }
};

}  // namespace cautious::study
