// What a study's plan refuses, in whole lines: file and line, key, value, what is valid.
#include <fmt/format.h>

#include "study_plan.h"

namespace cautious::study {
namespace plan_errors_test {

using PlanErrors = StudyPlan;

constexpr std::string_view kSections =
    "model, data, lora, augment, optimizer, optimizer.rest, schedule, train, eval, checkpoint, log, objective";

TEST_F(PlanErrors, UnreadableFiles) {
  EXPECT_EQ(message([] { read_plan("no/such.toml"); }), "no/such.toml: cannot read the plan: No such file or directory");
  EXPECT_EQ(message([&] { read_plan(directory_); }), directory_.string() + ": cannot read the plan: is a directory");
  EXPECT_TRUE(refused("title = \n").starts_with("plan.toml:1:9: not TOML: ")) << refused("title = \n");
  EXPECT_TRUE(refused("seeds = 1\n\"\\u001b\" = 1\n\"\\u001b\" = 2\n").starts_with("plan.toml:3:"));
  EXPECT_TRUE(refused("x = " + std::string(10000, '[')).starts_with("plan.toml:1:"));
}

TEST_F(PlanErrors, UnknownKeysOfThePlan) {
  EXPECT_EQ(refused("titel = \"x\"\n"),
            "plan.toml:1: no key of a plan named 'titel'; did you mean 'title'? choices: title, about, objective, figure, "
            "seeds, tune_seeds, "
            "base, grid, arm, "
            "contrast, paper");
  EXPECT_EQ(refused(with(kExample, "density_of", "densty_of")),
            "plan.toml:16: no key of [[arm]] named 'densty_of'; did you mean 'density_of'? choices: name, density_of, "
            "budget_of, point_of, "
            "grid, and a run's, as in optimizer.lr");
  EXPECT_EQ(refused(with(kExample, "best =", "bset =")),
            "plan.toml:20: no key of [[contrast]] named 'bset'; did you mean 'best'? choices: a, b, best, primary");
  EXPECT_EQ(refused(std::string(kExample) + "[[paper]]\nwhat = \"x\"\nnumbr = 3\n"),
            "plan.toml:23: no key of [[paper]] named 'numbr'; did you mean 'number'? choices: what, number");
}

// Those that the report of this plan has: of its grid, of its task.
TEST_F(PlanErrors, UnknownFigure) {
  const std::string plan = fmt::format("figure = \"ratio\"\n{}", kExample);
  EXPECT_EQ(refused(plan),
            "plan.toml:1: no figure named 'ratio'; choices: arms, amounts, sweep_weight_decay, validation_loss, training_loss, "
            "activation_ratio, rms_parameters, rms_gradient, rms_update, decay_budget, decay_budget_sum");
  const Plan good = read(with(plan, "\"ratio\"", "\"activation_ratio\""));
  EXPECT_FALSE(expand(good).empty());
  EXPECT_EQ(good.figure, "activation_ratio");
  EXPECT_EQ(read(to_toml(good)).figure, good.figure);
}

TEST_F(PlanErrors, UnknownKeysOfARun) {
  EXPECT_EQ(refused(with(kExample, "data.path", "data.pth")),
            "plan.toml:5: no key named 'data.pth'; did you mean 'data.path'? keys of [data]: cache, field, most_bad, path, "
            "tokenizer, "
            "train_images, train_tokens, "
            "val_fraction, val_path, weights, workers");
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "lr = 3")),
            fmt::format("plan.toml:5: no key named 'lr'; did you mean 'optimizer.lr'? sections: {}", kSections));
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "dat.path = \"x\"")),
            fmt::format("plan.toml:5: no section named 'dat'; did you mean 'data'? choices: {}", kSections));
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "data = 3")),
            "plan.toml:5: data is a section, not a value; write data.<key> = <value>");
  EXPECT_TRUE(
      refused(with(kExample, "\"optimizer.weight_decay\"", "\"optimizer.weight_decy\""))
          .starts_with("plan.toml:7: no key named 'optimizer.weight_decy'; did you mean 'optimizer.weight_decay'? keys of "
                       "[optimizer]: "));
  EXPECT_TRUE(refused(with(kExample, "optimizer.decay = \"cautious\"", "optimizer.dcay = \"cautious\""))
                  .starts_with("plan.toml:13: no key named 'optimizer.dcay'; did you mean 'optimizer.decay'? "));
}

