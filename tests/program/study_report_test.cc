// The report of a study and of a run: what the page says, that it holds all it needs, and the files beside it.
#include <algorithm>
#include <limits>

#include "report/chart.h"
#include "report/page.h"
#include "run_fixture.h"
#include "study/report.h"
#include "study/report_parts.h"
#include "study_sample.h"

namespace cautious::study {
namespace study_report_test {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

class StudyReport : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    write_sample(directory_);
  }
  std::string page() const { return html_of(directory_); }
  // The first 16 are on tuning seeds; then plain at 0, 0.1, 1 and 3.
  std::filesystem::path run(std::size_t number) const {
    return directory_ / "runs" / expand(read_plan(directory_ / "plan.toml"))[number].folder;
  }
  std::string csv(const std::string& name) const { return content(directory_ / "tables" / (name + ".csv")); }
};

TEST_F(StudyReport, FilesBesideThePage) {
  EXPECT_EQ(write_report_of(directory_), directory_ / "report.html");
  EXPECT_EQ(content(directory_ / "report.html"), page());
  EXPECT_EQ(names(directory_ / "figures"),
            (std::set<std::string>{"activation_ratio.svg", "amounts.svg", "arms.svg", "contrasts.svg",
                                   "contrasts_exploratory.svg", "decay_budget.svg", "decay_budget_sum.svg", "rms_gradient.svg",
                                   "rms_parameters.svg", "rms_update.svg", "sweep_weight_decay.svg", "training_loss.svg",
                                   "training_loss_end.svg", "validation_loss.svg", "validation_loss_end.svg"}));
  std::set<std::string> tables;
  for (const char* name : {"arms", "chosen", "contrasts", "contrasts_exploratory", "equal_amounts", "paper", "provenance",
                           "runs", "settings", "tests", "tuning"}) {
    for (const char* end : {".csv", ".md", ".tex"}) tables.insert(std::string(name) + end);
  }
  EXPECT_EQ(names(directory_ / "tables"), tables);
}

// The chosen points differ by 0.1 on every seed, so the interval has no width but that of rounding.
TEST_F(StudyReport, Numbers) {
  write_report_of(directory_);
  EXPECT_NE(
      content(directory_ / "tables" / "contrasts.md")
          .find("| cwd (weight_decay=1) - plain (weight_decay=0.1) | -0.1000 | [-0.1000, -0.1000] | \\< 0.001 | \\< 0.001 | "
                "lower | 3 |"),
      std::string::npos)
      << content(directory_ / "tables" / "contrasts.md");
  EXPECT_NE(content(directory_ / "tables" / "contrasts.md").find("| plain (weight_decay=0.1) - none | -0.5000 |"),
            std::string::npos);
  EXPECT_EQ(csv("paper"), "what,number\n\"AdamW, 338M, validation loss\",3.0136\n");
  EXPECT_EQ(count(csv("runs"), ",done\n"), 43u);
  EXPECT_EQ(count(csv("contrasts_exploratory"), "\n"), 5u);
  EXPECT_TRUE(
      csv("tuning").starts_with("arm,point,mean,seed 100000,seed 100001,choice\n"
                                "plain,weight_decay=0,2.5,2.5,2.5,-\nplain,weight_decay=0.1,2,2,2,chosen\n"))
      << csv("tuning");
}

// Every double can be read again.
TEST_F(StudyReport, TablesForProgramsHaveEveryDigit) {
  write_report_of(directory_);
  const Results results = read_results(directory_);
  const std::string runs = csv("runs");
  for (const FinishedRun& run : results.runs) {
    EXPECT_NE(runs.find(fmt::format("{},{},{},{},{},{},0.5,{},12.5,done\n", run.run.arm,
                                    run.run.point.empty() ? "-" : point_text(run.run.point), run.run.seed,
                                    run.run.tuning ? "tuning" : "judged", run.loss, run.beside[0], run.decay_budget)),
              std::string::npos)
        << run.run.folder;
  }
  EXPECT_NE(runs.find("1.95,2.813255"), std::string::npos);
  const ContrastResult result = verdict_of(results).contrasts.at(0);
  EXPECT_NE(csv("contrasts")
                .find(fmt::format(",{},{},{},", result.difference.value, result.difference.interval.low,
                                  result.difference.interval.high)),
            std::string::npos)
      << csv("contrasts");
}

