// A tokenizer as the metadata of a GGUF file (tokenizer.ggml.*), so that llama.cpp cuts texts into the same tokens.
#pragma once

#include <cstdint>

#include "base/gguf.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

// For a model with `vocab` rows: ids that the tokenizer does not have become unused tokens. A tokenizer with more of them, or
// with a split pattern that llama.cpp does not have, is an Error(Fault::data).
base::GgufMetadata to_gguf(const Tokenizer& tokenizer, std::int64_t vocab);

}  // namespace cautious::data