TEST_F(PlanErrors, ValuesOfARun) {
  EXPECT_EQ(refused(with(kExample, "\"decoupled\"", "\"decopled\"")),
            "plan.toml:10: optimizer.decay: no decay named 'decopled'; did you mean 'decoupled'? choices: none, decoupled, "
            "cautious, opposed, gradient, random, shuffled, layerwise, selective, anchored");
  EXPECT_EQ(refused(with(kExample, "[0.1, 1.0]", "[0.1,\n  -1.0]")),
            "plan.toml:7: optimizer.weight_decay: weight_decay is '-1'; valid: [0, inf)");
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "train.steps = 1.5")),
            "plan.toml:5: train.steps is '1.5', not a whole number; valid: [1, 2^63)");
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "train.steps = 1979-05-27")),
            "plan.toml:5: train.steps of [base] is a date or a time, not a number, a boolean, a string or an array");
  EXPECT_EQ(refused(with(kExample, "\"gcide\"", "[\"a\", 3]")), "plan.toml:5: data.path has the string 'a' among other things");
}

// What is wrong only with the rest of the run is told at the arm.
TEST_F(PlanErrors, ValuesThatDoNotGoTogether) {
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "train.grad_accum = 3")),
            "plan.toml:8: arm 'plain' at weight_decay=0.1: train.grad_accum is 3, which does not divide train.batch_size 16");
  const std::string line = refused(with(kExample, "\"cautious\"", "\"cautious\"\noptimizer.density = 0.5"));
  EXPECT_TRUE(line.starts_with("plan.toml:11: arm 'cwd' at weight_decay=0.1: no key named 'optimizer.density';")) << line;
  const std::string both = refused(with(kExample, "data.path = \"gcide\"", "train.steps = 3\ntrain.tokens = 4"));
  EXPECT_EQ(both,
            "plan.toml:9: arm 'plain' at weight_decay=0.1: train.steps and train.tokens are both set; set one of: train.steps, "
            "train.tokens, train.tokens_per_param");
}

TEST_F(PlanErrors, TheStudyDecides) {
  const auto line = [&](std::string_view key) { return refused(with(kExample, "data.path = \"gcide\"", key)); };
  EXPECT_EQ(
      line("train.seed = 1"),
      "plan.toml:5: train.seed cannot be set: the study sets it to each of its seeds; write seeds = [0, 1, 2] at the top of "
      "the plan");
  EXPECT_EQ(line("train.threads = 2"),
            "plan.toml:5: train.threads cannot be set: every run of a study has 1, so that its numbers are the same anywhere; "
            "remove it");
  EXPECT_EQ(
      line("optimizer.budget_from = \"x\""),
      "plan.toml:5: optimizer.budget_from cannot be set: the study sets it to the reference run; write budget_of = \"name "
      "of an arm\" in the arm");
}

