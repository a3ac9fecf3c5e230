// Names to files, files to pieces of token files (text is tokenized once, then found in the cache), pieces to streams.
#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <cautious/detail/field.h>
#include <cautious/error.h>

#include "base/text.h"
#include "data/sets/catalog.h"

namespace cautious::data {
namespace {

using Path = std::filesystem::path;
using Files = std::vector<Path>;
using Progress = std::function<void(const std::string& what, double part)>;

constexpr std::size_t kManyDocuments = 20;
constexpr std::array<std::string_view, 8> kSuffixes = {".txt", ".text", ".jsonl", ".ndjson", ".gz", ".dz", ".tokens", ".bin"};

// By their names: .tokens and .bin hold tokens, everything else is text (documents.h).
bool holds_tokens(const Path& file) { return file.extension() == ".tokens" || file.extension() == ".bin"; }

bool known_suffix(const Path& file) {
  return std::find(kSuffixes.begin(), kSuffixes.end(), file.extension().string()) != kSuffixes.end();
}

Files files_below(const Path& folder) try {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool hidden = entry.path().filename().string().starts_with('.');
    if (!hidden && known_suffix(entry.path()) && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error(Fault::data,
                fmt::format("{}: a folder without files to read; suffixes: {}", folder.string(), base::join(kSuffixes)));
  const auto tokens = std::find_if(files.begin(), files.end(), holds_tokens);
  const auto text = std::find_if_not(files.begin(), files.end(), holds_tokens);
  if (tokens != files.end() && text != files.end())
    throw Error(Fault::data,
                fmt::format("{}: a folder with text ({}) and tokens ({}), perhaps of the same text: name its files",
                            folder.string(), text->filename().string(), tokens->filename().string()));
  return files;
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(Fault::data, fmt::format("{}: cannot read the folder: {}", folder.string(), error.code().message()));
}

Files files_of_name(const std::string& name, const std::string& key, const Path& cache) {
  std::error_code none;
  const auto status = std::filesystem::status(name, none);
  if (std::filesystem::is_directory(status)) return files_below(name);
  if (std::filesystem::exists(status)) return {name};
  return files_below(place_named(name, Content::text, key, cache));
}

// In the order of `names`: a file itself, a folder's files below it with a known suffix, sorted by path, a fetched known set's
// files. `key` is the configuration's, for messages.
Files files_of(const std::vector<std::string>& names, const std::string& key, const Path& cache) {
  if (names.empty())
    throw Error(Fault::usage, fmt::format("{} is empty; it takes files, folders or the name of a set of `cautious data`", key));
  Files files;
  std::set<Path> seen;
  for (const std::string& name : names) {
    for (Path& file : files_of_name(name, key, cache)) {
      std::error_code none;
      if (!seen.insert(std::filesystem::weakly_canonical(file, none)).second)
        throw Error(Fault::usage, fmt::format("{} names {} twice", key, file.string()));
      files.push_back(std::move(file));
    }
  }
  return files;
}

std::string in_words(const Files& files) {
  const std::string first = files.front().filename().string();
  if (files.size() == 1) return first;
  return fmt::format("{} files ({} to {})", files.size(), first, files.back().filename().string());
}

// `name`: what the user knows the tokenizer as.
void check_tokenizer(const Tokens& tokens, const Tokenizer& tokenizer, const char* name) {
  const std::string file = tokens.path().string();
  if (!tokens.tokenizer().empty() && tokens.tokenizer() != tokenizer.fingerprint())
    throw Error(Fault::data, fmt::format("{}: made with another tokenizer ({:.8}...) than {} ({:.8}...)", file,
                                         tokens.tokenizer(), name, tokenizer.fingerprint()));
  if (tokens.largest() >= tokenizer.vocab())
    throw Error(Fault::data, fmt::format("{}: has token {}, but {} has a vocabulary of {}", file, tokens.largest(), name,
                                         tokenizer.vocab()));
}

// One piece per token file and per run of text files.
std::vector<Stream::Piece> pieces_of(const Files& files, const CorpusSpec& spec, const Tokenizer& tokenizer,
                                     const Progress& progress, const char* tokenizer_name = "data.tokenizer") {
  std::vector<Stream::Piece> pieces;
  for (auto next = files.begin(); next != files.end();) {
    std::shared_ptr<const Tokens> tokens;
    if (holds_tokens(*next)) {
      tokens = Tokens::open(*next++);
    } else {
      const auto end = std::find_if(next, files.end(), holds_tokens);
      const Files texts(next, end);
      const auto tell = [&](double part) {
        if (progress) progress("tokenizing " + in_words(texts), part);
      };
      tokens = tokens_of(texts, tokenizer, spec.cache, spec.threads, tell);
      next = end;
    }
    check_tokenizer(*tokens, tokenizer, tokenizer_name);
    const std::int64_t size = tokens->size();
    pieces.push_back({std::move(tokens), 0, size});
  }
  return pieces;
}

std::int64_t size_of(const std::vector<Stream::Piece>& pieces) {
  std::int64_t size = 0;
  for (const auto& piece : pieces) size += piece.last - piece.first;
  return size;
}

Stream checked(Stream stream, const std::string& what) {
  if (stream.size() >= 2) return stream;
  throw Error(Fault::data,
              fmt::format("{} of {} token{}; at least 2 are needed", what, stream.size(), stream.size() == 1 ? "" : "s"));
}

// Where the documents begin, in the places of a stream of whole files.
std::vector<std::int64_t> beginnings(const std::vector<Stream::Piece>& pieces) {
  std::vector<std::int64_t> all;
  std::int64_t start = 0;
  for (const auto& piece : pieces) {
    for (const std::int64_t document : piece.tokens->documents()) all.push_back(start + document);
    start += piece.last;
  }
  return all;
}

// First token of the validation data. Between documents: the beginning nearest to the fraction wanted, but not the first.
std::int64_t cut_of(const std::vector<std::int64_t>& documents, std::int64_t size, double fraction) {
  const std::int64_t wanted = size - std::llround(fraction * static_cast<double>(size));
  if (documents.size() < kManyDocuments) return wanted;
  const auto after = std::lower_bound(documents.begin() + 1, documents.end() - 1, wanted);
  if (after == documents.begin() + 1) return *after;
  return *after - wanted < wanted - *(after - 1) ? *after : *(after - 1);
}

std::string split_in_words(const std::vector<std::int64_t>& documents, std::int64_t cut, std::int64_t size,
                           const Files& files) {
  const auto document = std::upper_bound(documents.begin(), documents.end(), cut) - documents.begin();
  const std::int64_t within = cut - documents[static_cast<std::size_t>(document - 1)];
  const double percent = 100 * static_cast<double>(size - cut) / static_cast<double>(size);
  return fmt::format("the last {:.3g}% of {}, from document {}{} on", percent, in_words(files), document,
                     within == 0 ? "" : fmt::format(" token {}", within));
}

Corpus split(const std::vector<Stream::Piece>& pieces, const Files& files, double fraction) {
  base::check_range("data.val_fraction", fraction, {0, 1, true, true});
  const std::int64_t size = size_of(pieces);
  const auto documents = beginnings(pieces);
  const std::int64_t cut = cut_of(documents, size, fraction);
  std::vector<Stream::Piece> before, after;
  std::int64_t start = 0;
  for (const auto& piece : pieces) {
    const std::int64_t middle = std::clamp<std::int64_t>(cut - start, 0, piece.last);
    before.push_back({piece.tokens, 0, middle});
    after.push_back({piece.tokens, middle, piece.last});
    start += piece.last;
  }
  const auto part = [&](const char* which) {
    return fmt::format("data.val_fraction {} of the {} tokens of {} leaves {} data", fraction, size, in_words(files), which);
  };
  return {checked(Stream(std::move(before)), part("training")), checked(Stream(std::move(after)), part("validation")),
          split_in_words(documents, cut, size, files)};
}

void check_apart(const Files& training, const Files& validation) {
  std::set<std::filesystem::path> seen;
  std::error_code none;
  for (const auto& file : training) seen.insert(std::filesystem::weakly_canonical(file, none));
  for (const auto& file : validation) {
    if (seen.contains(std::filesystem::weakly_canonical(file, none)))
      throw Error(Fault::usage,
                  fmt::format("{} is in data.path and in data.val_path; name the training files without it", file.string()));
  }
}

Corpus open_whole(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  const Files files = files_of(spec.path, "data.path", spec.cache);
  if (spec.val_path.empty()) return split(pieces_of(files, spec, tokenizer, progress), files, spec.val_fraction);
  const Files held_out = files_of(spec.val_path, "data.val_path", spec.cache);
  check_apart(files, held_out);
  return {checked(Stream(pieces_of(files, spec, tokenizer, progress)), "data.path has a stream"),
          checked(Stream(pieces_of(held_out, spec, tokenizer, progress)), "data.val_path has a stream"),
          "all of " + in_words(held_out)};
}

}  // namespace

Corpus open_corpus(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  Corpus corpus = open_whole(spec, tokenizer, progress);
  if (spec.train_tokens == 0) return corpus;
  if (spec.train_tokens < 2 || spec.train_tokens > corpus.train.size()) {
    throw Error(Fault::usage,
                fmt::format("data.train_tokens is {}, but there are {} training tokens; valid: 0 for all, or 2 to {}",
                            spec.train_tokens, corpus.train.size(), corpus.train.size()));
  }
  corpus.train = corpus.train.first(spec.train_tokens);
  return corpus;
}

Stream open_stream(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  const Files files = files_of(spec.path, "--data", spec.cache);
  return checked(Stream(pieces_of(files, spec, tokenizer, progress, "the model's tokenizer")),
                 in_words(files) + " has a stream");
}

std::filesystem::path default_cache() {
  // A relative $XDG_CACHE_HOME counts as unset, says its specification.
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && std::filesystem::path(cache).is_absolute()) return std::filesystem::path(cache) / "cautious";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "cautious";
  throw Error(Fault::failure,
              "no folder for the cache: neither XDG_CACHE_HOME nor HOME is set; set data.cache or one of them to a folder");
}

}  // namespace cautious::data
