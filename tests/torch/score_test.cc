// Scores against a forward pass over each whole text, one at a time: every model, shared and unshared beginnings, texts that
// are too long; and independence of the other items.
#include "model/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "base/hash.h"
#include "tiny_models.h"

namespace cautious {
namespace score_test {

using data::ChoiceTokens;
using Words = std::vector<std::int64_t>;
using model::ScoreItem;
using Sums = std::vector<std::vector<double>>;

constexpr std::int64_t kVocab = 50;

Words random_words(std::size_t count, std::uint64_t seed) {
  Words words;
  for (std::size_t i = 0; i < count; ++i) words.push_back(std::int64_t(base::mix64(seed * 1000 + i) % kVocab));
  return words;
}

Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ScoreItem item(const Words& context, const std::vector<Words>& choices) {
  ScoreItem result;
  for (const Words& choice : choices) result.push_back({joined(context, choice), std::int64_t(choice.size())});
  return result;
}

// Contexts and endings of all lengths, one ending a beginning of another.
std::vector<ScoreItem> endings() {
  std::vector<ScoreItem> items;
  for (std::uint64_t i = 0; i < 7; ++i) {
    const Words longest = random_words(4 + i, 10 * i + 3);
    items.push_back(item(random_words(1 + 5 * i, 10 * i), {random_words(1 + i, 10 * i + 1), random_words(3, 10 * i + 2),
                                                           longest, Words(longest.begin(), longest.end() - 2)}));
  }
  return items;
}

// Examples that all items of a subject share, questions, and one token per choice.
std::vector<ScoreItem> subjects() {
  std::vector<ScoreItem> items;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Words examples = random_words(30 + 10 * (i % 2), 7 + i % 2);
    items.push_back(item(joined(examples, random_words(2 + i % 5, 100 + i)), {{1}, {2}, {3}, {4}}));
  }
  return items;
}

// The contexts differ and the end is the same; some texts are longer than the model's context.
std::vector<ScoreItem> pronouns(std::size_t context) {
  std::vector<ScoreItem> items;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const Words start = random_words(3 + i, 200 + i), end = random_words(4, 300 + i);
    items.push_back({{joined(joined(start, {5, 6}), end), 4}, {joined(joined(start, {7}), end), 4}});
  }
  items.push_back(item(random_words(context + 9, 400), {random_words(3, 401), random_words(5, 402)}));
  items.push_back(item(random_words(context - 2, 403), {random_words(3, 404), random_words(2, 405)}));
  items.push_back(item(random_words(2, 406), {random_words(context + 5, 407), random_words(2, 408)}));
  return items;
}

double naive_sum(model::Transformer& model, const ChoiceTokens& choice) {
  Words tokens = choice.tokens;
  const auto most = std::size_t(model.config().context) + 1;
  if (tokens.size() > most) tokens.erase(tokens.begin(), tokens.end() - std::ptrdiff_t(most));
  const at::NoGradGuard guard;
  const at::Tensor logits = model.logits(tiny::row(Words(tokens.begin(), tokens.end() - 1)))[0].to(at::kDouble);
  const at::Tensor all = at::log_softmax(logits, -1);
  double sum = 0;
  for (std::int64_t i = std::max<std::int64_t>(1, std::ssize(tokens) - choice.scored); i < std::ssize(tokens); ++i) {
    sum += all[i - 1][tokens[i]].item<double>();
  }
  return sum;
}

Sums naive(model::Transformer& model, const std::vector<ScoreItem>& items) {
  Sums sums;
  for (const ScoreItem& one : items) {
    sums.emplace_back();
    for (const ChoiceTokens& choice : one) sums.back().push_back(naive_sum(model, choice));
  }
  return sums;
}

Sums scored(const model::Transformer& model, const std::vector<ScoreItem>& items) {
  Sums sums(items.size());
  model::score(model, items, [&](std::size_t number, const std::vector<double>& own) {
    EXPECT_TRUE(sums.at(number).empty()) << number << " twice";
    sums[number] = own;
  });
  return sums;
}

