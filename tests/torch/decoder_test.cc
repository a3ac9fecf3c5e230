// The decoder against the Transformer's own logits, its sliding window, and the picking of tokens against probabilities.
#include "model/decoder.h"

#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "tiny_models.h"

namespace cautious {
namespace decoder_test {

using model::pick;

using Words = std::vector<std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

at::Tensor last_logits(model::Transformer& model, const Words& tokens) {
  const at::NoGradGuard guard;
  return model.logits(tiny::row(tokens))[0][std::int64_t(tokens.size()) - 1];
}

Words part(const Words& tokens, std::size_t first, std::size_t count) {
  return {tokens.begin() + std::ptrdiff_t(first), tokens.begin() + std::ptrdiff_t(first + count)};
}

// Feeds in pieces of these sizes, again and again, and compares after each with the whole model.
void expect_logits_of_the_model(const model::ModelConfig& config, at::ScalarType type, const std::vector<std::size_t>& pieces,
                                double tolerance, const std::string& name) {
  model::Transformer model(config, 3, {}, type);
  tiny::shake(model);
  const Words tokens = tiny::words(config.context, config.vocab);
  model::Decoder decoder(model);
  std::size_t done = 0;
  for (std::size_t i = 0; done < tokens.size(); ++i) {
    const std::size_t count = std::min(pieces[i % pieces.size()], tokens.size() - done);
    const at::Tensor logits = decoder.feed(part(tokens, done, count));
    done += count;
    ASSERT_EQ(decoder.position(), std::int64_t(done));
    ASSERT_EQ(logits.sizes(), at::IntArrayRef({config.vocab}));
    ASSERT_LE(distance(logits, last_logits(model, part(tokens, 0, done))), tolerance) << name << " after " << done;
  }
}

TEST(Decoder, LogitsAreThoseOfTheTransformer) {
  for (const auto& [name, config] : tiny::models()) {
    for (const std::vector<std::size_t>& pieces : std::vector<std::vector<std::size_t>>{{1}, {100}, {5, 1, 3}, {2}}) {
      expect_logits_of_the_model(config, at::kDouble, pieces, 1e-12, name);
      expect_logits_of_the_model(config, at::kFloat, pieces, 1e-4, name);
    }
  }
}

// Large enough for several threads; rows and sides that are not multiples of a vector or a block.
TEST(Decoder, SameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (model::ModelConfig config : {tiny::models().at("window"), tiny::models().at("all"), tiny::models().at("gpt2")}) {
    config.vocab = 50001;
    config.width = 37;
    model::Transformer model(config, 3);
    tiny::shake(model);
    std::vector<at::Tensor> first;
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      model::Decoder decoder(model);
      for (std::size_t i = 0; i < 8; ++i) {
        const at::Tensor logits = decoder.feed(Words{std::int64_t(i * i)});
        if (count == 1) first.push_back(logits);
        ASSERT_TRUE(logits.equal(first[i])) << count << " threads, token " << i;
      }
    }
    const double largest = first.back().abs().max().item<double>();
    EXPECT_LE(distance(first.back(), last_logits(model, {0, 1, 4, 9, 16, 25, 36, 49})), 1e-5 * largest);
  }
  at::set_num_threads(threads);
}

TEST(Decoder, LongTextsGoInSlices) {
  model::ModelConfig config = tiny::models().at("all");
  config.context = 700;
  expect_logits_of_the_model(config, at::kDouble, {600, 1, 50}, 1e-12, "long");
}

TEST(Decoder, BeyondTheContextTheOldestHalfIsForgotten) {
  for (const std::int64_t context : {1, 2, 5, 8}) {
    model::ModelConfig config = tiny::models().at("llama");
    config.context = context;
    model::Transformer model(config, 4, {}, at::kDouble);
    tiny::shake(model);
    const Words tokens = tiny::words(30, config.vocab);
    model::Decoder one_by_one(model), in_threes(model);
    Words window;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (std::int64_t(window.size()) == context) window = part(window, window.size() - context / 2, context / 2);
      window.push_back(tokens[i]);
      const at::Tensor expected = last_logits(model, window);
      EXPECT_LE(distance(one_by_one.feed(part(tokens, i, 1)), expected), 1e-12) << context << " " << i;
      EXPECT_EQ(one_by_one.position(), std::int64_t(window.size()));
      if (i % 3 == 2) {
        EXPECT_LE(distance(in_threes.feed(part(tokens, i - 2, 3)), expected), 1e-12) << context << " " << i;
      }
    }
    EXPECT_LE(distance(model::Decoder(model).feed(tokens), last_logits(model, window)), 1e-12) << context;
  }
}

