// The tokenizer, the corpus, and whether the model's vocabulary holds both; the images, and whether its classes do.
#include "run/run_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "data/instructions/conversations.h"
#include "data/permutation.h"
#include "data/sets/catalog.h"
#include "run/checkpoint.h"

namespace cautious::run {
namespace {

// The model's vocabulary must hold every token that can come.
void check_tokenizer(const RunConfig& config, const data::Tokenizer& tokenizer) {
  const std::int64_t vocab = config.model.shape.vocab;
  if (tokenizer.vocab() > vocab && !config.model.from.empty()) {
    throw Error(Fault::usage, fmt::format("data.tokenizer '{}' has {} tokens, but model.from '{}' has {}; give the tokenizer "
                                          "that it was trained with",
                                          config.data.tokenizer, tokenizer.vocab(), config.model.from, vocab));
  }
  if (tokenizer.vocab() > vocab) {
    throw Error(Fault::usage, fmt::format("data.tokenizer '{}' has {} tokens, model.vocab is {}; set --model.vocab={}",
                                          config.data.tokenizer, tokenizer.vocab(), vocab, tokenizer.vocab()));
  }
}

void check_vocabulary(const RunConfig& config, const data::Tokenizer& tokenizer, const data::Corpus& corpus) {
  check_tokenizer(config, tokenizer);
  const std::int64_t vocab = config.model.shape.vocab;
  const std::int64_t largest = std::max(corpus.train.largest(), corpus.validation.largest());
  if (largest >= vocab) {
    throw Error(Fault::data, fmt::format("the data has the token {}, model.vocab is {}; set --model.vocab={} or more", largest,
                                         vocab, largest + 1));
  }
}

std::filesystem::path tokenizer_path(const RunConfig& config) {
  return data::tokenizer_place(config.data.tokenizer, "data.tokenizer", data::cache_named(config.data.cache));
}

data::Tokenizer tokenizer_of(const RunConfig& config) { return data::Tokenizer::named(tokenizer_path(config).string()); }

std::vector<data::Lesson> lessons_in(const std::vector<std::string>& names, const char* key, const data::Speech& speech,
                                     const std::filesystem::path& cache) {
  std::vector<data::Lesson> lessons;
  for (const std::string& name : names) {
    for (const std::filesystem::path& file : data::files_named(name, data::Content::instructions, key, cache)) {
      for (const data::Conversation& each : data::read_conversations(file)) lessons.push_back(speech.lesson(each));
    }
  }
  return lessons;
}

// Always the same ones, whatever the seed: runs are compared on them.
std::vector<data::Lesson> taken_for_validation(std::vector<data::Lesson>& lessons, double fraction) {
  constexpr std::uint64_t kKey = 0x76616c6964617465;
  const auto count = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(lessons.size())));
  std::vector<data::Lesson> taken, left;
  for (std::uint64_t i = 0; i < lessons.size(); ++i) {
    (data::permuted(i, lessons.size(), kKey) < count ? taken : left).push_back(std::move(lessons[i]));
  }
  lessons = std::move(left);
  return taken;
}

data::CorpusSpec corpus_spec(const RunConfig& config) {
  const RunConfig::Data& data = config.data;
  return {.path = data.path,
          .weights = data.weights,
          .val_path = data.val_path,
          .val_fraction = data.val_fraction,
          .train_tokens = data.train_tokens,
          .field = data.field,
          .cache = data::cache_named(config.data.cache),
          .threads = config.train.threads};
}

}  // namespace

std::optional<std::int64_t> vocabulary_of(const RunConfig& config) {
  static std::map<std::filesystem::path, std::pair<std::filesystem::file_time_type, std::int64_t>> known;  // plans ask often
  std::filesystem::path path;
  try {
    path = tokenizer_path(config);
  } catch (const Error&) {  // not fetched
    return std::nullopt;
  }
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return std::nullopt;
  auto [entry, is_new] = known.try_emplace(std::filesystem::absolute(path), time, 0);
  if (is_new || entry->second.first != time) entry->second = {time, data::Tokenizer::read(path).vocab()};
  return entry->second.second;
}

RunData open_data(const RunConfig& config, const std::function<void(const std::string& what, double part)>& progress) {
  data::Tokenizer tokenizer = tokenizer_of(config);
  data::Corpus corpus = data::open_corpus(corpus_spec(config), tokenizer, progress);
  check_vocabulary(config, tokenizer, corpus);
  return {std::move(tokenizer), std::move(corpus)};
}

LessonData open_lessons(const RunConfig& config) {
  data::Tokenizer tokenizer = tokenizer_of(config);
  check_tokenizer(config, tokenizer);
  const bool bytes = config.data.tokenizer == "bytes";
  const data::Speech speech(tokenizer,
                            bytes ? std::nullopt : data::ChatTemplate::of_folder(tokenizer_beside(tokenizer_path(config))));
  std::vector<data::Lesson> train = lessons_in(config.data.path, "data.path", speech, data::cache_named(config.data.cache)),
                            validation;
  if (config.data.val_path.empty()) {
    validation = taken_for_validation(train, config.data.val_fraction);
    if (train.empty()) {
      throw Error(Fault::data, fmt::format("{}, taken for validation: nothing is left to train on; give more, or data.val_path",
                                           base::counted(validation.size(), "conversation")));
    }
  } else {
    validation = lessons_in(config.data.val_path, "data.val_path", speech, data::cache_named(config.data.cache));
  }
  const std::string split = fmt::format("{} conversations to learn from, {} to validate on", train.size(), validation.size());
  const std::int64_t length = sequence_length(config);
  LessonData data{std::move(tokenizer),
                  data::LessonRows(train, length, config.train.seed),
                  data::LessonRows(validation, length, 0),
                  split,
                  {}};
  for (const auto& [rows, what] : {std::pair(&data.train, "learn from"), std::pair(&data.validation, "validate on")}) {
    if (rows->count() > 0) continue;
    const std::int64_t context = config.model.shape.context;
    const std::string raise = length < context ? fmt::format("raise it to at most {}, or ", context) : "";
    throw Error(Fault::data,
                fmt::format("none of the conversations to {} has an answer within {} tokens, train.seq_len; {}give "
                            "others with shorter questions",
                            what, length, raise));
  }
  if (data.train.cut() > 0) {
    data.notices.push_back(
        fmt::format("{} conversations are longer than train.seq_len {}: their ends are lost", data.train.cut(), length));
  }
  return data;
}

std::filesystem::path benchmark_files(const RunConfig& config) {
  return data::path_or_place(config.eval.data, data::Content::benchmarks, "eval.data", data::cache_named(config.data.cache));
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
