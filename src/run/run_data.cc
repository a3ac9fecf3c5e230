// The tokenizer, the corpus, and whether the model's vocabulary holds both; the images, and whether its classes do.
#include "run/run_data.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::run {
namespace {

// The model's vocabulary must hold every token that can come.
void check_vocabulary(const RunConfig& config, const data::Tokenizer& tokenizer, const data::Corpus& corpus) {
  const std::int64_t vocab = config.model.shape.vocab;
  if (tokenizer.vocab() > vocab) {
    throw Error(Fault::usage, fmt::format("data.tokenizer '{}' has {} tokens, model.vocab is {}; set --model.vocab={}",
                                          config.data.tokenizer, tokenizer.vocab(), vocab, tokenizer.vocab()));
  }
  const std::int64_t largest = std::max(corpus.train.largest(), corpus.validation.largest());
  if (largest >= vocab) {
    throw Error(Fault::data, fmt::format("the data has the token {}, model.vocab is {}; set --model.vocab={} or more", largest,
                                         vocab, largest + 1));
  }
}

data::CorpusSpec corpus_spec(const RunConfig& config) {
  return {config.data.path,
          config.data.val_path,
          config.data.val_fraction,
          config.data.train_tokens,
          config.data.cache.empty() ? data::default_cache() : std::filesystem::path(config.data.cache),
          config.train.threads};
}

}  // namespace

RunData open_data(const RunConfig& config, const std::function<void(const std::string& what, double part)>& progress) {
  data::Tokenizer tokenizer = data::Tokenizer::named(config.data.tokenizer);
  data::Corpus corpus = data::open_corpus(corpus_spec(config), tokenizer, progress);
  check_vocabulary(config, tokenizer, corpus);
  return {std::move(tokenizer), std::move(corpus)};
}

data::ImageData open_image_data(const RunConfig& config,
                                const std::function<void(const std::string& what, double fraction)>& progress) {
  data::ImageData data = data::open_images(image_spec(config), progress);
  const std::int64_t channels = model::channels(config.model.image), classes = model::classes(config.model.image);
  const auto found = static_cast<std::int64_t>(data.train->classes().size());
  if (found > classes) {
    throw Error(Fault::usage,
                fmt::format("the data has {} classes, model.classes is {}; set --model.classes={}", found, classes, found));
  }
  if (data.train->channels() != channels) {
    throw Error(Fault::usage, fmt::format("the images have {} channels, model.channels is {}; set --model.channels={}",
                                          data.train->channels(), channels, data.train->channels()));
  }
  return data;
}

}  // namespace cautious::run
