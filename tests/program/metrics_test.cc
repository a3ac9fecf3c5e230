// A run's metrics: exact bytes of JSONL and CSV, doubles that survive, what a resumed run keeps, every malformed file.
#include "run/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run_fixture.h"

namespace cautious::run {
namespace metrics_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class Metrics : public RunFiles {
 protected:
  std::filesystem::path jsonl() const { return directory_ / "metrics.jsonl"; }
  std::filesystem::path csv() const { return directory_ / "metrics.csv"; }
  std::filesystem::path tb() const { return directory_ / "tb"; }

  // Steps 10, 20, ... `last`, with the loss 1/step.
  void write_until(std::int64_t last) const {
    run::MetricsWriter writer(directory_, {"step", "loss"}, 0, true);
    for (std::int64_t step = 10; step <= last; step += 10) writer.add({step, {{"loss", 1.0 / static_cast<double>(step)}}});
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const run::MetricsRow& row : run::read_metrics(jsonl())) found.push_back(row.step);
    return found;
  }
  std::string events() const {
    EXPECT_EQ(names(tb()).size(), 1u);
    return content(tb() / *names(tb()).begin());
  }
  void expect_malformed(const std::string& text, const std::string& message) const {
    store(jsonl(), text);
    EXPECT_EQ(refused(Fault::data, [&] { run::read_metrics(jsonl()); }), jsonl().string() + message);
  }
};

using Steps = std::vector<std::int64_t>;

TEST_F(Metrics, ExactBytesAsSoonAsTheyAreAdded) {
  run::MetricsWriter writer(directory_, {"step", "loss", "val_loss", "attention/ratio", "a,\"b\""}, 0, false);
  EXPECT_EQ(content(jsonl()), "");
  EXPECT_EQ(content(csv()), "step,loss,val_loss,attention/ratio,\"a,\"\"b\"\"\"\r\n");
  writer.add({10, {{"loss", 2.5}, {"val_loss", kNan}, {"a,\"b\"", 1e-7}}});
  writer.add({20, {{"loss", -kInf}, {"attention/ratio", 0.1}, {"val_loss", -0.0}}});  // in any order
  writer.add({30, {}});
  EXPECT_EQ(content(jsonl()),
            "{\"step\":10,\"loss\":2.5,\"val_loss\":null,\"a,\\\"b\\\"\":1e-07}\n"
            "{\"step\":20,\"loss\":null,\"attention/ratio\":0.1,\"val_loss\":-0.0}\n"
            "{\"step\":30}\n");
  EXPECT_EQ(content(csv()).substr(content(csv()).find('\n') + 1), "10,2.5,,,1e-07\r\n20,,-0.0,0.1,\r\n30,,,,\r\n");
  EXPECT_FALSE(std::filesystem::exists(tb()));
}

TEST_F(Metrics, WithoutColumnsThereAreSteps) {
  run::MetricsWriter(directory_, {}, 0, false).add({7, {}});
  EXPECT_EQ(content(csv()), "step\r\n7\r\n");
}

TEST_F(Metrics, EveryDoubleComesBack) {
  std::mt19937_64 random(1);
  run::MetricsRow row{std::numeric_limits<std::int64_t>::max(), {}};
  std::vector<std::string> columns = {"step"};
  std::vector<double> values = {
      0.0, -0.0, 1.0, -1.0, 5e-324, 1.7976931348623157e308, 0.1, 1e15, 1e16, 1e22, 9007199254740993.0};
  while (values.size() < 20000) values.push_back(std::bit_cast<double>(random()));
  for (const double value : values) {
    columns.push_back("c" + std::to_string(columns.size()));
    row.values.emplace_back(columns.back(), value);
  }
  run::MetricsWriter(directory_, columns, 0, false).add(row);
  const auto read = run::read_metrics(jsonl());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].step, row.step);
  ASSERT_EQ(read[0].values.size(), values.size());
  const auto document = nlohmann::json::parse(content(jsonl()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(read[0].values[i].first, columns[i + 1]);
    const double back = read[0].values[i].second;
    if (std::isfinite(values[i])) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(values[i])) << values[i];
      EXPECT_EQ(document[columns[i + 1]].get<double>(), values[i]);
    } else {
      EXPECT_TRUE(std::isnan(back));
    }
  }
}

TEST_F(Metrics, AnUnknownColumnIsRefusedBeforeAnythingIsWritten) {
  run::MetricsWriter writer(directory_, {"step", "loss", "val_loss"}, 0, true);
  EXPECT_EQ(refused(Fault::usage,
                    [&] {
                      writer.add({1, {{"loss", 1}, {"vall_loss", 1}}});
                    }),
            "no metric named 'vall_loss'; did you mean 'val_loss'? choices: loss, val_loss");
  EXPECT_EQ(refused(Fault::usage,
                    [&] {
                      writer.add({1, {{"loss", 1}, {"loss", 2}}});
                    }),
            "metric 'loss' occurs twice in the row of step 1");
  EXPECT_NE(refused(Fault::usage, [&] { writer.add({1, {{"step", 1}}}); }).find("no metric named 'step'"), std::string::npos);
  EXPECT_TRUE(run::read_metrics(jsonl()).empty());
}

