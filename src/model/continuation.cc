#include "model/continuation.h"

#include <optional>

namespace cautious::model {

std::vector<data::Token> prompt_tokens(const std::string& prompt, const data::Tokenizer& tokenizer) {
  std::vector<data::Token> tokens = tokenizer.encode(prompt);
  const std::optional<data::Token> first = tokenizer.beginning();
  if (first || tokens.empty()) tokens.insert(tokens.begin(), first.value_or(tokenizer.document_end()));
  return tokens;
}

void continue_text(const Transformer& model, const data::Tokenizer& tokenizer, const std::vector<data::Token>& start,
                   const Sampling& sampling, std::int64_t most, const std::function<void(std::string_view piece)>& take) {
  Decoder decoder(model);
  at::Tensor logits = decoder.feed(std::vector<std::int64_t>(start.begin(), start.end()));
  for (std::int64_t number = 0; number < most; ++number) {
    // A model may have more ids than its tokenizer, for round numbers.
    const std::int64_t next = pick(logits.narrow(0, 0, tokenizer.vocab()), sampling, number);
    const auto token = static_cast<data::Token>(next);
    if (token == tokenizer.document_end()) break;
    take(tokenizer.decode({&token, 1}));
    if (number + 1 < most) logits = decoder.feed({&next, 1});
  }
}

}  // namespace cautious::model
