// Evaluation against the plain definition through Transformer::logits, one token at a time.
#include "model/evaluate.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "tiny_models.h"

namespace cautious {
namespace evaluate_test {

namespace fs = std::filesystem;

// A stream of files of these tokens, each a file of its own.
class Evaluate : public ::testing::Test {
 protected:
  Evaluate() : folder_(fs::temp_directory_path() / fmt::format("cautious_evaluate_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Evaluate() override { fs::remove_all(folder_); }

  data::Stream stream(const std::vector<std::vector<std::int64_t>>& files) {
    std::vector<data::Stream::Piece> pieces;
    for (const std::vector<std::int64_t>& tokens : files) {
      const fs::path path = folder_ / fmt::format("{}.bin", ++files_);
      const std::vector<std::uint16_t> words(tokens.begin(), tokens.end());
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(words.data()), std::streamsize(2 * words.size()));
      pieces.push_back({data::Tokens::open(path), 0, std::int64_t(tokens.size())});
    }
    return data::Stream(pieces);
  }

 private:
  fs::path folder_;
  int files_ = 0;
};

// Sums in the definition's own words, each token from its document alone.
model::Evaluation naive(model::Transformer& model, const model::EvaluationSet& set) {
  model::Evaluation result;
  double bytes = 0;
  for (const std::int64_t first : set.windows) {
    std::vector<std::int64_t> tokens(set.length), target(set.length), starts(set.length);
    set.stream->copy(first, tokens, target, starts);
    const at::NoGradGuard guard;
    for (std::int64_t t = 0; t < set.length; ++t) {
      if (target[t] == -1) continue;
      // The token's own document, up to it.
      const at::Tensor all = model.logits(tiny::row({tokens.begin() + starts[t], tokens.begin() + t + 1})).to(at::kDouble);
      const double* logits = all[0][t - starts[t]].data_ptr<double>();
      double sum = 0;
      bool largest = true;
      for (std::int64_t i = 0; i < model.config().vocab; ++i) {
        sum += std::exp(logits[i]);
        largest &= i == target[t] || logits[i] < logits[target[t]];
      }
      result.loss += std::log(sum) - logits[target[t]];
      result.accuracy += largest ? 1 : 0;
      ++result.targets;
      bytes += set.lengths.empty() ? NAN : set.lengths[target[t]];
    }
  }
  result.bits_per_byte = result.loss / std::log(2.0) / bytes;
  result.loss /= double(result.targets);
  result.accuracy /= double(result.targets);
  return result;
}

void expect_near(const model::Evaluation& got, const model::Evaluation& expected, double tolerance) {
  EXPECT_NEAR(got.loss, expected.loss, tolerance * expected.loss);
  EXPECT_NEAR(got.bits_per_byte, expected.bits_per_byte, tolerance * expected.bits_per_byte);
  EXPECT_EQ(got.accuracy, expected.accuracy);
  EXPECT_EQ(got.targets, expected.targets);
}

std::vector<std::uint16_t> some_lengths(std::int64_t vocab) {
  std::vector<std::uint16_t> lengths;
  for (std::int64_t i = 0; i < vocab; ++i) lengths.push_back(std::uint16_t(i % 7));
  return lengths;
}

TEST_F(Evaluate, IsTheDefinition) {
  const std::vector<std::uint16_t> lengths = some_lengths(50);
  const data::Stream text = stream({tiny::words(70, 50), tiny::words(33, 47), tiny::words(1, 50)});
  const model::EvaluationSet set{&text, {0, 10, 35, 60, 66, 90}, 13, lengths};
  for (const auto& [name, config] : tiny::models()) {
    SCOPED_TRACE(name);
    model::Transformer narrow(config, 3), wide(config, 3, {}, at::kDouble);
    tiny::shake(narrow);
    tiny::shake(wide);
    const model::Evaluation expected = naive(wide, set);
    EXPECT_EQ(expected.targets, 6 * 13 - 3);  // two windows cross into the second file, one into the third
    expect_near(model::evaluate(wide, set, 4), expected, 1e-13);
    expect_near(model::evaluate(narrow, set, 4), naive(narrow, set), 1e-6);
  }
}

TEST_F(Evaluate, ATargetOfSeveralWindowsMayCountOnce) {
  const data::Stream text = stream({tiny::words(40, 50)});
  model::Transformer model(tiny::models().at("llama"), 3, {}, at::kDouble);
  tiny::shake(model);
  const model::EvaluationSet overlapping{.stream = &text, .windows = {0, 5, 10, 27}, .length = 12, .lengths = {}, .once = true};
  double nats = 0;
  for (const auto& [first, from] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {5, 7}, {10, 7}, {27, 0}}) {
    std::vector<std::int64_t> tokens(12), target(12), starts(12);
    text.copy(first, tokens, target, starts);
    const at::NoGradGuard guard;
    const at::Tensor all = model.logits(tiny::row(tokens))[0].log_softmax(-1);
    for (std::int64_t t = from; t < 12; ++t) nats -= all[t][target[t]].item<double>();
  }
  const model::Evaluation got = model::evaluate(model, overlapping, 3);
  EXPECT_EQ(got.targets, 12 + 5 + 5 + 12);
  EXPECT_NEAR(got.loss, nats / 34, 1e-12);
}

TEST_F(Evaluate, BatchAndThreadsDoNotMatter) {
  const data::Stream text = stream({tiny::words(200, 50)});
  const std::vector<std::uint16_t> lengths = some_lengths(50);
  const model::EvaluationSet set{&text, {0, 15, 30, 45, 60, 75, 90}, 16, lengths};
  model::Transformer model(tiny::models().at("gemma"), 3);
  tiny::shake(model);
  const model::Evaluation expected = model::evaluate(model, set, 1);
  for (const std::int64_t batch : {2, 3, 7, 100}) expect_near(model::evaluate(model, set, batch), expected, 1e-7);
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  expect_near(model::evaluate(model, set, 3), expected, 1e-7);
  at::set_num_threads(threads);
  EXPECT_EQ(model::evaluate(model, set, 3).loss, model::evaluate(model, set, 3).loss);
}

TEST_F(Evaluate, ALargeVocabularyGoesInSlices) {
  model::ModelConfig config = tiny::models().at("all");
  config.vocab = 60000;  // 279 rows of logits in 64 MB
  const data::Stream text = stream({tiny::words(400, 60000)});
  const model::EvaluationSet set{&text, {0, 100, 200, 299}, 100, {}};
  model::Transformer model(config, 3);
  tiny::shake(model);
  const model::Evaluation got = model::evaluate(model, set, 4), expected = naive(model, set);
  EXPECT_NEAR(got.loss, expected.loss, 1e-6 * expected.loss);
  EXPECT_EQ(got.accuracy, expected.accuracy);
  EXPECT_TRUE(std::isnan(got.bits_per_byte));
}

TEST_F(Evaluate, OfEqualLogitsTheFirstCounts) {
  model::Transformer model(tiny::models().at("llama"), 3);
  {
    const at::NoGradGuard guard;
    for (at::Tensor& p : model.parameters()) p.zero_();
  }
  const data::Stream text = stream({{1, 0, 2, 0, 3}});
  const model::Evaluation result = model::evaluate(model, {&text, {0}, 4, {}}, 1);
  EXPECT_NEAR(result.loss, std::log(50.0), 1e-12);
  EXPECT_EQ(result.accuracy, 0.5);
}

TEST_F(Evaluate, TellsHowFarItIsAndLeavesNoGradients) {
  const data::Stream text = stream({tiny::words(100, 50)});
  model::Transformer model(tiny::models().at("llama"), 3);
  std::vector<double> parts;
  model::evaluate(model, {&text, {0, 10, 20, 30, 40}, 8, {}}, 2, [&](double part) { parts.push_back(part); });
  EXPECT_EQ(parts, (std::vector<double>{0.4, 0.8, 1.0}));
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST_F(Evaluate, DataOfAnotherVocabularyIsRefused) {
  model::Transformer model(tiny::models().at("llama"), 3);
  const auto fault = [&](const model::EvaluationSet& set, std::int64_t batch) {
    try {
      model::evaluate(model, set, batch);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const data::Stream large = stream({{1, 2, 50, 3}}), small = stream({{1, 2, 49, 3}}), ends = stream({{1}, {2}, {3}});
  const std::vector<std::uint16_t> lengths = some_lengths(49);
  EXPECT_EQ(fault({&large, {0}, 2, {}}, 1),
            "the data has the token 50, but the model's vocabulary is 50: it was made with another tokenizer");
  EXPECT_EQ(fault({&small, {0}, 2, lengths}, 1), "the data has the token 49, but the tokenizer's vocabulary is 49");
  EXPECT_EQ(fault({&small, {}, 2, {}}, 1), "there is no window to evaluate");
  EXPECT_EQ(fault({&small, {0}, 2, {}}, 0), "batch is 0; valid: at least 1");
  EXPECT_EQ(fault({&ends, {0}, 2, {}}, 1), "no window has a target: every token begins a document");
}

}  // namespace evaluate_test
}  // namespace cautious