TEST_F(Metrics, AResumedRunGoesOnAfterItsCheckpoint) {
  write_until(50);
  const std::string before = content(jsonl());
  {
    run::MetricsWriter writer(directory_, {"step", "loss"}, 30, true);
    EXPECT_EQ(content(jsonl()), before.substr(0, before.find("{\"step\":40")));
    writer.add({40, {{"loss", 7}}});
  }
  EXPECT_EQ(steps(), (Steps{10, 20, 30, 40}));
  EXPECT_EQ(content(csv()), "step,loss\r\n10,0.1\r\n20,0.05\r\n30,0.03333333333333333\r\n40,7\r\n");
  EXPECT_EQ(names(directory_), (std::set<std::string>{"metrics.csv", "metrics.jsonl", "tb"}));
}

TEST_F(Metrics, ColumnsNoLongerAskedForStay) {
  write_until(20);
  run::MetricsWriter(directory_, {"step", "val"}, 20, false).add({30, {{"val", 3}}});
  EXPECT_EQ(content(csv()), "step,val,loss\r\n10,,0.1\r\n20,,0.05\r\n30,3,\r\n");
}

TEST_F(Metrics, AKilledWriterLeavesAtMostHalfALine) {
  write_until(30);
  store(jsonl(), content(jsonl()) + "{\"step\":40,\"lo");
  store(csv(), content(csv()) + "40,0.0");
  store(tb() / *names(tb()).begin(), events() + "half a record");
  EXPECT_EQ(steps(), (Steps{10, 20, 30}));
  run::MetricsWriter(directory_, {"step", "loss"}, 30, true).add({40, {{"loss", 4}}});
  EXPECT_EQ(steps(), (Steps{10, 20, 30, 40}));
  EXPECT_TRUE(content(csv()).ends_with("30,0.03333333333333333\r\n40,4\r\n"));
  EXPECT_EQ(events().find("half"), std::string::npos);
}

TEST_F(Metrics, WhatAPowerLossLeavesBehindTheCheckpointGoes) {
  write_until(30);
  const std::string sound = content(jsonl());
  const std::string zeros(100, '\0');
  for (const std::string& end : {zeros, zeros + "\n", zeros + "\n" + zeros + "\n{\"step\":40}\n", std::string("{\"st\n")}) {
    store(jsonl(), sound + end);
    const run::MetricsWriter writer(directory_, {"step", "loss"}, 30, true);
    EXPECT_EQ(steps(), (Steps{10, 20, 30}));
  }
  store(jsonl(), "nonsense\n" + sound);  // before rows of the checkpoint: not a power loss
  EXPECT_EQ(refused(Fault::data,
                    [&] {
                      run::MetricsWriter(directory_, {"step", "loss"}, 30, true);
                    }),
            jsonl().string() + ": line 1: not JSON at byte 2");
}

TEST_F(Metrics, EventsAreTheRowsWithTheirTimes) {
  {
    run::MetricsWriter writer(directory_, {"step", "time", "loss"}, 0, true);
    for (std::int64_t step = 1; step <= 3; ++step)
      writer.add({step, {{"time", 1.5e9 + static_cast<double>(step)}, {"loss", 0.25}}});
  }
  std::string expected;
  for (std::int64_t step = 1; step <= 2; ++step) {
    const std::vector<std::pair<std::string, double>> values = {{"time", 1.5e9 + static_cast<double>(step)}, {"loss", 0.25}};
    expected += run::tensorboard_scalars(values[0].second, step, values);
  }
  EXPECT_NE(events().find(expected), std::string::npos);
  store(tb() / "events.out.tfevents.0000000001.elsewhere", "old");
  store(tb() / "notes.txt", "mine");
  run::MetricsWriter(directory_, {"step", "time", "loss"}, 2, true);
  EXPECT_EQ(content(tb() / "notes.txt"), "mine");
  std::filesystem::remove(tb() / "notes.txt");
  EXPECT_TRUE(events().ends_with(expected));
  run::MetricsWriter(directory_, {"step", "time", "loss"}, 2, false);
  EXPECT_TRUE(names(tb()).empty());
}

TEST_F(Metrics, AFullDiskIsOneErrorAndLeavesWholeRows) {
  run::MetricsWriter writer(directory_, {"step", "loss"}, 0, false);
  std::int64_t step = 0;
  {
    const SmallFiles small(1000);
    EXPECT_EQ(refused(Fault::failure,
                      [&] {
                        while (++step < 1000) writer.add({step, {{"loss", 0.125}}});
                      }),
              jsonl().string() + ": cannot append: File too large");
  }
  EXPECT_GT(step, 30);
  EXPECT_EQ(run::read_metrics(jsonl()).size(), static_cast<std::size_t>(step - 1));
  EXPECT_EQ(content(jsonl()).back(), '\n');
  writer.add({step, {{"loss", 1}}});  // there is room again
  EXPECT_EQ(steps().back(), step);
}

