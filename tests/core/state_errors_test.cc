// A state file that does not fit is one clear line and changes nothing.
#include <cautious/cautious.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "fixture.h"

namespace state_errors_test {

namespace fs = std::filesystem;
using cautious::Options;
using fixture::make;

struct Layout {
  std::vector<std::string> names{"w", "b"};
  std::vector<std::vector<std::int64_t>> shapes{{6, 10}, {7}};
};

// One run of f32 tensors; the buffers are its own.
class Training {
 public:
  Training(const cautious::Recipe& recipe, const Options& options, const Layout& layout = {}) : optimizer(recipe, options) {
    for (std::size_t k = 0; k < layout.names.size(); ++k) {
      std::size_t n = 1;
      for (const auto side : layout.shapes[k]) n *= static_cast<std::size_t>(side);
      x_.push_back(fixture::weights<float>(n, k));
      g_.push_back(fixture::weights<float>(n, 10 + k));
    }
    for (std::size_t k = 0; k < x_.size(); ++k) optimizer.add(layout.names[k], layout.shapes[k], x_[k].data(), g_[k].data());
  }
  void train(int steps) {
    for (int t = 0; t < steps; ++t) optimizer.step({.lr = 0.01, .lr_max = 0.01});
  }
  std::vector<std::vector<unsigned char>> bits() const {
    std::vector<std::vector<unsigned char>> all;
    for (std::size_t k = 0; k < x_.size(); ++k) {
      all.push_back(fixture::bytes(x_[k]));
      for (const auto& piece : fixture::state_bytes(optimizer, k, x_[k].size())) all.push_back(piece.second);
      all.push_back({static_cast<unsigned char>(optimizer.steps_of(k))});
    }
    return all;
  }
  cautious::Optimizer optimizer;

