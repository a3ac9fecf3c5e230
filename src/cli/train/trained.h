// What `sample` and `eval` begin with: the model and the tokenizer of a run.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "data/tokenizer/tokenizer.h"
#include "base/text.h"
#include "run/checkpoint.h"
#include "model/weights.h"

namespace cautious::cli {

struct Trained {
  std::filesystem::path checkpoint;
  data::Tokenizer tokenizer;
  std::shared_ptr<model::Transformer> model;
};

// Of --threads, 0 being the cores; for all that follows. Returns their number.
inline int use_threads(int wanted) {
  base::check_range("--threads", wanted, {0, 1024, false, false});
  const int threads = wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  at::set_num_threads(threads);
  return threads;
}

inline Trained load_trained(const std::string& run) {
  const std::filesystem::path checkpoint = run::find_checkpoint(run), words = checkpoint / "tokenizer.json";
  Trained trained{checkpoint, data::Tokenizer::read(words), model::load_model(checkpoint)};
  const std::int64_t vocab = trained.model->config().vocab;
  if (trained.tokenizer.vocab() > vocab) {
    throw Error(Fault::data, fmt::format("{} has a vocabulary of {}, but the model beside it one of {}: it is not the "
                                         "tokenizer that the model was trained with",
                                         words.string(), trained.tokenizer.vocab(), vocab));
  }
  return trained;
}

}  // namespace cautious::cli