TEST_F(PlanErrors, Grid) {
  EXPECT_EQ(refused(with(kExample, "[0.1, 1.0]", "[]")),
            "plan.toml:7: optimizer.weight_decay has no values; write them between [ and ], or remove the axis");
  EXPECT_EQ(
      refused(with(kExample, "[0.1, 1.0]", "0.1")),
      "plan.toml:7: optimizer.weight_decay of [grid] is '0.1', not an array; write \"optimizer.weight_decay\" = [...], or "
      "put the key under [base]");
  EXPECT_EQ(refused(with(kExample, "[0.1, 1.0]", "[1, 1.0]")), "plan.toml:7: optimizer.weight_decay has '1' twice");
  EXPECT_EQ(refused(with(kExample, "[0.1, 1.0]", "[1]\noptimizer.weight_decay = [2]")),
            "plan.toml:8: optimizer.weight_decay is an axis twice");
  EXPECT_EQ(
      refused(with(kExample, "[0.1, 1.0]", "[1]\n\"log.every\" = [1, 2]")),
      "plan.toml:9: arm 'plain' is the same configuration at different points of the grid; remove what makes no difference "
      "from the grid, or give the arm grid = false");
}

TEST_F(PlanErrors, Arms) {
  EXPECT_EQ(refused("seeds = 1\n"), "plan.toml: there is no arm; write [[arm]] and name = \"...\"");
  EXPECT_EQ(refused(with(kExample, "name = \"cwd\"", "name = \"plain\"")),
            "plan.toml:12: there is already an arm named 'plain' in line 9; choose another name");
  EXPECT_EQ(refused(with(kExample, "\"cautious\"", "\"decoupled\"")),
            "plan.toml:11: arm 'cwd' is the same configuration as arm 'plain' in line 8; change or remove one of them");
  EXPECT_EQ(refused(with(kExample, "name = \"cwd\"", "name = \"c/d\"")),
            "plan.toml:12: name is 'c/d'; valid: 1 to 64 letters, digits, '-', '_', '+' and '.'");
  EXPECT_EQ(refused(with(kExample, "name = \"cwd\"\n", "")), "plan.toml:11: [[arm]] has no name; write name = \"...\"");
  EXPECT_EQ(refused(with(kExample, "name = \"cwd\"", "name = 3")), "plan.toml:12: name of [[arm]] is 3, not a string");
  EXPECT_EQ(refused("seeds = 1\n[arm]\nname = \"x\"\n"),
            "plan.toml:2: arm is a table, not a list of tables; write [[arm]] above each");
}

// Equal by what they resolve to, not by how they are written.
TEST_F(PlanErrors, TheSameConfigurationInOtherWords) {
  const std::string text = with(kExample, "optimizer.decay = \"decoupled\"", "optimizer.lr = 0.005\nlog.every = 3");
  EXPECT_EQ(refused(with(text, "\"cautious\"", "\"decoupled\"")),
            "plan.toml:12: arm 'cwd' is the same configuration as arm 'plain' in line 8; change or remove one of them");
}

TEST_F(PlanErrors, Controls) {
  EXPECT_EQ(refused(with(kExample, "density_of = \"cwd\"", "density_of = \"cwdd\"")),
            "plan.toml:16: density_of: no arm named 'cwdd'; did you mean 'cwd'? choices: plain, cwd, random");
  EXPECT_EQ(refused(with(kExample, "density_of = \"cwd\"", "budget_of = \"random\"")),
            "plan.toml:16: budget_of is the arm itself; name the arm that it is a control of");
  EXPECT_EQ(
      refused(with(kExample, "density_of = \"cwd\"", "density_of = \"cwd\"\n[[arm]]\nname = \"x\"\nbudget_of = \"random\"")),
      "plan.toml:19: budget_of is 'random', which is a control itself; name the arm that it is a control of: 'cwd'");
  EXPECT_EQ(refused(with(kExample, "density_of = \"cwd\"", "density_of = \"cwd\"\nbudget_of = \"cwd\"")),
            "plan.toml:16: density_of and budget_of are both set; keep one");
  EXPECT_EQ(refused(with(kExample, "density_of = \"cwd\"", "density_of = \"cwd\"\ngrid = false")),
            "plan.toml:17: arm 'random' has the grid of arm 'cwd', with which it is compared; remove the key");
  EXPECT_EQ(refused(with(kExample, "density_of = \"cwd\"", "density_of = \"cwd\"\noptimizer.decay = \"random\"")),
            "plan.toml:17: arm 'random' sets optimizer.decay, which density_of decides; remove one of them");
}

