// A text that a model continues.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "model/decoder.h"

namespace cautious::model {

// What the model reads before it continues a text: never nothing.
std::vector<data::Token> prompt_tokens(const std::string& prompt, const data::Tokenizer& tokenizer);

// Makes at most so many tokens, until the document ends; `take` has the bytes of each as it comes, and may throw to give up.
void continue_text(const Transformer& model, const data::Tokenizer& tokenizer, const std::vector<data::Token>& start,
                   const Sampling& sampling, std::int64_t most, const std::function<void(std::string_view piece)>& take);

}  // namespace cautious::model