void expect_near(const Sums& got, const Sums& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size()) << i;
    for (std::size_t j = 0; j < got[i].size(); ++j) {
      EXPECT_NEAR(got[i][j], expected[i][j], tolerance * std::abs(expected[i][j])) << "item " << i << ", choice " << j;
    }
  }
}

std::vector<ScoreItem> all_items(std::size_t context) {
  std::vector<ScoreItem> items = endings();
  for (auto&& more : {subjects(), pronouns(context)}) items.insert(items.end(), more.begin(), more.end());
  return items;
}

TEST(Score, IsThatOfAWholeForwardPass) {
  for (auto [name, config] : tiny::models()) {
    SCOPED_TRACE(name);
    config.context = 64;
    const std::vector<ScoreItem> items = all_items(64);
    model::Transformer wide(config, 3, {}, at::kDouble), narrow(config, 3);
    tiny::shake(wide);
    tiny::shake(narrow);
    expect_near(scored(wide, items), naive(wide, items), 1e-11);
    expect_near(scored(narrow, items), naive(narrow, items), 1e-5);
  }
}

TEST(Score, LongTextsGoInPieces) {
  model::ModelConfig config = tiny::models().at("all");
  config.context = 1500;
  const Words examples = random_words(700, 1);
  std::vector<ScoreItem> items{item(random_words(1200, 2), {random_words(20, 3), random_words(300, 4)})};
  for (std::uint64_t i = 0; i < 4; ++i) {
    items.push_back(item(joined(examples, random_words(10, 20 + i)), {random_words(3, 30 + i), random_words(600, 40 + i)}));
  }
  model::Transformer model(config, 3, {}, at::kDouble);
  tiny::shake(model);
  expect_near(scored(model, items), naive(model, items), 1e-11);
}

TEST(Score, OtherItemsAndTheirOrderDoNotMatter) {
  model::ModelConfig config = tiny::models().at("gemma");
  config.context = 64;
  model::Transformer model(config, 3);
  tiny::shake(model);
  const std::vector<ScoreItem> items = all_items(64);
  const Sums together = scored(model, items);
  std::vector<ScoreItem> backwards(items.rbegin(), items.rend());
  Sums turned = scored(model, backwards);
  std::reverse(turned.begin(), turned.end());
  expect_near(turned, together, 1e-5);
  Sums alone;
  for (const ScoreItem& one : items) alone.push_back(scored(model, {one})[0]);
  expect_near(alone, together, 1e-5);
  EXPECT_EQ(scored(model, items), together);
}

TEST(Score, SaysWhatIsCut) {
  const model::Transformer model(tiny::models().at("llama"), 3);  // context 16
  EXPECT_FALSE(is_cut(model, item(random_words(14, 1), {random_words(3, 2), random_words(1, 3)})));
  EXPECT_TRUE(is_cut(model, item(random_words(14, 1), {random_words(1, 2), random_words(4, 3)})));
}

TEST(Score, RefusesWhatHasNoScore) {
  model::Transformer model(tiny::models().at("llama"), 3);
  const auto fault = [&](const std::vector<ScoreItem>& items) {
    try {
      model::score(model, items, [](std::size_t, const std::vector<double>&) {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({{{{1, 2}, 0}}}), "a choice of 2 tokens has 0 to score; valid: at least 1, and 1 before them");
  EXPECT_EQ(fault({{{{1, 2}, 2}}}), "a choice of 2 tokens has 2 to score; valid: at least 1, and 1 before them");
  {
    const at::NoGradGuard guard;
    model.parameters().front().fill_(NAN);
  }
  EXPECT_EQ(fault({{{{1, 2}, 1}}}), "the log-probability of a choice is nan: the model has diverged");
}

TEST(Score, AnExceptionEndsTheWork) {
  const model::Transformer model(tiny::models().at("llama"), 3);
  int calls = 0;
  const auto stop = [&](std::size_t, const std::vector<double>&) {
    ++calls;
    throw 7;
  };
  EXPECT_THROW(model::score(model, endings(), stop), int);
  EXPECT_EQ(calls, 1);
}

}  // namespace score_test
}  // namespace cautious