TEST_F(PlanErrors, Contrasts) {
  EXPECT_EQ(refused(with(kExample, "b = \"plain\"", "b = \"plan\"")),
            "plan.toml:19: b: no arm named 'plan'; did you mean 'plain'? choices: plain, cwd, random");
  EXPECT_EQ(refused(with(kExample, "b = \"plain\"", "b = \"cwd\"")), "plan.toml:17: a and b are both 'cwd'; name two arms");
  EXPECT_EQ(refused(with(kExample, "b = \"plain\"\n", "")), "plan.toml:17: [[contrast]] has no b; write b = \"...\"");
  EXPECT_EQ(refused(with(kExample, "best = true", "best = 1")), "plan.toml:20: best of [[contrast]] is 1, not true or false");
}

TEST_F(PlanErrors, Seeds) {
  const std::string valid = "; valid: an array of whole numbers from 0, or their number";
  const auto line = [&](std::string_view seeds) { return refused(with(kExample, "seeds = [0, 1, 2]", seeds)); };
  EXPECT_EQ(line(""), "plan.toml: there are no seeds; write seeds = [0, 1, 2], or seeds = 3");
  EXPECT_EQ(line("seeds = []"), "plan.toml:2: there are no seeds; write seeds = [0, 1, 2], or seeds = 3");
  EXPECT_EQ(line("seeds = [3, 1, 3]"), "plan.toml:2: seed 3 occurs twice");
  EXPECT_EQ(line("seeds = 0"), "plan.toml:2: seeds is 0; valid as a number: 1 to 10000");
  EXPECT_EQ(line("seeds = [1, -2]"), "plan.toml:2: seeds has -2" + valid);
  EXPECT_EQ(line("seeds = [1.5]"), "plan.toml:2: seeds has 1.5" + valid);
  EXPECT_EQ(line("seeds = \"1\""), "plan.toml:2: seeds is neither an array nor a number" + valid);
}

TEST_F(PlanErrors, Contradictions) {
  EXPECT_EQ(
      refused(with(kExample, "\"cautious\"", "\"cautious\"\noptimizer.weight_decay = 3")),
      "plan.toml:14: arm 'cwd' sets optimizer.weight_decay, but the grid sets optimizer.weight_decay in line 7; remove one "
      "of them, or give the arm grid = false");
  EXPECT_EQ(
      refused(with(kExample, "data.path = \"gcide\"", "optimizer.weight_decay = 3")),
      "plan.toml:5: [base] sets optimizer.weight_decay, but the grid sets optimizer.weight_decay in line 7 for every arm; "
      "remove one of them");
  const std::string steps = with(kExample, "[0.1, 1.0]", "[1]\n\"train.steps\" = [1, 2]");
  EXPECT_EQ(
      refused(with(steps, "\"cautious\"", "\"cautious\"\ntrain.tokens = 3")),
      "plan.toml:15: arm 'cwd' sets train.tokens, but the grid sets train.steps in line 8; remove one of them, or give the "
      "arm grid = false");
  EXPECT_EQ(refused(with(kExample, "data.path = \"gcide\"", "data.path = \"gcide\"\n\"data.path\" = \"x\"")),
            "plan.toml:6: data.path is set twice");
}

TEST_F(PlanErrors, TooManyRuns) {
  std::string values = "1";
  for (int i = 2; i <= 200; ++i) values += fmt::format(", {}", i);
  const std::string axes = fmt::format("[{0}]\n\"eval.tokens\" = [{0}]\n\"train.steps\" = [{0}]", values);
  EXPECT_EQ(refused(with(kExample, "[0.1, 1.0]", axes)),
            "plan.toml: arms, grid and seeds make 1.2e+08 runs; valid: at most 100000");
}

}  // namespace plan_errors_test
}  // namespace cautious::study
