// Documents packed into one sequence against each of them by itself, through the whole model.
#include <string>
#include <vector>

#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "tiny_models.h"

namespace cautious {
namespace packed_test {

using Words = std::vector<std::int64_t>;

struct Documents {
  std::vector<Words> texts;

  Words tokens() const {
    Words all;
    for (const Words& text : texts) all.insert(all.end(), text.begin(), text.end());
    return all;
  }
  Words starts() const {
    Words all;
    for (const Words& text : texts) all.insert(all.end(), text.size(), std::int64_t(all.size()));
    return all;
  }
};

// What follows each token of a text; nothing follows the last.
Words target_of(const Words& text) {
  Words target(text.begin() + 1, text.end());
  target.push_back(-1);
  return target;
}

TEST(Packed, LossAndGradientsAreThoseOfEachDocument) {
  for (const auto& [name, config] : tiny::models()) {
    for (const bool recompute : {false, true}) {
      const Words words = tiny::words(16, config.vocab);
      const Documents first{{{words.begin(), words.begin() + 6}, {words[6]}, {words.begin() + 7, words.end()}}};
      const Documents second{{{words.begin() + 3, words.end()}, {5, 9, 5}}};
      std::vector<at::Tensor> tokens, target, starts;
      model::Transformer packed(config, 3, {.recompute = recompute}, at::kDouble), apart(config, 3, {}, at::kDouble);
      tiny::shake(packed);
      tiny::shake(apart);
      double sum = 0;
      for (const Documents& documents : {first, second}) {
        Words targets;
        for (const Words& text : documents.texts) {
          const Words wanted = target_of(text);
          targets.insert(targets.end(), wanted.begin(), wanted.end());
          if (text.size() == 1) continue;
          const at::Tensor loss = apart.loss(tiny::row(text), tiny::row(wanted)) * double(text.size() - 1);
          sum += loss.item<double>();
          loss.backward();
        }
        tokens.push_back(tiny::row(documents.tokens())[0]);
        target.push_back(tiny::row(targets)[0]);
        starts.push_back(tiny::row(documents.starts())[0]);
      }
      constexpr double count = 5 + 8 + 12 + 2;
      const at::Tensor loss = packed.loss(at::stack(tokens), at::stack(target), at::stack(starts));
      EXPECT_NEAR(loss.item<double>(), sum / count, 1e-12) << name;
      (loss * count).backward();
      for (const auto& parameter : packed.named_parameters()) {
        const at::Tensor expected = apart.named_parameters()[parameter.key()].grad();
        const double largest = std::max(1.0, expected.abs().max().item<double>());
        EXPECT_LE((parameter.value().grad() - expected).abs().max().item<double>(), 1e-12 * largest)
            << name << " " << parameter.key();
      }
    }
  }
}

}  // namespace packed_test
}  // namespace cautious
