// Text that has been tokenized before: cache/tokens/HASH.tokens, where HASH is over the tokenizer's fingerprint and the files'
// paths, sizes and times of change.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokens.h"

namespace cautious::data {

// Tokens of the text files, made if they are not there or damaged. Any number of processes may do this at once. A cache that
// cannot be written is an Error(Fault::failure) that names data.cache.
std::shared_ptr<const Tokens> tokens_of(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                                        const std::filesystem::path& cache, int threads,
                                        const std::function<void(double part)>& progress);

}  // namespace cautious::data
