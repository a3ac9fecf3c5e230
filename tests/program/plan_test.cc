// A study's plan: what its file says, in the file's order, and the way back to a file.
#include "study_plan.h"

namespace cautious::study {
namespace plan_test {

using PlanText = StudyPlan;

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.about, b.about);
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.seeds, b.seeds);
  ASSERT_EQ(a.arms.size(), b.arms.size());
  for (std::size_t i = 0; i < a.arms.size(); ++i) {
    EXPECT_EQ(a.arms[i].name, b.arms[i].name);
    EXPECT_EQ(a.arms[i].overrides, b.arms[i].overrides);
    EXPECT_EQ(a.arms[i].density_of, b.arms[i].density_of);
    EXPECT_EQ(a.arms[i].budget_of, b.arms[i].budget_of);
    EXPECT_EQ(a.arms[i].grid, b.arms[i].grid);
  }
  ASSERT_EQ(a.grid.size(), b.grid.size());
  for (std::size_t i = 0; i < a.grid.size(); ++i) {
    EXPECT_EQ(a.grid[i].key, b.grid[i].key);
    EXPECT_EQ(a.grid[i].values, b.grid[i].values);
  }
  ASSERT_EQ(a.contrasts.size(), b.contrasts.size());
  for (std::size_t i = 0; i < a.contrasts.size(); ++i) {
    EXPECT_EQ(a.contrasts[i].a, b.contrasts[i].a);
    EXPECT_EQ(a.contrasts[i].b, b.contrasts[i].b);
    EXPECT_EQ(a.contrasts[i].best, b.contrasts[i].best);
    EXPECT_EQ(a.contrasts[i].primary, b.contrasts[i].primary);
  }
  ASSERT_EQ(a.paper.size(), b.paper.size());
  for (std::size_t i = 0; i < a.paper.size(); ++i) {
    EXPECT_EQ(a.paper[i].what, b.paper[i].what);
    EXPECT_EQ(a.paper[i].number, b.paper[i].number);
  }
}

TEST_F(PlanText, TheExampleOfTheHeader) {
  const Plan wanted{
      .title = "Does CWD help AdamW?",
      .about = "",
      .base = {{"model.preset", "nano-100k"}, {"data.path", "gcide"}},
      .arms = {{.name = "plain", .overrides = {{"optimizer.decay", "decoupled"}}, .density_of = "", .budget_of = ""},
               {.name = "cwd", .overrides = {{"optimizer.decay", "cautious"}}, .density_of = "", .budget_of = ""},
               {.name = "random", .overrides = {}, .density_of = "cwd", .budget_of = ""}},
      .grid = {{"optimizer.weight_decay", {"0.1", "1"}}},
      .seeds = {0, 1, 2},
      .contrasts = {{.a = "cwd", .b = "plain", .best = true, .primary = true}},
      .paper = {}};
  expect_same(read(kExample), wanted);
}

// Everything that a plan can have, with values of every type, written in every way.
constexpr std::string_view kRich = R"(title = "\"Quotes\", a \\ and a\nsecond line"
about = '''Ünïcode # no comment'''
seeds = 4
[base]
train.steps = 20
train.batch_size = 4
model.preset = "nano-100k"
schedule.warmup_ratio = 0.05
optimizer.lr = 2e-3
data.path = ["a b", "c,d"]
data.val_path = []
log.tensorboard = false
[base.eval]
every = 0
[grid]
"optimizer.weight_decay" = [0, 0.1, 1e-30, 1.0]
"model.layers" = [2, 1]
optimizer.beta2 = ["0.95", 0.99]
[[arm]]
optimizer.decay = "cautious"
name = "A-1_b+c.d"
[[arm]]
name = "plain"
[arm.optimizer]
name = "adamw"
decay = "decoupled"
[[arm]]
name = "budget"
budget_of = "A-1_b+c.d"
train.grad_accum = 2
[[arm]]
name = "none"
grid = false
optimizer.decay = "none"
optimizer.weight_decay = 0.0
[[arm]]
name = "none-like"
density_of = "none"
[[contrast]]
a = "plain"
b = "A-1_b+c.d"
[[contrast]]
a = "budget"
b = "none"
primary = false
[[paper]]
what = "AdamW, 338M"
number = "3.010"
[[paper]]
what = "CWD"
number = 2.5
)";

