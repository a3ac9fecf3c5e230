// Names to files, files to pieces of token files (text is tokenized once, then found in the cache), pieces to streams.
#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <cautious/detail/field.h>
#include <cautious/error.h>

#include "base/text.h"
#include "data/documents.h"
#include "data/layout.h"
#include "data/sets/catalog.h"

namespace cautious::data {
namespace {

using Path = std::filesystem::path;
using Progress = std::function<void(const std::string& what, double part)>;

constexpr std::size_t kManyDocuments = 20;

// A file itself, a folder's files or those of a fetched known set, of which only a folder's count by their splits, if wanted.
Layout layout_of_name(const std::string& name, const std::string& key, const Path& cache, bool by_split) {
  if (name == kStandardInput || name == "/dev/stdin")
    throw Error(Fault::usage, fmt::format("{} is {}, but standard input cannot be read again, as when a run continues; make a "
                                          "file of it: cautious tokenize - --format text --tokenizer bytes --out data.tokens",
                                          key, name));
  std::error_code none;
  const auto status = std::filesystem::status(name, none);
  if (std::filesystem::is_directory(status)) return by_split ? layout_of(name) : Layout{files_below(name)};
  if (std::filesystem::exists(status)) return {{name}};
  return {files_below(place_named(name, Content::text, key, cache))};
}

Files joined(const std::vector<Layout>& layouts, Files Layout::*member) {
  Files files;
  for (const Layout& layout : layouts) files.insert(files.end(), (layout.*member).begin(), (layout.*member).end());
  return files;
}

// One for each of `names`. `key` is the configuration's, for messages.
std::vector<Layout> layouts_of(const std::vector<std::string>& names, const std::string& key, const Path& cache,
                               bool by_split) {
  if (names.empty())
    throw Error(Fault::usage, fmt::format("{} is empty; it takes files, folders or the name of a set of `cautious data`", key));
  std::vector<Layout> layouts;
  for (const std::string& name : names) layouts.push_back(layout_of_name(name, key, cache, by_split));
  std::set<Path> seen;
  for (const Path& file : joined(layouts, &Layout::train)) {
    std::error_code none;
    if (!seen.insert(std::filesystem::weakly_canonical(file, none)).second)
      throw Error(Fault::usage, fmt::format("{} names {} twice", key, file.string()));
  }
  return layouts;
}

std::string in_words(const Files& files) {
  const std::string first = files.front().filename().string();
  if (files.size() == 1) return first;
  return fmt::format("{} files ({} to {})", files.size(), first, files.back().filename().string());
}

// `name`: what the user knows the tokenizer as.
void check_tokenizer(const Tokens& tokens, const Tokenizer& tokenizer, const char* name) {
  const std::string file = tokens.path().string();
  if (!tokens.tokenizer().empty() && tokens.tokenizer() != tokenizer.fingerprint()) {
    const bool bytes = tokenizer.fingerprint() == Tokenizer::bytes().fingerprint();
    throw Error(Fault::data,
                fmt::format("{}: made with another tokenizer ({:.8}...) than {} ({:.8}...{}); give the one that it "
                            "was made with, or the text",
                            file, tokens.tokenizer(), name, tokenizer.fingerprint(), bytes ? ", bytes" : ""));
  }
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
      tokens = tokens_of(texts, spec.field, tokenizer, spec.cache, spec.threads, tell);
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

struct CorpusParts {
  std::vector<Stream::Piece> train, validation;
  std::string split;
};

CorpusParts split(const std::vector<Stream::Piece>& pieces, const Files& files, double fraction) {
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
  (void)checked(Stream(before), part("training"));
  (void)checked(Stream(after), part("validation"));
  return {std::move(before), std::move(after), split_in_words(documents, cut, size, files)};
}

// `where` the validation files are.
void check_apart(const Files& training, const Files& validation, const char* where) {
  std::set<std::filesystem::path> seen;
  std::error_code none;
  for (const auto& file : training) seen.insert(std::filesystem::weakly_canonical(file, none));
  for (const auto& file : validation) {
    if (seen.contains(std::filesystem::weakly_canonical(file, none)))
      throw Error(Fault::usage,
                  fmt::format("{} is in data.path and in {}; name the training files without it", file.string(), where));
  }
}

// "the validation split, 2 files (validation-0.parquet to validation-1.parquet)".
std::string held_in_words(const std::vector<Layout>& layouts, const Files& held_out) {
  std::size_t left_out = 0;
  std::string split;
  for (const Layout& layout : layouts) {
    left_out += layout.left_out;
    if (layout.held == Split::none) continue;
    const std::string_view name = layout.held == Split::test ? "test" : "validation";
    if (split.find(name) == split.npos) split += fmt::format("{}{}", split.empty() ? "" : " and ", name);
  }
  const std::string rest = left_out == 0   ? ""
                           : left_out == 1 ? "; 1 file of no split or of another is left out"
                                           : fmt::format("; {} files of no split or of another are left out", left_out);
  return fmt::format("the {} split, {}{}", split, in_words(held_out), rest);
}

// Of one stream, whatever number of names it has. `held_out` is data.val_path's; empty: the files' own split, or else their
// end.
CorpusParts parts_of(const std::vector<Layout>& layouts, const Files& held_out, const CorpusSpec& spec,
                     const Tokenizer& tokenizer, const Progress& progress) {
  const Files files = joined(layouts, &Layout::train), own = joined(layouts, &Layout::held_out);
  std::vector<Stream::Piece> pieces = pieces_of(files, spec, tokenizer, progress);
  if (!held_out.empty()) return {std::move(pieces), {}, ""};
  if (own.empty()) return split(pieces, files, spec.val_fraction);
  return {std::move(pieces), pieces_of(own, spec, tokenizer, progress), held_in_words(layouts, own)};
}

Corpus open_whole(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  if (spec.field.empty()) throw Error(Fault::usage, "data.field is empty; give the name of a field, as in data.field=content");
  const std::vector<Layout> layouts = layouts_of(spec.path, "data.path", spec.cache, true);
  const Files training = joined(layouts, &Layout::train);
  Files held_out;
  if (!spec.val_path.empty()) held_out = joined(layouts_of(spec.val_path, "data.val_path", spec.cache, false), &Layout::train);
  check_apart(training, held_out, "data.val_path");
  if (held_out.empty()) check_apart(training, joined(layouts, &Layout::held_out), "a folder's validation split");
  if (!spec.weights.empty() && spec.weights.size() != layouts.size())
    throw Error(Fault::usage, fmt::format("data.weights is a list of {}, data.path one of {}; give one weight for each entry",
                                          spec.weights.size(), layouts.size()));
  CorpusParts all;
  std::vector<Share> shares;
  for (std::size_t i = 0; i < spec.weights.size(); ++i) {
    CorpusParts parts = parts_of({layouts[i]}, held_out, spec, tokenizer, progress);
    shares.push_back({spec.path[i], spec.weights[i], checked(Stream(parts.train), spec.path[i] + " has a stream")});
    all.train.insert(all.train.end(), parts.train.begin(), parts.train.end());
    all.validation.insert(all.validation.end(), parts.validation.begin(), parts.validation.end());
    all.split += fmt::format("{}{}", i == 0 ? "" : ", then ", parts.split);
  }
  if (spec.weights.empty()) all = parts_of(layouts, held_out, spec, tokenizer, progress);
  if (!held_out.empty()) {
    all.validation = pieces_of(held_out, spec, tokenizer, progress);
    all.split = "all of " + in_words(held_out);
  }
  return {checked(Stream(std::move(all.train)), "data.path has a stream"),
          checked(Stream(std::move(all.validation)),
                  spec.val_path.empty() ? "the validation split has a stream" : "data.val_path has a stream"),
          std::move(all.split), std::move(shares)};
}

}  // namespace

Corpus open_corpus(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  Corpus corpus = open_whole(spec, tokenizer, progress);
  if (spec.train_tokens == 0) return corpus;
  if (!spec.weights.empty())
    throw Error(Fault::usage,
                "data.train_tokens takes the first tokens of one stream, but data.weights makes several; unset one");
  if (spec.train_tokens < 2 || spec.train_tokens > corpus.train.size()) {
    throw Error(Fault::usage,
                fmt::format("data.train_tokens is {}, but there are {} training tokens; valid: 0 for all, or 2 to {}",
                            spec.train_tokens, corpus.train.size(), corpus.train.size()));
  }
  corpus.train = corpus.train.first(spec.train_tokens);
  return corpus;
}

void check_length(const Corpus& corpus, std::int64_t length) {
  base::with_context("the validation data, " + corpus.split, [&] { check_room(corpus.validation, length); });
  for (std::size_t i = 0; i < corpus.shares.size(); ++i) {
    const Share& share = corpus.shares[i];
    check_room(share.train, length, fmt::format("{} (entry {} of data.path): its training text", share.name, i + 1));
  }
  if (corpus.shares.empty()) check_room(corpus.train, length, "the training text");
}

Stream open_stream(const CorpusSpec& spec, const Tokenizer& tokenizer, const Progress& progress) {
  const Files files = joined(layouts_of(spec.path, "--data", spec.cache, false), &Layout::train);
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

std::filesystem::path cache_named(const std::string& name) {
  return name.empty() ? default_cache() : std::filesystem::path(name);
}

}  // namespace cautious::data