TEST(Decoder, ATextIsContinuedInSeveralWays) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 3, {}, at::kDouble);
    tiny::shake(model);
    model::Decoder decoder(model);
    const Words text = tiny::words(5, config.vocab);
    decoder.feed(text);
    for (const Words& way : {Words{1, 2, 3}, Words{4}, tiny::words(11, config.vocab)}) {
      Words whole = text;
      whole.insert(whole.end(), way.begin(), way.end());
      const at::Tensor hidden = decoder.feed_all(way);
      ASSERT_EQ(hidden.sizes(), at::IntArrayRef({std::int64_t(way.size()), config.width}));
      const at::NoGradGuard guard;
      const at::Tensor expected = model.logits(tiny::row(whole))[0].narrow(0, 5, std::int64_t(way.size()));
      EXPECT_LE(distance(model.logits_of(hidden), expected), 1e-12) << name;
      decoder.rewind(5);
      EXPECT_EQ(decoder.position(), 5);
    }
    decoder.rewind(2);
    EXPECT_LE(distance(decoder.feed(Words{9}), last_logits(model, {text[0], text[1], 9})), 1e-12) << name;
  }
}

TEST(Decoder, SeesWeightsThatChangeAndKeepsNoGraph) {
  model::Transformer model(tiny::models().at("qwen"), 5);
  EXPECT_FALSE(model::Decoder(model).feed(Words{1, 2}).requires_grad());
  tiny::shake(model);
  EXPECT_LE(distance(model::Decoder(model).feed(Words{1, 2}), last_logits(model, {1, 2})), 1e-5);
}

std::string fault_of(const std::function<void()>& call, Fault fault) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault);
    return error.what();
  }
  return "";
}

TEST(Decoder, WrongTokensAreRefusedAndChangeNothing) {
  model::Transformer model(tiny::models().at("llama"), 6, {}, at::kDouble);
  model::Decoder decoder(model);
  decoder.feed(Words{1, 2});
  EXPECT_EQ(fault_of(
                [&] {
                  decoder.feed(Words{3, 50});
                },
                Fault::data),
            "token 50 is not in the model's vocabulary; valid: [0, 49]");
  EXPECT_EQ(fault_of([&] { decoder.feed(Words{-1}); }, Fault::data),
            "token -1 is not in the model's vocabulary; valid: [0, 49]");
  EXPECT_EQ(fault_of([&] { decoder.feed({}); }, Fault::usage), "no tokens to feed; give at least 1");
  EXPECT_EQ(fault_of([&] { decoder.feed_all(Words(15, 1)); }, Fault::usage),
            "15 tokens after 2 others; the model's context is 16");
  EXPECT_EQ(fault_of([&] { decoder.rewind(3); }, Fault::usage), "position 3; valid: [0, 2]");
  EXPECT_EQ(decoder.position(), 2);
  EXPECT_LE(distance(decoder.feed(Words{3}), last_logits(model, {1, 2, 3})), 1e-12);
}

const at::Tensor kLogits = at::tensor({1.0, -kInfinity, 2.0, 0.0, 2.5, -1.0}, at::kDouble);

std::vector<double> frequencies(const model::Sampling& sampling, std::int64_t count) {
  std::vector<double> result(6);
  for (std::int64_t i = 0; i < count; ++i) result.at(pick(kLogits, sampling, i)) += 1.0 / double(count);
  return result;
}

// Of kLogits at a temperature, for these tokens alone.
std::vector<double> probabilities(double temperature, const Words& tokens) {
  std::vector<double> result(6);
  double sum = 0;
  for (const std::int64_t token : tokens) sum += std::exp(kLogits[token].item<double>() / temperature);
  for (const std::int64_t token : tokens) result[token] = std::exp(kLogits[token].item<double>() / temperature) / sum;
  return result;
}

// Chi-square of five degrees of freedom or fewer: 30 has a probability of 1.5e-5, and the draws are always the same.
void expect_drawn_from(const std::vector<double>& expected, const model::Sampling& sampling) {
  constexpr std::int64_t kCount = 20000;
  const std::vector<double> drawn = frequencies(sampling, kCount);
  double chi_square = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(drawn[i], 0) << i;
    } else {
      chi_square += double(kCount) * (drawn[i] - expected[i]) * (drawn[i] - expected[i]) / expected[i];
    }
  }
  EXPECT_LT(chi_square, 30);
}