TEST_F(PlanText, EveryPartInTheOrderOfTheFile) {
  const Plan plan = read(kRich);
  EXPECT_EQ(plan.title, "\"Quotes\", a \\ and a\nsecond line");
  EXPECT_EQ(plan.about, "Ünïcode # no comment");
  EXPECT_EQ(plan.seeds, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  const Overrides base{{"train.steps", "20"},
                       {"train.batch_size", "4"},
                       {"model.preset", "nano-100k"},
                       {"schedule.warmup_ratio", "0.05"},
                       {"optimizer.lr", "0.002"},
                       {"data.path", R"(["a b", "c,d"])"},
                       {"data.val_path", "[]"},
                       {"log.tensorboard", "false"},
                       {"eval.every", "0"}};
  EXPECT_EQ(plan.base, base);
  ASSERT_EQ(plan.grid.size(), 3u);
  EXPECT_EQ(plan.grid[0].key, "optimizer.weight_decay");
  EXPECT_EQ(plan.grid[0].values, (std::vector<std::string>{"0", "0.1", "1e-30", "1"}));
  EXPECT_EQ(plan.grid[1].key, "model.layers");
  EXPECT_EQ(plan.grid[2].key, "optimizer.beta2");
  EXPECT_EQ(plan.grid[2].values, (std::vector<std::string>{"0.95", "0.99"}));
  ASSERT_EQ(plan.arms.size(), 5u);
  EXPECT_EQ(plan.arms[0].name, "A-1_b+c.d");
  EXPECT_EQ(plan.arms[1].overrides, (Overrides{{"optimizer.name", "adamw"}, {"optimizer.decay", "decoupled"}}));
  EXPECT_EQ(plan.arms[2].budget_of, "A-1_b+c.d");
  EXPECT_TRUE(plan.arms[2].grid);
  EXPECT_FALSE(plan.arms[3].grid);
  EXPECT_FALSE(plan.arms[4].grid) << "a control has the grid of its reference arm";
  ASSERT_EQ(plan.contrasts.size(), 2u);
  EXPECT_TRUE(plan.contrasts[0].primary);
  EXPECT_FALSE(plan.contrasts[0].best);
  EXPECT_FALSE(plan.contrasts[1].primary);
  ASSERT_EQ(plan.paper.size(), 2u);
  EXPECT_EQ(plan.paper[0].number, "3.010");
  EXPECT_EQ(plan.paper[1].number, "2.5");
}

TEST_F(PlanText, WrittenAndReadAgainIsTheSame) {
  for (const std::string_view text : {kExample, kRich}) {
    const Plan plan = read(text);
    const std::string written = to_toml(plan);
    const Plan again = read(written);
    expect_same(plan, again);
    EXPECT_EQ(to_toml(again), written);
  }
}

TEST_F(PlanText, NumbersAreWrittenAsNumbersAndWordsAsWords) {
  const std::string text = to_toml(read(kRich));
  EXPECT_NE(text.find("optimizer.lr = 0.002\n"), std::string::npos) << text;
  EXPECT_NE(text.find("log.tensorboard = false\n"), std::string::npos) << text;
  EXPECT_NE(text.find("optimizer.decay = \"cautious\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("data.path = [\"a b\", \"c,d\"]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\"optimizer.weight_decay\" = [0, 0.1, 1e-30, 1]\n"), std::string::npos) << text;
}

// Texts that look like TOML but are not read back as they are stay strings.
TEST_F(PlanText, AwkwardTextsSurvive) {
  const Plan plan = read(kExample);
  for (const std::string value : {"0x10", "1_000", "0.10", "1979-05-27", "'x'", "a # b", "1\nx = 2", "{a = 1}", "true ", "\\",
                                  "\"", "[\"a\"]", "[1, 2]", "inf"}) {
    Plan other = plan;
    other.base.emplace_back("data.tokenizer", value);
    const Plan again = read(to_toml(other));
    ASSERT_EQ(again.base.size(), 3u) << value;
    EXPECT_EQ(again.base.back().second, value);
  }
}

}  // namespace plan_test
}  // namespace cautious::study
