// The data that a run's configuration names.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/images/image_set.h"
#include "data/instructions/lessons.h"
#include "run/config.h"

namespace cautious::run {

struct RunData {
  data::Tokenizer tokenizer;
  data::Corpus corpus;
};

// The tokens of data.tokenizer; none where it is not on this machine.
std::optional<std::int64_t> vocabulary_of(const RunConfig& config);

// Opened, and tokenized if it has not been. Whatever is wrong with it is an Error (data/corpus.h, data/tokenizer/tokenizer.h),
// also a vocabulary that model.vocab does not hold.
RunData open_data(const RunConfig& config, const std::function<void(const std::string& what, double part)>& progress);

// The conversations of a run, in rows of tokens, and how they are split.
struct LessonData {
  data::Tokenizer tokenizer;
  data::LessonRows train, validation;
  std::string split;
  std::vector<std::string> notices;  // what the user should know
};
// Whatever is wrong with them is an Error (data/instructions/conversations.h), also a vocabulary that model.vocab does not
// hold.
LessonData open_lessons(const RunConfig& config);

// Where the files of the run's benchmarks are. An unknown name is an Error.
std::filesystem::path benchmark_files(const RunConfig& config);

// The images of a run, opened. Whatever is wrong with them is an Error (data/images/image_set.h), also more classes or other
// channels than the model has.
data::ImageData open_image_data(const RunConfig& config,
                                const std::function<void(const std::string& what, double fraction)>& progress);

}  // namespace cautious::run