TEST_F(StudyReport, OnlyKeysThatDiffer) {
  write_report_of(directory_);
  const std::string settings = csv("settings");
  EXPECT_TRUE(settings.starts_with("key,plain,cwd,none\n")) << settings;
  EXPECT_NE(settings.find("optimizer.weight_decay,0.1,1"), std::string::npos) << settings;
  EXPECT_NE(settings.find("optimizer.decay,"), std::string::npos) << settings;
  EXPECT_EQ(settings.find("model."), std::string::npos) << settings;
  EXPECT_EQ(settings.find("seed"), std::string::npos) << settings;
  EXPECT_EQ(settings.find("log."), std::string::npos) << settings;
}

TEST_F(StudyReport, ThePageNeedsNothingElse) {
  const std::string html = page();
  EXPECT_EQ(count(html, "<img class=\"still\""), 15u);
  EXPECT_EQ(count(html, "src=\"data:image/svg+xml;base64,"), 15u);
  EXPECT_EQ(count(html, "src="), 15u);
  EXPECT_EQ(count(html, "<link "), 1u);
  EXPECT_NE(html.find("<link rel=\"icon\" href=\"data:,\">"), html.npos);
  EXPECT_EQ(count(html, "@import"), 0u);
  EXPECT_EQ(count(html, "url("), 0u);
  EXPECT_EQ(html.find(directory_.string()), html.npos);
}

// No decay is a point of plain's curve too.
TEST_F(StudyReport, LegendsLeaveOutWhatIsNotSeen) {
  write_report_of(directory_);
  const std::string amounts = content(directory_ / "figures" / "amounts.svg");
  for (const char* const name : {">plain</text>", ">cwd</text>", ">judged</text>"}) EXPECT_EQ(count(amounts, name), 1u) << name;
  EXPECT_EQ(count(amounts, ">none</text>"), 0u);
  EXPECT_NE(amounts.find("none: 2.5000 to 2.5000 at 0 to 0. "), amounts.npos);
}

TEST_F(StudyReport, TextOfThePlanIsText) {
  const std::string html = page();
  EXPECT_NE(html.find("<h1>Does &lt;CWD&gt; help &amp; how?</h1>"), html.npos);
  EXPECT_NE(html.find("<p>Small runs &lt;/script&gt; beside the paper's.</p>"), html.npos);
  EXPECT_EQ(html.find("<CWD>"), html.npos);
}

TEST_F(StudyReport, SaysWhatItMustSay) {
  const std::string html = page();
  for (const char* words :
       {"35 of 35 runs done; 3 arms, 3 seeds and 2 tuning seeds.", "312 thousand parameters on 16.4 million tokens",
        "4 exploratory comparisons", "asks for p &lt; 0.013", "cautious study plan.toml --out again", "<td>A CPU</td>",
        "plain is judged at 0.1 (2.0000); cwd is judged at 1 (1.9000)"}) {
    EXPECT_NE(html.find(words), html.npos) << words;
  }
  const std::size_t decay = html.find("<p class=\"verdict\">Weight decay helps here: plain (weight_decay=0.1) has a lower"),
                    cwd = html.find("<p class=\"verdict\">cwd (weight_decay=1) has a lower validation loss than plain");
  EXPECT_NE(cwd, html.npos);
  EXPECT_LT(decay, cwd);
  EXPECT_LT(cwd, html.find("<h2"));
  EXPECT_EQ(html.find("provisional"), html.npos);
}

TEST_F(StudyReport, RunsThatAreNotDone) {
  std::filesystem::remove_all(run(17));
  std::filesystem::remove(run(18) / "summary.json");
  write_sample_summary(run(19), 9, "diverged");
  std::filesystem::remove(run(21) / "summary.json");
  store(run(21) / "failure.txt", "first\nno <space> left\n");
  const std::string html = page();
  EXPECT_NE(html.find("31 of 35 runs done, 1 waiting, 1 running, 1 diverged, 1 failed; "), html.npos);
  EXPECT_NE(html.find("The study has not ended: everything below is provisional."), html.npos);
  EXPECT_NE(html.find("<td>failed: no &lt;space&gt; left</td>"), html.npos);
}

