// Save, load, continue: bitwise the same as never having stopped, for every rule, decay, element type and rounding.
#include <cautious/cautious.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/safetensors.h"
#include "fixture.h"

namespace state_test {

using cautious::Options;
using fixture::Bf16;
using fixture::make;

constexpr std::int64_t kCounts[] = {400, 0, 77};
const std::vector<std::vector<std::int64_t>> kShapes{{20, 20}, {0, 3}, {77}};

class Folder {
 public:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / ("cautious_state_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

template <class T>
struct Training {
  std::vector<std::vector<T>> x, g;
  cautious::Optimizer optimizer;

  Training(const cautious::Recipe& recipe, const Options& options) : g(3), optimizer(recipe, options) {
    for (std::size_t k = 0; k < 3; ++k) x.push_back(fixture::weights<T>(static_cast<std::size_t>(kCounts[k]), k));
    add();
  }
  // Continues from another one's parameters, which are the caller's to keep, and a file of its state.
  Training(const cautious::Recipe& recipe, const Options& options, const Training& from, const std::filesystem::path& file)
      : x(from.x), g(3), optimizer(recipe, options) {
    add();
    optimizer.load(file);
  }
  void add() {
    for (std::size_t k = 0; k < 3; ++k) optimizer.add<T>("layer." + std::to_string(k), kShapes[k], x[k].data(), nullptr);
  }
  // Steps first ... last - 1; the third tensor misses every other gradient.
  std::vector<cautious::StepReport> train(std::size_t first, std::size_t last) {
    std::vector<cautious::StepReport> reports;
    for (std::size_t t = first; t < last; ++t) {
      for (std::size_t k = 0; k < 3; ++k) {
        g[k] = fixture::weights<T>(x[k].size(), 10 * t + k);
        optimizer.bind(k, x[k].data(), k == 2 && t % 2 == 1 ? nullptr : g[k].data());
      }
      reports.push_back(optimizer.step(fixture::rates(t)));
    }
    return reports;
  }
};

template <class T>
void expect_same_training(const Training<T>& a, const Training<T>& b) {
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(fixture::bytes(a.x[k]), fixture::bytes(b.x[k])) << "parameters of tensor " << k;
    EXPECT_EQ(fixture::state_bytes(a.optimizer, k, a.x[k].size()), fixture::state_bytes(b.optimizer, k, b.x[k].size())) << k;
    EXPECT_EQ(a.optimizer.steps_of(k), b.optimizer.steps_of(k));
  }
}

template <class T>
void check_continues(const cautious::Recipe& recipe, const Options& options) {
  const Folder folder;
  Training<T> whole(recipe, options), first(recipe, options);
  const auto reports = whole.train(0, 7);
  first.train(0, 4);
  first.optimizer.save(folder / "state.safetensors");
  Training<T> second(recipe, options, first, folder / "state.safetensors");
  expect_same_training(first, second);
  const auto rest = second.train(4, 7);
  expect_same_training(whole, second);
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(rest[t].step, reports[4 + t].step);
    EXPECT_TRUE(fixture::same(rest[t].total, reports[4 + t].total)) << "report of step " << 4 + t;
  }
}

class Continues : public testing::TestWithParam<std::tuple<fixture::RuleName, std::string>> {};

TEST_P(Continues, AsIfNeverStopped) {
  const auto& [rule, decay] = GetParam();
  const cautious::Recipe recipe = make(rule, decay);
  Options options;
  options.seed = 0xffffffffffffffffull, options.threads = 1;
  check_continues<float>(recipe, options);
  check_continues<double>(recipe, options);
  check_continues<Bf16>(recipe, options);
  for (const auto rounding : {cautious::Rounding::stochastic, cautious::Rounding::split}) {
    options.rounding = rounding;
    options.moments = cautious::Element::bf16;
    options.grad_clip = 0.7, options.update_rms_clip = 0.3;
    check_continues<Bf16>(recipe, options);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryRecipe, Continues,
                         testing::Combine(testing::ValuesIn(fixture::every_rule()), testing::ValuesIn(fixture::every_decay())),
                         [](const auto& at) {
                           std::string name = std::get<0>(at.param).text() + "_" + std::get<1>(at.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(State, AnchorOfTheStartSurvives) {
  const Folder folder;
  const auto recipe = make({"adam", ""}, "anchored");
  Training<float> first(recipe, {});
  const auto start = first.x[0];
  first.train(0, 3);
  first.optimizer.save(folder / "s");
  Training<float> second(recipe, {}, first, folder / "s");
  for (const auto& [name, data] : fixture::state_bytes(second.optimizer, 0, 400)) {
    if (name == "x0 F32") {
      EXPECT_EQ(data, fixture::bytes(start));
    }
  }
}

TEST(State, MaskByMomentumContinues) {
  for (const fixture::RuleName& rule : fixture::shaping_rules()) {
    if (rule.rule == "muon" || rule.k == "nuclear") continue;  // takes no vectors
    SCOPED_TRACE(rule.text());
    check_continues<float>(fixture::by_momentum(rule), {});
  }
}

// A file from before a field existed says nothing of it: it has the default then, and nothing else.
TEST(State, AFieldThatIsMissingInTheFileHasItsDefault) {
  const Folder folder;
  const auto recipe = make({"lion-k", "huber"}, "cautious");
  Training<float> first(recipe, {});
  first.train(0, 2);
  first.optimizer.save(folder / "new");
  const auto saved = cautious::base::Safetensors::read(folder / "new");
  std::vector<cautious::base::TensorToWrite> tensors;
  for (const auto& one : saved.tensors()) tensors.push_back({one.name, one.type, one.shape, saved.data(one)});
  cautious::base::Metadata metadata = saved.metadata();
  const std::string field = " mask=direction";
  for (auto& [key, text] : metadata) {
    if (const std::size_t at = text.find(field); at != std::string::npos) text.erase(at, field.size());
  }
  EXPECT_NE(metadata, saved.metadata());
  cautious::base::write_safetensors(folder / "old", tensors, metadata);
  Training<float> second(recipe, {}, first, folder / "old");
  expect_same_training(first, second);
  fixture::expect_error(
      [&] {
        Training<float>(fixture::by_momentum({"lion-k", "huber"}), {}, first, folder / "old");
      },
      {"recipe of 'layer.0'", "mask=direction", "mask=momentum"});
}

// A density set between steps is part of what the next step does.
TEST(State, DensitySetByHandSurvives) {
  const Folder folder;
  const auto recipe = make({"adam", ""}, "random");
  Training<float> whole(recipe, {});
  whole.optimizer.set_density(0, 0.05);
  whole.train(0, 2);
  whole.optimizer.save(folder / "s");
  Training<float> second(recipe, {}, whole, folder / "s");
  whole.train(2, 4);
  second.train(2, 4);
  expect_same_training(whole, second);
}

TEST(State, SavingDoesNotChangeTheRunAndIsRepeatable) {
  const Folder folder;
  const auto recipe = make({"adam", ""}, "selective");
  Training<float> plain(recipe, {}), saving(recipe, {});
  plain.train(0, 4);
  saving.optimizer.save(folder / "a");
  saving.train(0, 4);
  saving.optimizer.save(folder / "b");
  saving.optimizer.save(folder / "b");
  expect_same_training(plain, saving);
  plain.optimizer.save(folder / "c");
  const auto content = [](const std::filesystem::path& path) {
    std::vector<unsigned char> data(std::filesystem::file_size(path));
    std::FILE* file = std::fopen(path.c_str(), "rb");
    EXPECT_EQ(std::fread(data.data(), 1, data.size(), file), data.size());
    std::fclose(file);
    return data;
  };
  EXPECT_EQ(content(folder / "b"), content(folder / "c")) << "the same state is the same bytes";
}

// A file saved before the first step continues too.
TEST(State, FreshStateContinues) {
  const Folder folder;
  const auto recipe = make({"lion", ""}, "anchored");
  Training<double> first(recipe, {});
  first.optimizer.save(folder / "s");
  Training<double> second(recipe, {}, first, folder / "s");
  first.train(0, 3);
  second.train(0, 3);
  expect_same_training(first, second);
}

}  // namespace state_test