 private:
  std::vector<std::vector<float>> x_, g_;
};

class StateErrors : public testing::Test {
 protected:
  StateErrors() : folder_(fs::path(testing::TempDir()) / ("cautious_errors_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    Training saved(make({"adam", ""}, "anchored"), {});
    saved.train(5);
    saved.optimizer.save(good());
  }
  ~StateErrors() override { fs::remove_all(folder_); }

  fs::path good() const { return folder_ / "good.safetensors"; }
  std::string content() const {
    std::ostringstream all;
    all << std::ifstream(good(), std::ios::binary).rdbuf();
    return all.str();
  }
  fs::path file(const std::string& text) const {
    std::ofstream(folder_ / "bad.safetensors", std::ios::binary) << text;
    return folder_ / "bad.safetensors";
  }

  // Loading fails with these words; afterwards and two steps later everything is as without the attempt.
  void refuses(const fs::path& path, std::initializer_list<std::string_view> fragments,
               const cautious::Recipe& recipe = make({"adam", ""}, "anchored"), const Options& options = {},
               const Layout& layout = {}) {
    Training untouched(recipe, options, layout), tried(recipe, options, layout);
    untouched.train(2);
    tried.train(2);
    fixture::expect_error([&] { tried.optimizer.load(path); }, fragments);
    EXPECT_EQ(untouched.bits(), tried.bits()) << "a failed load changed something";
    untouched.train(2);
    tried.train(2);
    EXPECT_EQ(untouched.bits(), tried.bits()) << "a failed load changed later steps";
  }

 private:
  fs::path folder_;
};

TEST_F(StateErrors, TheGoodFileLoads) {
  Training fresh(make({"adam", ""}, "anchored"), {});
  fresh.optimizer.load(good());
  EXPECT_EQ(fresh.optimizer.steps_of(1), 5);
}

TEST_F(StateErrors, NoSuchFileOrAFolder) {
  refuses(good().parent_path() / "absent.safetensors", {"absent.safetensors"});
  refuses(good().parent_path(), {good().parent_path().string()});
}

TEST_F(StateErrors, NotSafetensors) {
  for (const std::string text : {"", "short", "this is a text file, longer than eight bytes, and no state of anything"}) {
    refuses(file(text), {"bad.safetensors"});
  }
  refuses(file(std::string(4096, '\0')), {"bad.safetensors"});
  refuses(file(std::string("\x02\0\0\0\0\0\0\0{}", 10)), {"bad.safetensors", "cautious"});
}

TEST_F(StateErrors, TruncatedAnywhere) {
  const std::string all = content();
  for (std::size_t keep = 0; keep < all.size(); keep += keep < 64 ? 1 : 131)
    refuses(file(all.substr(0, keep)), {"bad.safetensors"});
  refuses(file(all.substr(0, all.size() - 1)), {"bad.safetensors"});
  refuses(file(all + "x"), {"bad.safetensors"});
}

TEST_F(StateErrors, DamagedHeader) {
  std::string huge = content();
  std::fill_n(huge.begin(), 8, '\xff');
  refuses(file(huge), {"bad.safetensors"});
  for (const char* word : {"\"dtype\"", "\"shape\"", "\"data_offsets\"", "\"w.m\"", "\"F32\"", "w.t"}) {
    std::string damaged = content();
    const std::size_t at = damaged.find(word);
    ASSERT_NE(at, std::string::npos) << word;
    damaged[at + 1] = 'Z';
    refuses(file(damaged), {"bad.safetensors"});
  }
}

TEST_F(StateErrors, OtherRecipe) {
  refuses(good(), {"good.safetensors", "lion", "adam"}, make({"lion", ""}, "anchored"));
  refuses(good(), {"sgdm", "adam"}, make({"sgdm", ""}, "anchored"));
  refuses(good(), {"cautious", "anchored"}, make({"adam", ""}, "cautious"));
  refuses(good(), {"0.2", "0.1"}, make({"adam", ""}, "anchored", 0.2));
  cautious::Recipe other = make({"adam", ""}, "anchored");
  cautious::set(other, "beta2", "0.95");
  refuses(good(), {"beta2", "0.95", "0.999"}, other);
  other = make({"adam", ""}, "anchored");
  cautious::set(other, "coupling", "squared");
  refuses(good(), {"squared", "plain"}, other);
}

TEST_F(StateErrors, OtherOptions) {
  const auto with = [&](auto change, std::initializer_list<std::string_view> fragments) {
    Options options;
    change(options);
    refuses(good(), fragments, make({"adam", ""}, "anchored"), options);
  };
  with([](Options& o) { o.moments = cautious::Element::bf16; }, {"bf16", "f32"});
  with([](Options& o) { o.seed = 4321; }, {"seed", "4321"});
  with([](Options& o) { o.rounding = cautious::Rounding::split; }, {"split", "nearest"});
}

TEST_F(StateErrors, OtherTensors) {
  const auto recipe = make({"adam", ""}, "anchored");
  refuses(good(), {"w", "10, 6", "6, 10"}, recipe, {}, {{"w", "b"}, {{10, 6}, {7}}});
  refuses(good(), {"b", "7", "8"}, recipe, {}, {{"w", "b"}, {{6, 10}, {8}}});
  refuses(good(), {"bias"}, recipe, {}, {{"w", "bias"}, {{6, 10}, {7}}});
  refuses(good(), {"good.safetensors"}, recipe, {}, {{"w"}, {{6, 10}}});
  refuses(good(), {"extra"}, recipe, {}, {{"w", "b", "extra"}, {{6, 10}, {7}, {3}}});
}

TEST_F(StateErrors, OtherElementType) {
  std::vector<double> w(60, 1), b(7, 1);
  cautious::Optimizer optimizer(make({"adam", ""}, "anchored"));
  optimizer.add<double>("w", {6, 10}, w.data(), nullptr);
  optimizer.add<double>("b", {7}, b.data(), nullptr);
  fixture::expect_error([&] { optimizer.load(good()); }, {"f32", "f64"});
  EXPECT_EQ(optimizer.steps_of(0), 0);
}

TEST_F(StateErrors, SavingWhereNothingCanBeWritten) {
  Training training(make({"adam", ""}, "cautious"), {});
  fixture::expect_error([&] { training.optimizer.save(good().parent_path() / "no" / "such" / "folder" / "s"); }, {"folder"});
  fixture::expect_error([&] { training.optimizer.save(good() / "below_a_file"); }, {"below_a_file"});
}

}  // namespace state_errors_test