TEST_F(StudyReport, NothingHasRun) {
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "runs")) std::filesystem::remove_all(entry.path());
  const std::string html = page();
  EXPECT_NE(html.find("0 of 35 runs done, 35 waiting;"), html.npos);
  EXPECT_NE(html.find("These runs are small."), html.npos);
  EXPECT_EQ(html.find("Provenance"), html.npos);
  EXPECT_EQ(html.find(">nan<"), html.npos);
}

TEST_F(StudyReport, OfOneRun) {
  EXPECT_EQ(write_report_of(run(18)), run(18) / "report.html");
  const std::string html = content(run(18) / "report.html");
  EXPECT_EQ(count(html, "<img class=\"still\""), 10u);
  EXPECT_NE(html.find("<td>decay_budget</td><td>250</td>"), html.npos);
  for (const char* name : {"loss.svg", "learning_rate.svg", "speed.svg"}) {
    EXPECT_TRUE(names(run(18) / "figures").contains(name)) << name;
  }
  std::filesystem::remove(run(18) / "metrics.jsonl");
  EXPECT_NE(html_of(run(18)).find("There are no metrics yet."), std::string::npos);
}

TEST_F(StudyReport, ARunsPageBeginsWithItsResult) {
  const auto begins = [&] {
    const std::string html = html_of(run(18)), from = html.substr(html.find("</h1>") + 6);
    return from.substr(0, from.find("<nav"));
  };
  EXPECT_EQ(begins(),
            "<p class=\"status\">Done at step 1000; 28.5 thousand tokens per second (median).</p>\n"
            "<p class=\"verdict\">Validation loss 2.1500 nats per token.</p>\n");
  write_sample_summary(run(18), 9, "diverged");
  std::ofstream(run(18) / "metrics.jsonl")
      << "{\"step\":5,\"loss\":3,\"val_loss\":2.5,\"val_bpb\":3.6}\n{\"step\":9,\"loss\":2}\n";
  EXPECT_EQ(begins(),
            "<p class=\"status\">Diverged at step 9.</p>\n"
            "<p class=\"verdict\">Validation loss 2.5000 nats per token, 3.6000 bits per byte.</p>\n");
  std::filesystem::remove(run(18) / "summary.json");
  std::ofstream(run(18) / "metrics.jsonl") << "{\"step\":9,\"loss\":2}\n";
  EXPECT_EQ(begins(),
            "<p class=\"status\">Interrupted at step 9.</p>\n"
            "<p class=\"verdict\">Training loss 2.0000.</p>\n");
}

TEST_F(StudyReport, OpensWithThePlansFigure) {
  const auto place = [](const std::string& html, const std::string& name) {
    const std::string figure = "<figure id=\"figure-" + name + "\">";
    EXPECT_EQ(count(html, figure), 1u) << name;
    return html.find(figure);
  };
  for (const char* name : {"activation_ratio", "sweep_weight_decay", "amounts", "arms", "validation_loss"}) {
    store(directory_ / "plan.toml", fmt::format("figure = \"{}\"\n{}", name, kSample));
    const std::string html = page();
    EXPECT_LT(place(html, name), html.find("<p class=\"verdict\">")) << name;
    EXPECT_LT(html.find("<p class=\"verdict\">"), place(html, "contrasts"));
    EXPECT_EQ(count(html, "<img class=\"still\""), 15u);
  }
}

