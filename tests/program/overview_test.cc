// One page of several studies, from the tables that their reports left.
#include <cmath>

#include <fmt/format.h>

#include "report/table.h"
#include "run_fixture.h"
#include "study/overview.h"
#include "study/report.h"
#include "study/statistics.h"
#include "study_sample.h"

namespace cautious::study {
namespace overview_test {

constexpr const char* kHead =
    "contrast,a,point of a,b,point of b,outcome,seeds,difference,low,high,p,p (Holm),sd,measure,unit\n";

class Overview : public RunFiles {
 protected:
  std::filesystem::path study(const std::string& name, const std::string& rows, const std::string& head = kHead) const {
    const std::filesystem::path folder = directory_ / name;
    std::filesystem::create_directories(folder / "tables");
    store(folder / "tables" / "contrasts.csv", head + rows);
    return folder;
  }
  // Of a standard deviation that makes the standard error 0.01.
  static std::string row(const std::string& a, const std::string& b, double difference, const std::string& outcome = "lower",
                         const std::string& measure = "loss", const std::string& sd = "0.02") {
    return fmt::format("\"{0} (lr=1, x=2) - {1}\",{0},\"lr=1, x=2\",{1},,{2},8,{3},{4},{5},0.04,,{6},{7},nats\n", a, b, outcome,
                       difference, difference - 0.02, difference + 0.02, sd, measure);
  }
  std::filesystem::path out() const { return directory_ / "all"; }
  std::string written(const std::string& name) const { return content(out() / name); }
};

TEST_F(Overview, DifferencesAndTheirMeans) {
  const auto first = study("first", row("cwd", "plain", -0.05) + row("plain", "none", -0.4));
  const auto second = study("second", row("cwd", "plain", 0.01, "not detectable"));
  EXPECT_EQ(write_overview({first, second}, out()), out() / "report.html");
  EXPECT_EQ(names(out() / "figures"), std::set<std::string>{"cwd_plain.svg"});
  EXPECT_EQ(names(out() / "tables"), (std::set<std::string>{"differences.csv", "differences.md", "differences.tex", "means.csv",
                                                            "means.md", "means.tex"}));
  const Combined mean = combined(std::vector<Finding>{{-0.05, 0.01}, {0.01, 0.01}});
  EXPECT_EQ(written("tables/means.csv"),
            fmt::format("difference,studies,mean,low,high,p,between studies\ncwd - plain,2,{},{},{},{},{}\n", mean.mean,
                        mean.interval.low, mean.interval.high, mean.p, mean.between));
  EXPECT_EQ(written("tables/differences.csv"),
            "difference,study,first at,second at,value,95% interval,p,p (Holm),outcome,seeds\n"
            "cwd - plain,first,\"lr=1, x=2\",-,-0.050,\"[-0.070, -0.030]\",0.040,-,lower,8\n"
            "cwd - plain,second,\"lr=1, x=2\",-,+0.010,\"[-0.010, 0.030]\",0.040,-,not detectable,8\n"
            "plain - none,first,\"lr=1, x=2\",-,-0.400,\"[-0.420, -0.380]\",0.040,-,lower,8\n");
  const std::string page = written("report.html");
  for (const char* words : {"3 prespecified differences in 2 studies.", "cwd - plain: -0.020 nats [",
                            "in the mean of 2 studies", "Lower in 1, not detectable in 1."})
    EXPECT_NE(page.find(words), page.npos) << words;
  EXPECT_NE(written("figures/cwd_plain.svg").find("mean of 2 studies"), std::string::npos);
}

// What another lambda may change, or what has no chance in it, is in the table and not in the mean.
TEST_F(Overview, WhatSaysNothingDoesNotCount) {
  const auto first = study("first", row("cwd", "plain", -0.05));
  const auto second = study("second", row("cwd", "plain", -0.03));
  const auto edge = study("edge", row("cwd", "plain", 5, "edge of the grid"));
  const auto same = study("same", row("cwd", "plain", 0, "the same runs", "loss", "0"));
  const auto few = study("few", "cwd - plain,cwd,,plain,,too few runs,0,,,,,,,loss,nats\n");
  write_overview({first, edge, same, second, few}, out());
  EXPECT_TRUE(written("tables/means.csv").find("\ncwd - plain,2,-0.04") != std::string::npos) << written("tables/means.csv");
  EXPECT_EQ(report::rows_of_csv(written("tables/differences.csv")).size(), 6u);
  EXPECT_NE(written("tables/differences.csv").find("cwd - plain,few,-,-,-,-,-,-,too few runs,0\n"), std::string::npos);
}

TEST_F(Overview, OfStudiesAsTheyAreWritten) {
  for (const char* name : {"one", "two"}) {
    write_sample(directory_ / name);
    write_report_of(directory_ / name);
  }
  write_overview({directory_ / "one", directory_ / "two"}, out());
  const std::string differences = written("tables/differences.csv");
  EXPECT_NE(differences.find("cwd - plain,one,weight_decay=1,weight_decay=0.1,-0.1"), differences.npos) << differences;
  EXPECT_NE(differences.find("cwd - plain,two,"), differences.npos) << differences;
}

// By seeds that have both, judged and done; what is better is known of the accuracy alone.
TEST_F(Overview, AnotherColumnOfTheRuns) {
  const auto of = [&](const std::string& name, const std::vector<double>& accuracies) {
    const std::filesystem::path folder = study(name, row("cwd", "plain", -0.05) + row("plain", "none", 0, "edge of the grid"));
    std::string runs =
        "arm,point,seed,use,loss,accuracy,status\n"
        "cwd,\"lr=1, x=2\",9,judged,2,0.9,failed\nplain,-,9,judged,2,0.9,done\n"
        "cwd,\"lr=1, x=2\",100000,tuning,2,0.9,done\nplain,-,100000,tuning,2,0.1,done\ncwd,lr=1,0,judged,2,0.7,done\n";
    for (std::size_t seed = 0; seed < accuracies.size(); ++seed) {
      runs +=
          fmt::format("cwd,\"lr=1, x=2\",{},judged,2,{},done\nplain,-,{},judged,2,0.25,done\n", seed, accuracies[seed], seed);
    }
    store(folder / "tables" / "runs.csv", runs);
    return folder;
  };
  const std::vector<std::filesystem::path> studies{of("first", {0.5, 0.5625, 0.625}), of("second", {0.25, 0.375, 0.125, 0.25})};
  write_overview(studies, out(), "accuracy");
  const Paired first = paired(std::vector<double>{0.5, 0.5625, 0.625}, std::vector<double>(3, 0.25)),
               second = paired(std::vector<double>{0.25, 0.375, 0.125, 0.25}, std::vector<double>(4, 0.25));
  const Combined mean = combined(
      std::vector<Finding>{{first.difference, first.sd / std::sqrt(3.0)}, {second.difference, second.sd / std::sqrt(4.0)}});
  const std::vector<std::vector<std::string>> means = report::rows_of_csv(written("tables/means.csv"));
  ASSERT_EQ(means.size(), 2u);
  EXPECT_NEAR(std::stod(means[1][2]), mean.mean, 1e-12);
  EXPECT_NEAR(std::stod(means[1][3]), mean.interval.low, 1e-9);
  const std::string differences = written("tables/differences.csv");
  EXPECT_NE(differences.find(fmt::format("cwd - plain,first,\"lr=1, x=2\",-,+0.31,\"[{:.2f}, {:.2f}]\",{:.3f},-,higher,3\n",
                                         first.interval.low, first.interval.high, first.t_p)),
            differences.npos)
      << differences;
  EXPECT_NE(differences.find(",not detectable,4\n"), differences.npos) << differences;
  EXPECT_NE(differences.find("plain - none,first,\"lr=1, x=2\",-,-,-,-,-,edge of the grid,0\n"), differences.npos)
      << differences;
  EXPECT_NE(written("figures/cwd_plain.svg").find("right of 0: cwd is better"), std::string::npos);
  EXPECT_NE(written("report.html").find("Exploratory: by accuracy"), std::string::npos);
  EXPECT_NE(written("tables/differences.md").find("by accuracy instead: paired t-tests, exploratory"), std::string::npos);
  EXPECT_NE(refused(Fault::usage, [&] { write_overview(studies, out(), "seed"); }).find("--column 'seed'"), std::string::npos);
  EXPECT_NE(refused(Fault::usage, [&] { write_overview(studies, out(), "speed"); })
                .find("--column 'speed': tables/runs.csv of first has no such numbers; valid: loss, accuracy"),
            std::string::npos);
}

// Numbers that no study of ours leaves, but a file may have.
TEST_F(Overview, IntervalsWithoutLength) {
  const auto flat = [](double at) {
    return fmt::format("cwd - plain,cwd,,plain,,lower,8,{0},{0},{0},0.04,,0.02,loss,nats\n", at);
  };
  write_overview({study("first", flat(-1e99)), study("second", flat(-1e99))}, out());
  EXPECT_NE(written("tables/means.csv").find("cwd - plain,2,-1e+99,"), std::string::npos) << written("tables/means.csv");
  write_overview({study("first", flat(-0.25)), study("second", flat(-0.75))}, out());
  EXPECT_NE(written("tables/means.csv").find("cwd - plain,2,-0.5,"), std::string::npos) << written("tables/means.csv");
}

TEST_F(Overview, StudiesOfOneNameHaveTheirPaths) {
  const auto first = study("a/same", row("cwd", "plain", -0.05)), second = study("b/same", row("cwd", "plain", -0.03));
  write_overview({first, second}, out());
  EXPECT_NE(written("tables/differences.csv").find("cwd - plain," + second.string() + ","), std::string::npos);
}

TEST_F(Overview, WhatCannotBePutTogether) {
  const auto first = study("first", row("cwd", "plain", -0.05));
  const auto images = study("images", row("cwd", "plain", -0.3, "lower", "top-1 error"));
  const auto refusal = [&](Fault fault, const std::vector<std::filesystem::path>& studies) {
    return refused(fault, [&] { write_overview(studies, out()); });
  };
  EXPECT_NE(refusal(Fault::usage, {first, images}).find("first is judged by 'loss (nats)', images by 'top-1 error (nats)'"),
            std::string::npos);
  EXPECT_NE(refusal(Fault::usage, {first, first}).find("is there twice"), std::string::npos);
  EXPECT_NE(refusal(Fault::usage, {first, directory_}).find("to write it: cautious report "), std::string::npos);
  EXPECT_NE(refusal(Fault::usage, {study("none", ""), study("more", "")}).find("no prespecified differences"),
            std::string::npos);
  store(directory_ / "plan.toml", "");
  EXPECT_NE(refused(Fault::usage,
                    [&] {
                      write_overview({first, images}, directory_);
                    })
                .find("own report.html would be lost"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Overview, DamagedTables) {
  const auto first = study("first", row("cwd", "plain", -0.05));
  const auto refusal = [&](const std::string& rows, const std::string& head = kHead) {
    return refused(Fault::data, [&] { write_overview({first, study("second", rows, head)}, out()); });
  };
  const std::string good = row("cwd", "plain", 0.25);
  EXPECT_NE(refusal("", "").find("contrasts.csv: is empty; to write it again: cautious report "), std::string::npos);
  EXPECT_NE(refusal(good, "contrast,a\n").find("has no column 'point of a'"), std::string::npos);
  EXPECT_NE(refusal("x,y\n").find("row 1 has no 'point of a'"), std::string::npos);
  EXPECT_NE(refusal("\"x").find("a quoted cell in row 2 has no end"), std::string::npos);
  for (const char* bad : {"0.25x", "1e999", "nan"}) {
    std::string rows = good;
    rows.replace(rows.find(",0.25,") + 1, 4, bad);
    EXPECT_NE(refusal(rows).find(fmt::format("row 1: difference is '{}'; valid: a number", bad)), std::string::npos);
  }
  std::string rows = good;
  rows.replace(rows.find(",8,") + 1, 1, "-8");
  EXPECT_NE(refusal(rows).find("row 1: seeds is '-8'; valid: a count"), std::string::npos);
}

}  // namespace overview_test
}  // namespace cautious::study