TEST_F(Metrics, PlacesThatCannotBeUsed) {
  EXPECT_EQ(refused(Fault::data, [&] { run::read_metrics(jsonl()); }),
            jsonl().string() + ": cannot read: No such file or directory");
  EXPECT_EQ(refused(Fault::data, [&] { run::read_metrics(directory_); }),
            directory_.string() + ": cannot read: is a directory");
  const auto none = directory_ / "none";
  EXPECT_NE(refused(Fault::failure, [&] { run::MetricsWriter(none, {}, 0, true); }).find("No such file or directory"),
            std::string::npos);
  store(tb(), "a file");
  EXPECT_NE(refused(Fault::failure, [&] { run::MetricsWriter(directory_, {}, 0, true); }).find(tb().string() + ": cannot make"),
            std::string::npos);
}

TEST_F(Metrics, Malformed) {
  const std::string ok = "{\"step\":1,\"a\":0.5}\n";
  expect_malformed(ok + "\n", ": line 2: not JSON at byte 1");
  expect_malformed(ok + ok + "{\"step\":1,}\n", ": line 3: not JSON at byte 11");
  expect_malformed("{\"step\":1} {}\n", ": line 1: not JSON at byte 12");
  expect_malformed("{\"step\":1,\"a\":1e999}\n", ": line 1: a number beyond the range of doubles at byte 19");
  expect_malformed("{}\n", ": line 1: no 'step'");
  expect_malformed("[1]\n", ": line 1: an array instead of an object");
  expect_malformed("null\n", ": line 1: null instead of an object");
  expect_malformed("7\n", ": line 1: 7 instead of an object");
  expect_malformed("{\"step\":-1}\n", ": line 1: 'step' is -1; expected a whole number from 0 to 2^63-1");
  expect_malformed("{\"step\":1.0}\n", ": line 1: 'step' is 1.0; expected a whole number from 0 to 2^63-1");
  expect_malformed("{\"step\":null}\n", ": line 1: 'step' is null; expected a whole number from 0 to 2^63-1");
  expect_malformed("{\"step\":9223372036854775808}\n",
                   ": line 1: 'step' is 9223372036854775808; expected a whole number from 0 to 2^63-1");
  expect_malformed("{\"step\":1,\"a\":true}\n", ": line 1: 'a' is true; expected a number or null");
  expect_malformed("{\"step\":1,\"a\":\"x\\n\"}\n", ": line 1: 'a' is the string 'x\\x0a'; expected a number or null");
  expect_malformed("{\"step\":1,\"a\":{}}\n", ": line 1: 'a' is an object; expected a number or null");
  expect_malformed("{\"step\":1,\"a\":[1]}\n", ": line 1: 'a' is an array; expected a number or null");
  expect_malformed("{\"step\":1,\"a\":1,\"a\":2}\n", ": line 1: 'a' occurs twice");
  expect_malformed("{\"step\":1,\"step\":1}\n", ": line 1: 'step' occurs twice");
  expect_malformed(std::string("{\"step\":1}\0{}\n", 14), ": line 1: NUL at byte 11");
  const std::string damaged = std::string("{\"step\":1}\0{}\n", 14) + "{\"step\":2}\n";
  store(jsonl(), damaged);
  EXPECT_NE(refused(Fault::data, [&] { run::MetricsWriter(directory_, {}, 5, false); }).find("line 1: NUL"), std::string::npos);
  EXPECT_EQ(content(jsonl()), damaged);  // still there to look at
}

TEST_F(Metrics, LastStep) {
  const auto file = directory_ / "metrics.jsonl";
  EXPECT_EQ(last_step(file), 0);
  store(file, "");
  EXPECT_EQ(last_step(file), 0);
  store(file, "{\"step\":3");  // being written
  EXPECT_EQ(last_step(file), 0);
  store(file, "{\"step\":3}\n{\"step\":4");
  EXPECT_EQ(last_step(file), 3);
  std::string rows;
  for (int step = 1; step <= 20000; ++step) rows += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, 1.0 / step);
  store(file, rows);
  EXPECT_EQ(last_step(file), 20000);
  std::string wide = "{\"step\":20001";  // a row longer than what is read at first
  for (int column = 0; column < 10000; ++column) wide += fmt::format(",\"column {}\":{}", column, column);
  store(file, rows + wide + "}\n");
  EXPECT_EQ(last_step(file), 20001);
  store(file, wide + "}\n");
  EXPECT_EQ(last_step(file), 20001);
  store(file, "{\"step\":1}\nnonsense\n");
  EXPECT_NE(refused(Fault::data, [&] { last_step(file); }).find("metrics.jsonl: last line: not JSON"), std::string::npos);
}

// Vectors of RFC 3720, B.4, and the usual check value.
TEST(TensorBoard, Crc32c) {
  EXPECT_EQ(run::crc32c(""), 0u);
  EXPECT_EQ(run::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(run::crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(run::crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

}  // namespace metrics_test
}  // namespace cautious::run