// Validation once in a run, then three times: the end of the curve has nothing to add.
TEST_F(StudyReport, AnEndThatShowsNothingMoreIsLeftOut) {
  const auto measured = [&](int every) {
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "runs")) {
      std::ofstream out(entry.path() / "metrics.jsonl");
      for (int step = 10; step <= 100; step += 10) {
        out << fmt::format("{{\"step\":{},\"loss\":2{}}}\n", step, step % every == 0 ? ",\"val_loss\":2" : "");
      }
    }
    const std::string html = page();
    EXPECT_EQ(count(html, "<figure id=\"figure-validation_loss\">"), 1u);
    EXPECT_EQ(count(html, "<figure id=\"figure-training_loss_end\">"), 1u);
    return count(html, "<figure id=\"figure-validation_loss_end\">");
  };
  EXPECT_EQ(measured(100), 0u);
  EXPECT_EQ(measured(40), 0u);
  EXPECT_EQ(measured(10), 1u);
  EXPECT_EQ(count(html_of(run(18)), "<figure id=\"figure-loss_end\">"), 1u);
  std::ofstream(run(18) / "metrics.jsonl") << "{\"step\":90,\"loss\":2}\n{\"step\":95,\"loss\":2}\n{\"step\":100,\"loss\":2}\n";
  EXPECT_EQ(count(html_of(run(18)), "<figure id=\"figure-loss_end\">"), 0u) << "all of it is the end";
}

TEST_F(StudyReport, OtherDirectoriesAreRefused) {
  const auto none = directory_ / "none", other = directory_ / "configs";
  std::filesystem::create_directory(other);
  EXPECT_EQ(refused(Fault::usage, [&] { write_report_of(none); }),
            "'" + none.string() + "' is not a directory; give that of a study, of a run, or one with runs in it");
  EXPECT_EQ(refused(Fault::usage, [&] { write_report_of(other); }),
            "'" + other.string() +
                "' is neither a study (it has no plan.toml) nor a run (no config.toml), and there are no runs in it");
  store(directory_ / "figures", "");
  EXPECT_NE(refused(Fault::failure, [&] { write_report_of(directory_); }).find("figures: cannot be made: "), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "report.html"));
}

TEST_F(StudyReport, DamagedMetricsNameFileAndLine) {
  store(run(17) / "metrics.jsonl", "{\"step\":1,\"loss\":2}\nnonsense\n");
  EXPECT_NE(refused(Fault::data, [&] { page(); }).find("metrics.jsonl: line 2"), std::string::npos);
}

TEST_F(StudyReport, StampFollowsTheFiles) {
  const std::string before = stamp_of(directory_);
  EXPECT_EQ(stamp_of(directory_), before);
  write_report_of(directory_);
  EXPECT_EQ(stamp_of(directory_), before);  // or watching would never rest
  std::ofstream(run(4) / "metrics.jsonl", std::ios::app) << "{\"step\":2000}\n";
  EXPECT_NE(stamp_of(directory_), before);
}

TEST(Curves, MeanBandAndSum) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Curve a = curve_of({{10, {{"x", 1}}}, {20, {{"y", 5}}}, {30, {{"x", kNone}}}, {40, {{"x", 3}}}}, "x");
  EXPECT_EQ(a.steps, (std::vector<double>{10, 40}));
  EXPECT_EQ(summed(a).values, (std::vector<double>{10, 100}));
  const report::ChartSeries mean = mean_series({a, {{10, 20, 40}, {2, 7, 5}}});
  EXPECT_EQ(mean.x, (std::vector<double>{10, 40}));
  EXPECT_EQ(mean.y, (std::vector<double>{1.5, 4}));
  EXPECT_EQ(mean.low, (std::vector<double>{1, 3}));
  EXPECT_EQ(mean.high, (std::vector<double>{2, 5}));
  EXPECT_TRUE(mean_series({a}).low.empty());
}

TEST(ChartJson, ThinsCutsAndEscapes) {
  report::LineChart chart;
  chart.title = "</script>";
  chart.y_scale = report::Scale::log;
  chart.x_range = {1000, 3000};
  report::ChartSeries series;
  for (int i = 0; i <= 4000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 1000 ? -1 : 1);
  }
  chart.series = {series};
  const std::string json = page_json(chart);
  EXPECT_EQ(json.find("</"), json.npos);
  EXPECT_NE(json.find("\"x\":[1000,"), json.npos);
  EXPECT_NE(json.find(",3000],\"y\":[null,1,"), json.npos);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(json.substr(json.find("\"y\":[")), ',')), 599u);
}

}  // namespace study_report_test
}  // namespace cautious::study
