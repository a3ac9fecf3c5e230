// The runs in a folder: what each is called, in which keys they differ, and the page of them all.
#include "study/run_list.h"

#include <gtest/gtest.h>

#include <any>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "report/chart.h"
#include "run_fixture.h"
#include "study/report.h"
#include "study_sample.h"

namespace run_list_test {

using namespace cautious;
namespace fs = std::filesystem;

void write_run(const fs::path& folder, const std::vector<std::pair<std::string, std::string>>& keys, double loss) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.toml") << to_toml(run::read_config({.files = {}, .preset = "nano-100k", .overrides = keys}));
  if (loss > 0) study::write_sample_metrics(folder, loss);
}

const study::ListedRun& named(const std::vector<study::ListedRun>& runs, const std::string& name) {
  for (const study::ListedRun& run : runs) {
    if (run.name == name) return run;
  }
  throw std::runtime_error("no run " + name);
}

class RunList : public RunFiles {};

TEST_F(RunList, SaysWhatEachIsAndInWhatTheyDiffer) {
  write_run(directory_ / "a", {{"train.steps", "2000"}, {"data.path", "gcide"}, {"optimizer.lr", "0.25"}}, 2);
  study::write_sample_summary(directory_ / "a", 2, "diverged");
  write_run(directory_ / "deep" / "b", {{"train.steps", "2000"}, {"data.path", "gcide"}, {"optimizer.lr", "0.5"}}, 1);
  write_run(directory_ / "c", {{"train.steps", "2000"}, {"data.path", "gcide"}, {"log.every", "7"}}, 0);
  fs::create_directories(directory_ / "d" / "runs" / "inside");
  std::ofstream(directory_ / "d" / "config.toml") << "[model]\nwidth = \"wide\"\n";
  std::ofstream(directory_ / "d" / "runs" / "inside" / "config.toml") << "";
  const base::DirectoryLock lock(directory_ / "deep" / "b");

  const std::vector<study::ListedRun> runs = study::runs_below(directory_);
  ASSERT_EQ(runs.size(), 4u);  // what is inside a run is none
  EXPECT_EQ(named(runs, "a").status, "diverged");
  EXPECT_EQ(named(runs, "a").step(), 1000);
  EXPECT_EQ(named(runs, "a").steps, 2000);
  EXPECT_NEAR(named(runs, "a").last("val_loss"), 2, 1e-9);
  EXPECT_EQ(named(runs, "deep/b").status, "running");
  EXPECT_EQ(named(runs, "c").status, "not begun");
  EXPECT_TRUE(std::isnan(named(runs, "c").last("loss")));
  EXPECT_EQ(named(runs, "d").status, "damaged");
  EXPECT_NE(named(runs, "d").trouble.find("wide"), std::string::npos);
  using Settings = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(named(runs, "a").settings, (Settings{{"optimizer.lr", "0.25"}}));
  EXPECT_EQ(named(runs, "deep/b").settings, (Settings{{"optimizer.lr", "0.5"}}));

  const report::Table table = study::run_list_table(runs);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"a", "diverged", "1000", "2000", "2.0000", "2.0000", "optimizer.lr=0.25"}));
  const auto json = nlohmann::json::parse(study::run_list_json(runs));
  EXPECT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["differs"]["optimizer.lr"], 0.25);
  EXPECT_FALSE(json[1].contains("loss"));
}

TEST_F(RunList, OfARunItselfThatOne) {
  write_run(directory_ / "a", {{"data.path", "gcide"}}, 2);
  const std::vector<study::ListedRun> runs = study::runs_below(directory_ / "a");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].name, "a");
  EXPECT_EQ(runs[0].status, "interrupted");
}

TEST_F(RunList, SaysWhatFailed) {
  write_run(directory_ / "a", {{"data.path", "gcide"}}, 0);
  write_run(directory_ / "b", {{"data.path", "gcide"}}, 2);
  study::write_sample_summary(directory_ / "b", 2, "done");
  for (const char* const run : {"a", "b"}) std::ofstream(directory_ / run / "failure.txt") << "no result\n";
  const std::vector<study::ListedRun> runs = study::runs_below(directory_);
  EXPECT_EQ(named(runs, "a").status, "failed");
  EXPECT_EQ(named(runs, "b").status, "done");
}

