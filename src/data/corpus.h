// The data of a run: a training stream and a validation stream, from text files, JSONL, Parquet, token shards, folders of
// these, or the name of a known set (sets/catalog.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/sampler.h"
#include "data/tokenizer/tokenizer.h"

namespace cautious::data {

struct CorpusSpec {
  std::vector<std::string> path;      // files, folders, or one name of a known set
  std::vector<double> weights;        // one per entry of path, of which each is a stream; none: all are one stream
  std::vector<std::string> val_path;  // empty: the validation or test split that folders of path have, or a part of path
  double val_fraction = 0.05;         // of the tokens, the last ones
  std::int64_t train_tokens = 0;      // how many of the rest are trained on, the first ones; 0: all
  std::string field = "text";         // of JSONL and Parquet
  std::filesystem::path cache;        // where tokenized text is kept; made if needed
  int threads = 1;
};

// One stream of a mixture (mixture.h).
struct Share {
  std::string name;
  double weight;
  Stream train;
};

struct Corpus {
  Stream train, validation;
  std::string split;          // in words: "the last 5% of gcide.txt, from document 1 token 37950000 on"
  std::vector<Share> shares;  // of the training stream, if there are weights
};

// Text is tokenized once: the cached file's name is a hash of the tokenizer's fingerprint and the files' paths, sizes and times
// of change; a second run finds it. Token files must carry no or the same tokenizer fingerprint. The split falls between
// documents where there are at least 20 of them, else between tokens; with weights there is one in every stream, and the ends
// of all, one after the other, are the validation stream. `progress` gets words and the part done. A part with fewer than two
// tokens, no files, a name that is neither file nor known set (with suggestion and the command `cautious data get NAME` for a
// known set that has not been fetched): an Error.
Corpus open_corpus(const CorpusSpec& spec, const Tokenizer& tokenizer,
                   const std::function<void(const std::string& what, double part)>& progress);

// Whether every stream of it, each share's too, has room for a sequence of `length` tokens; otherwise an Error that names it.
void check_length(const Corpus& corpus, std::int64_t length);

// One stream of all of `path`, for `cautious eval`: errors speak of its --data and of the model's tokenizer.
Stream open_stream(const CorpusSpec& spec, const Tokenizer& tokenizer,
                   const std::function<void(const std::string& what, double part)>& progress);

// $XDG_CACHE_HOME/cautious or ~/.cache/cautious.
std::filesystem::path default_cache();
// The one that data.cache names; empty: the default.
std::filesystem::path cache_named(const std::string& name);

}  // namespace cautious::data