TEST(Pick, FrequenciesAreTheProbabilities) {
  for (const std::uint64_t seed : {0U, 1U, 99U}) {
    expect_drawn_from(probabilities(1, {0, 2, 3, 4, 5}), {1, 0, 1, seed});
    expect_drawn_from(probabilities(0.5, {0, 2, 3, 4, 5}), {0.5, 0, 1, seed});
    expect_drawn_from(probabilities(10, {0, 2, 3, 4, 5}), {10, 100, 1, seed});
    expect_drawn_from(probabilities(1, {4, 2, 0}), {1, 3, 1, seed});
    expect_drawn_from(probabilities(1, {4}), {1, 1, 1, seed});
    // At temperature 1 token 4 has 0.515, with token 2 it is 0.827, with token 0 too 0.942.
    expect_drawn_from(probabilities(1, {4}), {1, 0, 0.51, seed});
    expect_drawn_from(probabilities(1, {4, 2}), {1, 0, 0.52, seed});
    expect_drawn_from(probabilities(1, {4, 2}), {1, 0, 0.82, seed});
    expect_drawn_from(probabilities(1, {4, 2, 0}), {1, 0, 0.83, seed});
    expect_drawn_from(probabilities(1, {4, 2}), {1, 2, 0.99, seed});
    expect_drawn_from(probabilities(1, {4}), {1, 0, 1e-9, seed});
  }
}

TEST(Pick, IsAFunctionOfSeedAndNumber) {
  std::int64_t same_seed = 0, next_number = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(pick(kLogits, {1, 0, 1, 5}, i), pick(kLogits.to(at::kFloat), {1, 0, 1, 5}, i));
    same_seed += pick(kLogits, {1, 0, 1, 5}, i) == pick(kLogits, {1, 0, 1, 6}, i) ? 1 : 0;
    next_number += pick(kLogits, {1, 0, 1, 5}, i) == pick(kLogits, {1, 0, 1, 5}, i + 1) ? 1 : 0;
  }
  EXPECT_NEAR(double(same_seed), 378, 60);  // the sum of the squared probabilities is 0.378
  EXPECT_NEAR(double(next_number), 378, 60);
}

TEST(Pick, TemperatureZeroAndTies) {
  EXPECT_EQ(pick(kLogits, {0, 0, 1, 1}, 3), 4);
  EXPECT_EQ(pick(kLogits, {1e-300, 0, 1, 1}, 3), 4);
  EXPECT_EQ(pick(at::tensor({1.0, 3.0, 3.0}), {0, 0, 1, 1}, 0), 1);
  for (std::int64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(pick(at::tensor({1.0, 3.0, 3.0}), {1, 1, 1, 1}, i), 1);  // of equal ones the smaller is kept
    EXPECT_EQ(pick(at::tensor({1.0, 3.0, 3.0}), {1, 0, 0.3, 1}, i), 1);
  }
}

TEST(Pick, OneTokenLeft) {
  at::Tensor logits = at::full({7}, -kInfinity);
  logits[5] = -1e30;
  for (const double temperature : {0.0, 1e-3, 1.0, 100.0}) EXPECT_EQ(pick(logits, {temperature, 0, 0.5, 1}, 0), 5);
}

TEST(Pick, NonsenseIsRefused) {
  const auto fault = [](const at::Tensor& logits) { return fault_of([&] { pick(logits, {}, 0); }, Fault::data); };
  EXPECT_EQ(fault(at::tensor({1.0, std::nan("")})), "the logit of token 1 is nan: the model has diverged");
  EXPECT_EQ(fault(at::tensor({kInfinity, 1.0})), "the logit of token 0 is inf: the model has diverged");
  EXPECT_EQ(fault(at::full({3}, -kInfinity)), "none of 3 logits is finite: no token to pick");
  const auto usage = [](const model::Sampling& sampling) {
    return fault_of([&] { pick(kLogits, sampling, 0); }, Fault::usage);
  };
  EXPECT_EQ(usage({-1, 0, 1, 0}), "temperature is -1; valid: [0, inf)");
  EXPECT_EQ(usage({1, -2, 1, 0}), "top_k is -2; valid: [0, inf)");
  EXPECT_EQ(usage({1, 0, 0, 0}), "top_p is 0; valid: (0, 1]");
  EXPECT_EQ(usage({1, 0, 1.5, 0}), "top_p is 1.5; valid: (0, 1]");
}

}  // namespace decoder_test
}  // namespace cautious