TEST_F(RunList, SaysWhereTheModelsStart) {
  write_run(directory_ / "a", {{"data.path", "gcide"}}, 1);
  write_run(directory_ / "b", {{"data.path", "gcide"}, {"model.layers", "3"}, {"train.steps", "1144"}}, 1);
  write_run(directory_ / "c", {{"data.path", "gcide"}}, 1);
  std::string text = base::read_file(directory_ / "c" / "config.toml");
  const std::string none = "from = \"\"";
  ASSERT_NE(text.find(none), text.npos);
  std::ofstream(directory_ / "c" / "config.toml") << text.replace(text.find(none), none.size(), "from = \"/elsewhere\"");
  const std::vector<study::ListedRun> runs = study::runs_below(directory_);
  const auto settings_of = [&](const std::string& name) {
    std::map<std::string, std::string> settings;
    for (const auto& [key, value] : named(runs, name).settings) settings[key] = value;
    return settings;
  };
  EXPECT_EQ(settings_of("a").at("model.preset"), "\"nano-100k\"");
  EXPECT_EQ(settings_of("a").at("model.layers"), "2");  // of the same preset, the keys tell
  EXPECT_EQ(settings_of("b").at("model.layers"), "3");
  EXPECT_FALSE(settings_of("a").contains("model.from"));
  EXPECT_EQ(settings_of("c").at("model.from"), "\"/elsewhere\"");  // its preset says nothing
  EXPECT_FALSE(settings_of("c").contains("model.preset"));
  EXPECT_FALSE(settings_of("c").contains("model.layers"));
}

TEST_F(RunList, ADamagedSummaryIsNamed) {
  const fs::path run = directory_ / "a", summary = run / "summary.json";
  write_run(run, {{"data.path", "gcide"}}, 2);
  const std::string next = "; remove the file to repeat the run";
  for (const auto& [text, why] : {std::pair{"{", "not a JSON object"},
                                  {R"({"status": 3})", "'status' is missing or not a string"},
                                  {R"({"status": "fine"})", "'status' is 'fine'; valid: done, diverged, stopped"},
                                  {R"({"status": "done", "val_accuracy": 2})", "'val_accuracy' is 2; valid: [0, 1]"},
                                  {R"({"status": "done", "val_loss": "x"})", "'val_loss' is '\"x\"', not a number"},
                                  {R"({"status": "done", "steps": -1})", "'steps' is -1, not a count"},
                                  {R"({"status": "done", "tokens": "</p>"})", "'tokens' is '\"</p>\"', not a number"}}) {
    store(summary, text);
    EXPECT_EQ(refused(Fault::data, [&] { study::status_of_run(run, true); }), summary.string() + ": " + why + next);
    const std::vector<study::ListedRun> runs = study::runs_below(directory_);
    EXPECT_EQ(named(runs, "a").status, "damaged");
    EXPECT_EQ(named(runs, "a").trouble, summary.string() + ": " + why + next);
    EXPECT_TRUE(refused(Fault::data, [&] { study::html_of(run); }).starts_with(summary.string() + ": "));
  }
}

TEST_F(RunList, OnePageOfThoseThatChangedLast) {
  for (int i = 0; i < 14; ++i) write_run(directory_ / fmt::format("run{}", i), {{"data.path", "gcide"}}, 1 + 0.1 * i);
  const study::RunListReport report = study::run_list_report(directory_, study::runs_below(directory_));
  EXPECT_EQ(report.table.rows.size(), 14u);
  ASSERT_FALSE(report.figures.empty());
  EXPECT_EQ(std::any_cast<report::LineChart>(report.figures[0].chart).series.size(), 12u);
  EXPECT_NE(report.page.find("The 12 of 14 runs whose metrics changed last."), std::string::npos);
  EXPECT_EQ(study::html_of(directory_), report.page);
  const std::string before = study::stamp_of(directory_);
  study::write_sample_metrics(directory_ / "run3", 5);
  std::ofstream(directory_ / "run3" / "metrics.jsonl", std::ios::app) << "{\"step\":1001,\"loss\":5}\n";
  EXPECT_NE(study::stamp_of(directory_), before);
  EXPECT_EQ(study::write_report_of(directory_), directory_ / "report.html");
  EXPECT_TRUE(fs::exists(directory_ / "tables" / "runs.csv"));
}

}  // namespace run_list_test
