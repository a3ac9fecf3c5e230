#include "data/tokenizer/bpe_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include <cautious/error.h>
#include "data/documents.h"
#include "data/tokenizer/bpe_pairs.h"
#include "data/tokenizer/piece_counts.h"
#include "data/tokenizer/split_pattern.h"
#include "data/tokenizer/tokenizer_builder.h"
#include "base/text.h"

namespace cautious::data {
namespace {

constexpr Token kBytes = 256;

using Progress = std::function<void(const char* stage, double part)>;

PieceCounts count_pieces(const std::vector<std::filesystem::path>& files, int threads, const Progress& progress) {
  double all = 0, done = 0;
  for (const auto& file : files) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(file, ignored);
    if (!ignored) all += static_cast<double>(size);
  }
  PieceCounter counter(kGpt2Pattern, threads);
  for (const auto& file : files) {
    each_document(file, [&](std::string_view text) {
      counter.add(text);
      done += static_cast<double>(text.size());
      progress("counting", all > 0 ? std::min(done / all, 1.0) : 1.0);  // text may be longer than its compressed file
    });
  }
  return counter.take();
}

void require(const std::optional<std::string>& wrong) {
  if (wrong) throw Error(Fault::failure, "training the tokenizer failed: " + *wrong);
}

}  // namespace

Tokenizer train_bpe(const std::vector<std::filesystem::path>& files, const BpeTraining& training, const Progress& progress) {
  base::check_range("vocab", static_cast<double>(training.vocab), kBpeVocab);
  Pairs pairs(count_pieces(files, training.threads, progress));
  TokenizerBuilder builder{std::string(kGpt2Pattern)};
  std::vector<std::string> tokens;
  const auto add = [&](std::string bytes) {
    require(builder.add_token(static_cast<std::int64_t>(tokens.size()), bytes));
    tokens.push_back(std::move(bytes));
  };
  for (Token byte = 0; byte < kBytes; ++byte) add(std::string(1, static_cast<char>(byte)));
  require(builder.find_bytes());

  const std::int64_t merges = training.vocab - kBytes - 1;
  for (std::int64_t i = 0; i < merges; ++i) {
    const auto pair = pairs.most_frequent();
    if (!pair) {
      throw Error(Fault::data,
                  fmt::format("the text has pairs for {} merges, too few for a vocab of {}; the largest possible is {}", i,
                              training.vocab, i + kBytes + 1));
    }
    const auto made = static_cast<Token>(tokens.size());
    add(tokens[pair->first] + tokens[pair->second]);
    require(builder.add_merge(tokens[pair->first], tokens[pair->second]));
    pairs.merge(*pair, made);
    progress("merging", static_cast<double>(i + 1) / static_cast<double>(merges));
  }
  require(builder.add_special(training.vocab - 1, std::string(kDocumentEnd)));
  return builder.build();
}

}  // namespace cautious::data
