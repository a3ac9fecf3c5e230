// Training a byte-level BPE: the 256 bytes, then the most frequent pair of neighbours within a piece of text, again and again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include <cautious/detail/field.h>
#include "data/documents.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

inline constexpr Range kBpeVocab{257, 1'000'000, false, false};

struct BpeTraining {
  std::int64_t vocab = 4096;  // with the 256 bytes and <|endoftext|>; valid: kBpeVocab
  int threads = 1;
  DocumentReading reading{};
};

// From the documents of files (documents.h). Ties go to the pair of smaller ids, so files and vocab decide every
// bit. `progress` is called with the name of the stage and the fraction done. A corpus with too few different pairs for the
// vocabulary is an Error(Fault::data) that says how many there are.
Tokenizer train_bpe(const std::vector<std::filesystem::path>& files, const BpeTraining& training,
                    const std::function<void(const char* stage, double done)>& progress);

}  // namespace cautious::data
