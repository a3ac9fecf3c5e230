// decay_trace.bin: what a step report says of each tensor comes back, a continued run cuts, a file that is not one is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "run/decay_trace.h"
#include "run_fixture.h"

namespace cautious::decay_trace_test {

const std::vector<std::string> kTensors{"embedding", "norm", "mlp"};

// Of step `step`, the tensors' numbers all different; the second has no gradient.
StepReport report_of(int step) {
  StepReport report;
  for (int i = 0; i < 3; ++i) {
    Tally tally;
    tally.count = i == 1 ? 0 : 8;
    tally.decayed = i == 1 ? 0 : (step + i) % 9;
    tally.budget = i == 1 ? 0 : 0.1 * step + i;
    report.tensors.push_back(tally);
    report.total += tally;
  }
  return report;
}

class DecayTraceTest : public RunFiles {
 protected:
  void write(int first, int last) {
    run::DecayTraceWriter writer(directory_, kTensors, first - 1);
    for (int step = first; step <= last; ++step) writer.add(report_of(step));
  }
  void put(const std::string& bytes) { store(directory_ / run::kDecayTrace, bytes); }
  std::string refusal() {
    return refused(Fault::data, [&] { (void)run::DecayTrace::read(directory_); });
  }
  void expect_steps(int steps) {
    const run::DecayTrace trace = run::DecayTrace::read(directory_);
    EXPECT_EQ(trace.tensors(), kTensors);
    ASSERT_EQ(trace.steps(), steps);
    for (int step = 1; step <= steps; ++step) {
      const StepReport report = report_of(step);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(trace.density(step, i), i == 1 ? 0 : report.tensors[i].ratio()) << step;
        EXPECT_EQ(trace.budget(step, i), report.tensors[i].budget) << step;
      }
    }
  }
};

TEST_F(DecayTraceTest, DensityAndBudgetOfEveryTensorAndStep) {
  write(1, 5);
  expect_steps(5);
}

TEST_F(DecayTraceTest, AContinuedRunCutsAndGoesOn) {
  write(1, 9);
  write(5, 6);
  expect_steps(6);
  std::filesystem::resize_file(directory_ / run::kDecayTrace, std::filesystem::file_size(directory_ / run::kDecayTrace) - 3);
  expect_steps(5);
  EXPECT_THROW(write(7, 8), Error) << "step 6 is not whole";
}

TEST_F(DecayTraceTest, RefusesWhatItCannotRepeat) {
  EXPECT_NE(refusal().find("--log.decay_trace=true"), std::string::npos);
  for (const std::string bytes : {"", "x", "{\"tensors\": 3}\n", "[]\n", "{\"format\": 2, \"tensors\": []}"}) {
    put(bytes);
    EXPECT_NE(refusal().find("not a decay trace"), std::string::npos) << bytes;
  }
  put("{\"tensors\": [\"embedding\", \"norm\", \"mlp\"]}\n" + std::string(60, '\0'));
  for (const char* words : {"format 1", "format 2", "run the reference again"}) {
    EXPECT_NE(refusal().find(words), std::string::npos) << refusal();
  }
  EXPECT_THROW(write(2, 3), Error) << "a run of an earlier version does not go on in its trace";

  put("{\"format\": \"" + std::string(5000, 'x') + "\", \"tensors\": []}\n");
  EXPECT_LT(refusal().size(), 1000u);
  put("{\"format\": 2, \"tensors\": [\"two\\nlines\"]}\n" + std::string(12, '\xff'));
  EXPECT_NE(refusal().find("tensor 'two\\x0alines' has density"), std::string::npos) << refusal();

  StepReport wild = report_of(1);
  wild.tensors[2].budget = std::numeric_limits<double>::infinity();
  run::DecayTraceWriter(directory_, kTensors, 0).add(wild);
  EXPECT_NE(refusal().find("step 1: tensor 'mlp' has density 0.375 and budget inf"), std::string::npos) << refusal();
}

}  // namespace cautious::decay_trace_test
